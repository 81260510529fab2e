//! The values of an account's fields, as they are checked and documented.

use http_kit::{FieldValue, json_object};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use values::{FromText, Invalid, bounded_text};

const MAX_METADATA_BYTES: usize = 4 * 1024;
const MAX_SCOPES: usize = 50;
const MAX_SCOPE_LENGTH: usize = 64;
const MAX_COMPONENTS: usize = 1000;
const MAX_NAME_LENGTH: usize = 200;

/// A plan's name.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 200, example = "gold")]
pub(in crate::accounts) struct Plan(pub(in crate::accounts) String);

impl FieldValue for Plan {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let text = String::from_json(value)?;
        bounded_text(&text, 1, MAX_NAME_LENGTH)?;
        Ok(Self(text))
    }
}

/// The scopes of a user in the order given, without duplicates. Every token contains them, so they are
/// limited: at most 50, each a scope-token of RFC 6749 with at most 64 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::accounts) struct Scopes(pub(in crate::accounts) Vec<String>);

impl FieldValue for Scopes {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let mut scopes: Vec<String> = Vec::new();
        for scope in Vec::<String>::from_json(value)? {
            let is_token = scope
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
            if !is_token || !(1..=MAX_SCOPE_LENGTH).contains(&scope.len()) {
                let message = format!(
                    "Each scope must have 1 to {MAX_SCOPE_LENGTH} printable ASCII characters other than spaces, quotes and backslashes."
                );
                return Err(Invalid::new("invalid-scope", message));
            }
            if scopes.contains(&scope) {
                continue;
            }
            if scopes.len() == MAX_SCOPES {
                let message = format!("Must have at most {MAX_SCOPES} scopes.");
                return Err(Invalid::new("too-many", message));
            }
            scopes.push(scope);
        }
        Ok(Self(scopes))
    }
}

fn name_schema() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_NAME_LENGTH))
}

/// One or more vendors: a string or an array of strings, stored as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::accounts) struct Vendor(pub(in crate::accounts) Value);

impl FieldValue for Vendor {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let message = "Must be null, a string or an array of strings.";
        let wrong = || Invalid::new("invalid-type", message);
        let names: Vec<&Value> = match value {
            Value::Array(names) => names.iter().collect(),
            single => vec![single],
        };
        for name in names {
            bounded_text(name.as_str().ok_or_else(wrong)?, 1, MAX_NAME_LENGTH)?;
        }
        Ok(Self(value.clone()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::accounts) struct ComponentTypes(pub(in crate::accounts) Vec<String>);

impl FieldValue for ComponentTypes {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let types = Vec::<String>::from_json(value)?;
        if types.len() > MAX_COMPONENTS {
            let message = format!("Must have at most {MAX_COMPONENTS} component types.");
            return Err(Invalid::new("too-many", message));
        }
        for name in &types {
            bounded_text(name, 1, MAX_NAME_LENGTH)?;
        }
        Ok(Self(types))
    }
}

http_kit::schemas! {
    Scopes = {
        let scope = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(format!(r"^[!#-\[\]-~]{{1,{MAX_SCOPE_LENGTH}}}$")));
        ArrayBuilder::new()
            .items(scope)
            .description(Some(format!("At most {MAX_SCOPES} different scopes.")))
            .examples([json!(["user", "admin"])])
    };
    Vendor = AnyOfBuilder::new()
        .description(Some("A string or an array of strings."))
        .item(name_schema())
        .item(ArrayBuilder::new().items(name_schema()));
    ComponentTypes = ArrayBuilder::new()
        .items(name_schema())
        .max_items(Some(MAX_COMPONENTS))
        .description(Some("The component types that the user can use."));
}

/// An object that clients store with an account: at most 4 KiB as JSON, with numbers that are kept exactly and no name
/// twice.
#[derive(Debug, Clone, PartialEq, Eq, Default, ToSchema)]
#[schema(value_type = Object)]
pub(in crate::accounts) struct Metadata(pub(in crate::accounts) Map<String, Value>);

impl FieldValue for Metadata {
    const IS_KEPT: bool = true;

    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let object = json_object(value, MAX_METADATA_BYTES)?;
        check_no_nul(value)?;
        Ok(Self(object.clone()))
    }
}

/// Postgres cannot store NUL characters, at any depth.
fn check_no_nul(value: &Value) -> Result<(), Invalid> {
    match value {
        Value::String(text) => String::from_text(text).map(drop),
        Value::Array(values) => values.iter().try_for_each(check_no_nul),
        Value::Object(object) => object.iter().try_for_each(|(name, value)| {
            String::from_text(name)?;
            check_no_nul(value)
        }),
        Value::Number(_) | Value::Null | Value::Bool(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http_kit::FieldValue;
    use serde_json::{Value, json};

    use super::{ComponentTypes, Metadata, Plan, Scopes, Vendor};

    fn code<T: FieldValue>(value: &Value) -> Option<&'static str> {
        T::from_json(value).err().map(|invalid| invalid.code)
    }

    #[test]
    fn scopes_are_unique_tokens() {
        let scopes = Scopes::from_json(&json!(["user", "admin", "user"])).unwrap();
        assert_eq!(scopes.0, ["user", "admin"]);
        for wrong in ["", "a b", "a\"b", "ä", &"x".repeat(65)] {
            assert_eq!(code::<Scopes>(&json!([wrong])), Some("invalid-scope"));
        }
        let many: Vec<_> = (0..51).map(|n| n.to_string()).collect();
        assert_eq!(code::<Scopes>(&json!(many)), Some("too-many"));
        assert_eq!(code::<Scopes>(&json!("admin")), Some("invalid-type"));
    }

    #[test]
    fn a_vendor_is_a_string_or_an_array_of_strings() {
        for right in [json!("acme"), json!(["acme", "umbrella"]), json!([])] {
            assert_eq!(Vendor::from_json(&right).unwrap().0, right);
        }
        for wrong in [json!(1), json!([1]), json!({}), json!([["acme"]])] {
            assert_eq!(code::<Vendor>(&wrong), Some("invalid-type"));
        }
        assert_eq!(code::<Vendor>(&json!("")), Some("too-short"));
    }

    #[test]
    fn metadata_is_an_object_of_at_most_4_kib_without_nul() {
        assert_eq!(code::<Metadata>(&json!({"a": {"b": [1, "c"]}})), None);
        assert_eq!(code::<Metadata>(&json!([])), Some("invalid-type"));
        assert_eq!(
            code::<Metadata>(&json!({"a": ["\0"]})),
            Some("nul-character")
        );
        assert_eq!(code::<Metadata>(&json!({"\0": 1})), Some("nul-character"));
        let fits = json!({"a": "x".repeat(4096 - 8)});
        assert_eq!(code::<Metadata>(&fits), None);
        let long = json!({"a": "x".repeat(4096 - 7)});
        assert_eq!(code::<Metadata>(&long), Some("too-long"));
    }

    #[test]
    fn numbers_are_accepted_that_survive_a_round_trip_through_postgres() {
        for number in [f64::MAX, f64::MIN, 1e307, -1e307, 1e-320, 5e-324, 0.1, -0.0] {
            // Postgres writes numbers of `jsonb` without an exponent.
            let digits = serde_json::from_str::<f64>(&number.to_string());
            assert_eq!(digits.ok(), Some(number), "{number}");
            assert_eq!(code::<Metadata>(&json!({"a": number})), None, "{number}");
        }
        assert_eq!(code::<Metadata>(&json!({"a": [u64::MAX, i64::MIN]})), None);
    }

    #[test]
    fn names_have_1_to_200_characters() {
        assert_eq!(code::<Plan>(&json!("")), Some("too-short"));
        assert_eq!(code::<Plan>(&json!("x".repeat(201))), Some("too-long"));
        assert_eq!(
            code::<ComponentTypes>(&json!(["a", 1])),
            Some("invalid-type")
        );
        assert_eq!(code::<ComponentTypes>(&json!([""])), Some("too-short"));
    }
}
