//! JSON of callers and receivers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// With its feature `raw_value`, `serde_json` takes the text of a member with such a name for JSON, and parses it with a
/// new limit of depth: 40 KB that are nested so overflow the stack of a thread, which ends the process.
const RESERVED: &str = "$serde_json::private::";

/// A value of at most 128 levels. An object with a member whose name the parser reserves for itself is refused.
#[derive(Debug)]
pub struct UntrustedJson(pub Value);

struct ValueVisitor;

impl<'de> Deserialize<'de> for UntrustedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = UntrustedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<UntrustedJson, E> {
        Ok(UntrustedJson(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<UntrustedJson, E> {
        Ok(UntrustedJson(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<UntrustedJson, E> {
        Ok(UntrustedJson(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<UntrustedJson, E> {
        Ok(UntrustedJson(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<UntrustedJson, E> {
        Ok(UntrustedJson(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<UntrustedJson, E> {
        Ok(UntrustedJson(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<UntrustedJson, A::Error> {
        let mut values = Vec::new();
        while let Some(UntrustedJson(value)) = array.next_element()? {
            values.push(value);
        }
        Ok(UntrustedJson(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<UntrustedJson, A::Error> {
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if name.starts_with(RESERVED) {
                return Err(A::Error::custom(format_args!(
                    "The names of members must not begin with `{RESERVED}`"
                )));
            }
            let UntrustedJson(value) = object.next_value()?;
            members.insert(name, value);
        }
        Ok(UntrustedJson(members.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Error, Value, json};

    use super::UntrustedJson;

    const RAW: &str = "$serde_json::private::RawValue";

    fn parse(text: &str) -> Result<Value, Error> {
        serde_json::from_str(text).map(|UntrustedJson(value)| value)
    }

    #[test]
    fn text_in_text_in_text_does_not_overflow_the_stack() {
        let escaped = |text: String| text.replace('\\', r"\u005c").replace('"', r"\u0022");
        let mut text = String::new();
        while text.len() < 200 * 1024 {
            let arrays = "[".repeat(120);
            text = format!(r#"{arrays}{{"{RAW}":"{}""#, escaped(text));
        }
        assert!(parse(&text).unwrap_err().is_data());
    }

    #[test]
    fn reserved_names_are_refused_at_any_depth_and_in_any_spelling() {
        let escaped = RAW.replace('$', r"\u0024");
        for name in [RAW, &escaped, "$serde_json::private::Number"] {
            for text in [
                format!(r#"{{"{name}": "1"}}"#),
                format!(r#"[1, {{"a": 1, "{name}": 2}}]"#),
            ] {
                assert!(parse(&text).unwrap_err().is_data(), "{text}");
            }
        }
        let value = json!({"a": RAW, "$serde_json": {}, "serde_json::private::RawValue": [RAW]});
        assert_eq!(parse(&value.to_string()).unwrap(), value);
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalars = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        scalars.prop_recursive(5, 50, 5, |values| {
            prop_oneof![
                prop::collection::vec(values.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(".*", values, 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn other_values_are_those_of_the_parser(value in values()) {
            prop_assert_eq!(parse(&value.to_string()).unwrap(), value);
        }
    }
}
