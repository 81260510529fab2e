use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::HeaderMap;
use actix_web::{FromRequest, HttpRequest};
use http_kit::{Fields, Problem};
use utoipa::IntoParams;
use values::Invalid;

use crate::idempotency::keys::GivenKey;

const NAME: &str = "Idempotency-Key";
const MAX_LENGTH: usize = 255;

/// The header of an answer that was made for an earlier request.
pub(crate) const IDEMPOTENT_REPLAYED: (&str, &str) = ("Idempotent-Replayed", "true");

/// The key by which repeats of a request are recognised: 1 to 255 printable characters of ASCII. It may be quoted, as
/// draft-ietf-httpapi-idempotency-key-header has it, or not. `None` without the header.
///
/// It is what a caller chose, so it is not logged.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey(Option<String>);

/// The parameter that [`IdempotencyKey`] reads.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it only documents the parameter")]
pub(crate) struct IdempotencyKeyHeader {
    /// 1 to 255 printable characters that only this request and its repeats have. Within 24 hours, a request of the same
    /// user with the same key and body gets the answer of the first one, with `Idempotent-Replayed: true`. Only successes
    /// are remembered.
    #[param(
        rename = "Idempotency-Key",
        required = false,
        min_length = 1,
        max_length = 255,
        pattern = "^[!#-~]([ -~]*[!-~])?$",
        example = "b1946ac9-2f4e-4f0e-9c1d-7d2a"
    )]
    idempotency_key: String,
}

impl IdempotencyKey {
    /// The key, if there is one, with the body of its request.
    pub(crate) fn with(self, body: &Fields) -> Option<GivenKey> {
        self.0.map(|key| GivenKey::new(key, body.object()))
    }

    fn parse(headers: &HeaderMap) -> Result<Self, Invalid> {
        let lines: Vec<_> = headers.get_all(NAME).collect();
        let key = match lines.as_slice() {
            [] => return Ok(Self(None)),
            [line] => line.to_str().ok().and_then(parse_key),
            _ => None,
        };
        let invalid = || {
            let message = "Must be one value of 1 to 255 printable ASCII characters, with or without quotes around it.";
            Invalid::new("invalid-idempotency-key", message)
        };
        key.map(|key| Self(Some(key))).ok_or_else(invalid)
    }
}

/// The key of a header's value, without the quotes of a string of RFC 8941.
fn parse_key(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t']);
    let key = match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None => text.to_owned(),
    };
    let is_printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (is_printable && (1..=MAX_LENGTH).contains(&key.len())).then_some(key)
}

fn unquote(quoted: &str) -> Option<String> {
    let mut rest = quoted.strip_suffix('"')?.chars();
    let mut key = String::new();
    while let Some(character) = rest.next() {
        match character {
            '"' => return None,
            '\\' => key.push(rest.next().filter(|next| matches!(next, '"' | '\\'))?),
            _ => key.push(character),
        }
    }
    Some(key)
}

impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdempotencyKey(…)")
    }
}

impl FromRequest for IdempotencyKey {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parsed = Self::parse(request.headers());
        ready(parsed.map_err(|invalid| Problem::invalid_field(NAME, invalid)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse_key;

    #[test]
    fn a_key_is_quoted_or_not() {
        for (text, key) in [
            ("8e03978e-40d5", "8e03978e-40d5"),
            (r#""8e03978e-40d5""#, "8e03978e-40d5"),
            (r#""a \"b\" \\ c""#, r#"a "b" \ c"#),
            (r#"a "b" c"#, r#"a "b" c"#),
            ("  a  ", "a"),
            (r#"" a ""#, " a "),
        ] {
            assert_eq!(parse_key(text).as_deref(), Some(key), "{text}");
        }
        let longest = "k".repeat(255);
        assert_eq!(parse_key(&longest), Some(longest.clone()));
        assert_eq!(parse_key(&format!("\"{longest}\"")), Some(longest));
    }

    #[test]
    fn other_values_are_refused() {
        let long = "k".repeat(256);
        for text in [
            "", "  ", r#""""#, r#"""#, r#""a"#, r#""a"b""#, r#""a\""#, r#""a\b""#, "é", "a\u{7f}",
            &long,
        ] {
            assert_eq!(parse_key(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = parse_key(&text);
        }
    }
}
