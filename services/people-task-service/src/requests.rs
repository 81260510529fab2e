//! The part of reading request bodies that capabilities share.

/// Reads types with `FromText` from a body, and describes them by a schema.
macro_rules! text_fields {
    ($($type:ty = $schema:expr;)+) => {$(
        impl http_kit::FieldValue for $type {
            fn from_json(value: &serde_json::Value) -> Result<Self, values::Invalid> {
                let text = <String as http_kit::FieldValue>::from_json(value)?;
                <Self as values::FromText>::from_text(&text)
            }
        }

        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.schema_type(utoipa::openapi::Type::String).into()
            }
        }

        impl ToSchema for $type {}
    )+};
}

pub(crate) use text_fields;
