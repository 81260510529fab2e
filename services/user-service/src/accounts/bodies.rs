//! The bodies of requests about accounts, as the OpenAPI document describes them. They are read field by
//! field, so these types exist for the document alone.

use std::borrow::Cow;

use serde_json::json;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The body of sign-up with a username.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct SignUpByUsername {
    /// An e-mail address; blanks around it are dropped.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    username: String,
    /// Takes the username's value if it is not given.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    email: Option<String>,
    /// At least 5 characters (the operator may want more), at most 72 bytes.
    #[schema(
        format = "password",
        example = "correct horse",
        min_length = 5,
        max_length = 72
    )]
    password: String,
    /// An object that is kept with the account; at most 4 KiB.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The body of sign-up with an e-mail address.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct SignUpByEmail {
    /// Takes the e-mail address if it is not given.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    username: Option<String>,
    /// An e-mail address; blanks around it are dropped.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    email: String,
    /// At least 5 characters (the operator may want more), at most 72 bytes.
    #[schema(
        format = "password",
        example = "correct horse",
        min_length = 5,
        max_length = 72
    )]
    password: String,
    /// An object that is kept with the account; at most 4 KiB.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The body of sign-up. At least one of `username` and `email` is needed; the one that is not given
/// takes the other's value.
pub(super) struct SignUpBody;

impl PartialSchema for SignUpBody {
    fn schema() -> RefOr<Schema> {
        let either = AnyOfBuilder::new()
            .description(Some("At least one of `username` and `email` is needed."))
            .item(SignUpByUsername::schema())
            .item(SignUpByEmail::schema());
        either.into()
    }
}

impl ToSchema for SignUpBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SignUpBody")
    }
}

/// The body of an update. What is absent or null stays, but for `vendor`, which null removes.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body")]
pub(super) struct UserUpdateBody {
    /// An e-mail address.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    username: Option<String>,
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    email: Option<String>,
    /// At least 5 characters (the operator may want more), at most 72 bytes.
    #[schema(format = "password", min_length = 5, max_length = 72)]
    password: Option<String>,
    is_active: Option<bool>,
    #[schema(min_length = 1, max_length = 200, example = "gold")]
    plan: Option<String>,
    #[schema(schema_with = scopes)]
    scope: Option<Vec<String>>,
    #[schema(schema_with = vendor)]
    vendor: Option<serde_json::Value>,
    #[schema(schema_with = component_types)]
    allowed_private_components: Option<Vec<String>>,
    /// Replaces the metadata; at most 4 KiB.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

fn name() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(200))
}

fn or_null(kind: Type) -> SchemaType {
    SchemaType::from_iter([kind, Type::Null])
}

fn vendor() -> RefOr<Schema> {
    let either = AnyOfBuilder::new()
        .description(Some("Null, a string or an array of strings."))
        .item(name().schema_type(or_null(Type::String)))
        .item(ArrayBuilder::new().items(name()));
    either.into()
}

fn scopes() -> RefOr<Schema> {
    let scope = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^[!#-\[\]-~]{1,64}$"));
    let scopes = ArrayBuilder::new()
        .schema_type(or_null(Type::Array))
        .items(scope)
        .description(Some("At most 50 different scopes."))
        .examples([json!(["user", "admin"])]);
    scopes.into()
}

fn component_types() -> RefOr<Schema> {
    let types = ArrayBuilder::new()
        .schema_type(or_null(Type::Array))
        .items(name())
        .max_items(Some(1000))
        .description(Some("Component types that the user may use."));
    types.into()
}
