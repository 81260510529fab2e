//! JSON values as texts that are the same for the same values, whatever their notation.

use serde::Serialize;
use serde_json::Value;

/// The canonical form of a value (RFC 8785), and the integers that it rounds in its parts.
pub(crate) fn canonical<'a>(
    value: &impl Serialize,
    parts: impl IntoIterator<Item = &'a Value>,
) -> Vec<u8> {
    // What was parsed can be written.
    let mut text = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
    for part in parts {
        append_rounded(part, &mut text);
    }
    text
}

/// Appends the integers that have more than the 53 bits of a double.
fn append_rounded(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            let negative = || number.as_i64().map(i64::unsigned_abs);
            let integer = number.as_u64().or_else(negative);
            if integer.is_some_and(|it| it.leading_zeros() + it.trailing_zeros() < 64 - 53) {
                text.extend(format!(" {number}").into_bytes());
            }
        }
        Value::Array(values) => values.iter().for_each(|value| append_rounded(value, text)),
        Value::Object(fields) => fields
            .values()
            .for_each(|value| append_rounded(value, text)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::canonical;

    fn of(number: &str) -> Vec<u8> {
        let text = format!(r#"[{{"n": {number}}}]"#);
        let value = serde_json::from_str(&text).unwrap();
        canonical(&value, [&value])
    }

    #[test]
    fn large_integers_differ_and_notations_do_not() {
        let numbers = [
            "9007199254740992",
            "9007199254740993",
            "9007199254740995",
            "-9007199254740992",
            "-9007199254740993",
            "18446744073709551614",
            "18446744073709551615",
        ];
        let texts: HashSet<_> = numbers.into_iter().map(of).collect();
        assert_eq!(texts.len(), numbers.len());
        for (number, same) in [
            ("1", "1.0"),
            ("-100", "-1e2"),
            ("9007199254740994", "9007199254740994.0"),
        ] {
            assert_eq!(of(number), of(same));
        }
    }

    #[test]
    fn what_is_not_rounded_is_the_canonical_form_alone() {
        assert_eq!(of("9007199254740992"), br#"[{"n":9007199254740992}]"#);
    }
}
