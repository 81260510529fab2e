use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use auth::MailKeys;
use http_kit::{Fields, Problem, problem_responses};
use utoipa::IntoParams;
use values::{Invalid, Names as _, UserId};

use crate::idempotency::{Operation, Repeatable};

const NAME: &str = "Idempotency-Key";
const MAX_LENGTH: usize = 255;
/// How long callers wait before they ask again for an answer that is being made.
const WAIT: Duration = Duration::from_secs(1);

/// The header of an answer that was made for an earlier request.
pub(crate) const IDEMPOTENT_REPLAYED: (&str, &str) = ("Idempotent-Replayed", "true");

/// The parameter that [`repeatable`] reads.
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

/// A user's request as one that may be repeated; `None` without the header.
///
/// The key by which repeats are recognised has 1 to 255 printable characters of ASCII. It may be quoted, as
/// draft-ietf-httpapi-idempotency-key-header has it, or not. It is what a caller chose, so it is not logged.
pub(crate) fn repeatable(
    request: &HttpRequest,
    body: &Fields,
    keys: &MailKeys,
    operation: Operation,
    user: UserId,
) -> Result<Option<Repeatable>, Problem> {
    let lines: Vec<_> = request.headers().get_all(NAME).collect();
    let key = match lines.as_slice() {
        [] => return Ok(None),
        [line] => line.to_str().ok().and_then(parse_key),
        _ => None,
    };
    let key = key.ok_or_else(|| {
        let message = "Must be one value of 1 to 255 printable ASCII characters, with or without quotes around it.";
        Problem::invalid_field(NAME, Invalid::new("invalid-idempotency-key", message))
    })?;
    let request = Repeatable::new(keys, operation, user, &key, body.object());
    Ok(Some(request))
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

values::names! {
    /// Why a request with an idempotency key is refused, with the name in metrics.
    #[derive(thiserror::Error)]
    pub(crate) enum RepeatError {
        /// The user has sent another body with this key.
        #[error("the idempotency key was used for another request")]
        Reused = "reused",
        /// Another request with this key is under way, or this replica cannot make the answer.
        #[error("the idempotency key is in use")]
        InUse = "in-use",
    }
}

impl RepeatError {
    pub(crate) fn count(self, operation: Operation) {
        super::count(operation, self.name());
    }
}

impl From<RepeatError> for Problem {
    fn from(error: RepeatError) -> Self {
        match error {
            RepeatError::Reused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency-key-reused",
                "You have used this Idempotency-Key for a request with another body within the last 24 hours. Use a key \
                 for one request and its repeats only.",
            ),
            RepeatError::InUse => Self::new(
                StatusCode::CONFLICT,
                "idempotency-key-in-use",
                "A request with this Idempotency-Key is being processed. Repeat it after `Retry-After`.",
            )
            .retry_after(WAIT),
        }
    }
}

problem_responses! {
    /// Problems of requests that may be repeated.
    pub(crate) Repeated {
        RepeatError::Reused => "The key was used for another body.",
        RepeatError::InUse => "A request with the same key is being processed.",
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
