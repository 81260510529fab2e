//! What the JSON parser changes without an error: numbers with more digits than a 64-bit integer or float has, and
//! members of an object with the same name, of which it keeps the last. The text of the body still shows them.

use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Number};
use values::{Invalid, UntrustedJson};

/// The members of an object in their order, with the text of their values.
struct Members<'a>(Vec<(String, &'a RawValue)>);

/// Checks that a field of a body, at any depth, was parsed without losing anything.
pub(crate) fn check(body: &[u8], field: &str) -> Result<(), Invalid> {
    match find(body, field) {
        Some(value) => check_value(value.get()),
        None => Ok(()),
    }
}

/// The field that holds a number too large to be parsed, if that is why a body could not be parsed.
pub(crate) fn field_with_huge_number(body: &[u8], error: &Error) -> Option<String> {
    // The library has no other way to tell.
    if !error.to_string().starts_with("number out of range") {
        return None;
    }
    let Members(fields) = serde_json::from_slice(body).ok()?;
    let is_invalid = |value: &RawValue| serde_json::from_str::<UntrustedJson>(value.get()).is_err();
    let mut invalid = fields.into_iter().filter(|(_, value)| is_invalid(value));
    invalid.next().map(|(name, _)| name)
}

pub(crate) fn inexact_number() -> Invalid {
    Invalid::new(
        "inexact-number",
        "Numbers must be integers of 64 bits, or have at most 17 digits and fit into a 64-bit float without rounding. \
         Send others as strings.",
    )
}

fn find<'a>(body: &'a [u8], field: &str) -> Option<&'a RawValue> {
    let Members(fields) = serde_json::from_slice(body).ok()?;
    let mut found = fields.into_iter().rev().filter(|(name, _)| name == field);
    found.next().map(|(_, value)| value)
}

/// The texts of the elements of an array that is a field of a body; empty if there is no such array.
pub(crate) fn elements(body: &[u8], field: &str) -> Vec<Bytes> {
    let array = find(body, field).map(RawValue::get).unwrap_or_default();
    let elements: Vec<&RawValue> = serde_json::from_str(array).unwrap_or_default();
    let texts = elements.into_iter().map(RawValue::get);
    texts
        .map(|text| Bytes::copy_from_slice(text.as_bytes()))
        .collect()
}

/// An object or array whose end has not come yet.
#[derive(Default)]
struct Open {
    names: HashSet<String>,
    /// The name of the member whose value has begun.
    name: Option<String>,
}

impl Open {
    fn end_member(&mut self) -> Result<(), Invalid> {
        if self.name.take().is_none_or(|name| self.names.insert(name)) {
            return Ok(());
        }
        let message = "Must not have two members with the same name in one object.";
        Err(Invalid::new("duplicate-name", message))
    }
}

/// Checks the text of a valid value in one pass, however deeply it is nested.
fn check_value(mut text: &str) -> Result<(), Invalid> {
    let mut open: Vec<Open> = Vec::new();
    let mut string = "";
    loop {
        let token = first_token(text);
        match token.as_bytes().first() {
            Some(b'{' | b'[') => open.push(Open::default()),
            Some(b'}' | b']') => open.pop().unwrap_or_default().end_member()?,
            Some(b',') => open.last_mut().map_or(Ok(()), Open::end_member)?,
            Some(b':') => {
                if let Some(object) = open.last_mut() {
                    object.name = serde_json::from_str(string).ok();
                }
            }
            Some(b'"') => string = token,
            Some(b'-' | b'0'..=b'9') if !is_exact(token) => return Err(inexact_number()),
            Some(_) => {}
            None => return Ok(()),
        }
        text = text.get(token.len()..).unwrap_or_default();
    }
}

/// The string or number that a text begins with, or else its first byte.
fn first_token(text: &str) -> &str {
    if text.starts_with(|first| matches!(first, '"' | '-' | '0'..='9')) {
        let scalar = <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(text));
        scalar.map_or("", RawValue::get)
    } else {
        text.get(..1).unwrap_or_default()
    }
}

/// Whether the parser keeps the value of a number. Of a float between two shortest texts, such as 127502045331809.125, some
/// programs write the one and some the other.
fn is_exact(text: &str) -> bool {
    let (Some(given), Ok(parsed)) = (decimal(text), serde_json::from_str::<Number>(text)) else {
        return false;
    };
    let is_given = |written: &str| decimal(written).as_ref() == Some(&given);
    let is_float = |float| is_given(&format!("{float:e}"));
    is_given(&parsed.to_string()) || parsed.is_f64() && parsed.as_f64().is_some_and(is_float)
}

/// A number as its sign, its digits without zeros at either end, and the exponent of the last digit. `None` if the
/// exponent is too large. Zero has no sign.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let exponent = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(dropped)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let is_negative = mantissa.starts_with('-');
    Some((is_negative, significant.to_owned(), exponent))
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::{check, decimal, field_with_huge_number};

    fn code(metadata: &str) -> Option<&'static str> {
        let body =
            format!(r#"{{"other": 1e999, "metadata": {metadata}, "last": 0.10000000000000001}}"#);
        check(body.as_bytes(), "metadata")
            .err()
            .map(|invalid| invalid.code)
    }

    #[test]
    fn a_number_that_is_kept_is_exact() {
        for number in [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "0e5",
            "1",
            "1.0",
            "1.10",
            "1e2",
            "1E+2",
            "100e-2",
            "0.1",
            "-2.5e-3",
            "123456.789e3",
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            "1e20",
            "100000000000000000000",
            "1e308",
            "1.7976931348623157e308",
            "5e-324",
            "0.30000000000000004",
            "12345678901234567",
            "3.141592653589793",
        ] {
            assert_eq!(code(number), None, "{number}");
        }
    }

    #[test]
    fn a_number_that_would_be_changed_is_refused_at_any_depth() {
        for number in [
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "0.10000000000000001",
            "3.14159265358979323846",
            "1.00000000000000000001",
            "9007199254740993.0",
            "9007199254740993e1",
            "1e309",
            "-1e400",
            "1e-400",
            "4.9e-324",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "0.123456789012345678",
        ] {
            for metadata in [
                number.to_owned(),
                format!(r#"{{"a": [true, "1e999", {{"b": [ {number}]}}]}}"#),
            ] {
                assert_eq!(code(&metadata), Some("inexact-number"), "{metadata}");
            }
        }
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused_at_any_depth() {
        assert_eq!(
            code(r#"{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]}"#),
            None
        );
        assert_eq!(code(r#"{"a": 1, "a": 1}"#), Some("duplicate-name"));
        assert_eq!(code(r#"{"a": 1, "\u0061": 2}"#), Some("duplicate-name"));
        assert_eq!(
            code(r#"[{"a": {"b": 1, "c": 2, "b": 3}}]"#),
            Some("duplicate-name")
        );
    }

    #[test]
    fn names_and_numbers_are_told_from_the_text_of_strings() {
        for metadata in [
            r#""0.10000000000000001""#,
            r#"["a", "a", "\\", "\": 1e999, {\"a\":", {"a": ":", "\\\"": "a", "b": true}, null]"#,
            " { \"ä\" : [ 1 , { } , [ ] ] , \"\u{1f600}\" : { \"ä\" : false } } ",
        ] {
            assert_eq!(code(metadata), None, "{metadata}");
        }
        // The first one is named, and a member is complete only after its value.
        assert_eq!(code(r#"{"a": 1, "a": 1e999}"#), Some("inexact-number"));
        assert_eq!(
            code(r#"{"a": {}, "a": 1, "b": 1e999}"#),
            Some("duplicate-name")
        );
    }

    #[test]
    fn the_depth_of_a_value_does_not_multiply_the_work() {
        let spaces = " ".repeat(64 * 1024);
        let fastest = |depth| {
            let (begin, end) = ("[".repeat(depth), "]".repeat(depth));
            let body = format!(r#"{{"metadata": {begin}{spaces}{end}}}"#);
            let times = (0..10).map(|_| {
                let started = Instant::now();
                assert!(check(body.as_bytes(), "metadata").is_ok());
                started.elapsed()
            });
            times.min().unwrap()
        };
        let (flat, deep) = (fastest(1), fastest(125));
        assert!(deep < flat * 5, "{deep:?} instead of {flat:?}");
    }

    #[test]
    fn the_last_field_of_a_name_counts_as_it_does_for_the_parser() {
        assert!(check(br#"{"m": 1e999, "m": 1}"#, "m").is_ok());
        assert!(check(br#"{"m": 1, "\u006d": 1e999}"#, "m").is_err());
        assert!(check(b"", "m").is_ok());
    }

    #[test]
    fn the_field_of_a_number_that_cannot_be_parsed_is_found() {
        let find = |body: &str| {
            let error = serde_json::from_str::<Value>(body).unwrap_err();
            field_with_huge_number(body.as_bytes(), &error)
        };
        assert_eq!(
            find(r#"{"a": 1e308, "b": {"c": [1e309]}}"#).as_deref(),
            Some("b")
        );
        assert_eq!(find(r#"{"a": "1e309", "b": }"#), None);
        assert_eq!(find(r#"{"a": 1e309, "b": }"#), None);
        assert_eq!(find(&"[".repeat(100_000)), None);
        assert_eq!(find("[1e309]"), None);
    }

    #[test]
    fn both_shortest_texts_of_a_float_are_exact() {
        for text in ["127502045331809.12", "-1.2750204533180913e14"] {
            assert_eq!(code(text), None, "{text}");
        }
        assert_eq!(code("127502045331809.135"), Some("inexact-number"));
    }

    proptest! {
        #[test]
        fn every_float_and_integer_that_a_program_writes_is_exact(float in any::<f64>(), signed in any::<i64>(), unsigned in any::<u64>()) {
            prop_assume!(float.is_finite());
            for number in [serde_json::to_string(&float).unwrap(), format!("{float:e}"), signed.to_string(), unsigned.to_string()] {
                prop_assert_eq!(code(&number), None, "{}", number);
            }
        }

        #[test]
        fn an_accepted_number_comes_back_equal(text in "-?(0|[1-9][0-9]{0,25})([.][0-9]{1,25})?([eE][+-]?[0-9]{1,3})?") {
            if code(&text).is_none() {
                let value: Value = serde_json::from_str(&text).unwrap();
                let back = value.to_string();
                let is_same_float = value.is_f64() && back.parse::<f64>() == text.parse::<f64>();
                prop_assert!(is_same_float || decimal(&back) == decimal(&text), "{back}");
            }
        }
    }
}
