use http_kit::{FieldValue, json_object};
use serde_json::Value;
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use values::Invalid;

const MAX_BYTES: usize = 4 * 1024;
const MAX_KEY: usize = 64;
const KEY_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$";

/// What the creator of a task keeps with it: an object of at most 4 KiB as JSON, whose keys have 1 to 64 letters, digits,
/// `_` and `-`. Numbers are kept exactly.
///
/// It is stored and returned as text, so that lists do not parse it.
#[derive(Debug)]
pub(crate) struct Metadata(String);

impl Metadata {
    /// The object as JSON without whitespace.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether an object of [`Metadata`] can have this key.
pub(crate) fn is_metadata_key(key: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(is_allowed)
}

impl FieldValue for Metadata {
    const IS_KEPT: bool = true;

    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let object = json_object(value, MAX_BYTES)?;
        if !object.keys().all(|key| is_metadata_key(key)) {
            let message = "Each key must have 1 to 64 letters (A to Z), digits, `_` and `-`.";
            return Err(Invalid::new("invalid-key", message));
        }
        Ok(Self(value.to_string()))
    }
}

http_kit::schemas! {
    Metadata = {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(KEY_PATTERN));
        ObjectBuilder::new()
            .property_names(Some(Schema::Object(key.build())))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .examples([serde_json::json!({"run": "b1946ac9", "attempt": 2})])
    };
}

#[cfg(test)]
mod tests {
    use http_kit::FieldValue as _;
    use serde_json::{Value, json};

    use super::Metadata;

    fn code(value: &Value) -> Option<&'static str> {
        Metadata::from_json(value).err().map(|invalid| invalid.code)
    }

    #[test]
    fn it_is_an_object_of_at_most_4_kib() {
        let object = json!({"run": {"any name": [1, "é"]}, "a-b_C9": null});
        let metadata = Metadata::from_json(&object).unwrap();
        let stored: Value = serde_json::from_str(metadata.as_str()).unwrap();
        assert_eq!(stored, object);
        assert_eq!(code(&json!({})), None);
        for wrong in [json!([]), json!("a"), json!(1), json!(true)] {
            assert_eq!(code(&wrong), Some("invalid-type"));
        }
        assert_eq!(code(&json!({"a": "x".repeat(4096 - 8)})), None);
        assert_eq!(code(&json!({"a": "x".repeat(4096 - 7)})), Some("too-long"));
    }

    #[test]
    fn keys_have_1_to_64_letters_digits_underscores_and_hyphens() {
        assert_eq!(code(&json!({"k".repeat(64): 1})), None);
        for key in ["", "a b", "a.b", "é", "a\0", "{{a}}", &"k".repeat(65)] {
            assert_eq!(code(&json!({key: 1})), Some("invalid-key"), "{key}");
        }
    }
}
