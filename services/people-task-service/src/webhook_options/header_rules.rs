//! Which headers a webhook may have of its own.

use reqwest::header::{CONTENT_TYPE, HeaderName};
use values::Invalid;

/// How many headers a webhook may have, and how many bytes their names and values may have together.
pub(crate) const MAX_HEADERS: usize = 10;
pub(crate) const MAX_HEADER_BYTES: usize = 4 * 1024;

/// Headers that HTTP, the client or the signature owns, and those by which servers take another method or origin than
/// the request has.
const OWNED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "date",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-real-ip",
    "x-request-id",
];
const OWNED_PREFIXES: &[&str] = &["proxy-", "webhook-", "x-forwarded-"];

/// Checks the name and the value of a header, and returns the name in lower case.
pub(super) fn check(name: &str, value: &str) -> Result<HeaderName, Invalid> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        let message = "Must be names of HTTP headers such as `Authorization`.";
        Invalid::new("invalid-header-name", message)
    })?;
    let lower = parsed.as_str();
    let mut prefixes = OWNED_PREFIXES.iter();
    if OWNED.contains(&lower) || prefixes.any(|prefix| lower.starts_with(prefix)) {
        let message = format!(
            "Must not have `{lower}`, which the protocol, the client or the signature sets."
        );
        return Err(Invalid::new("reserved-header", message));
    }
    let is_text = |c: char| c == ' ' || c == '\t' || c.is_ascii_graphic();
    if value.is_empty() || value.trim() != value || !value.chars().all(is_text) {
        let message = format!(
            "The value of `{lower}` must be visible ASCII characters, with spaces only between them."
        );
        return Err(Invalid::new("invalid-header-value", message));
    }
    if parsed == CONTENT_TYPE && !is_json(value) {
        let message = "`content-type` must be `application/json` or a type that ends with `+json`, because the body is JSON.";
        return Err(Invalid::new("invalid-header-value", message));
    }
    Ok(parsed)
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn headers_of_applications_are_allowed() {
        for (name, value) in [
            ("Authorization", "Bearer abc.def"),
            ("X-API-Key", "k"),
            ("Cookie", "a=b; c=d"),
            ("Accept", "application/json"),
            ("Content-Type", "application/json; charset=utf-8"),
            ("content-type", "application/merge-patch+json"),
            ("Prefect-Api-Version", "0.8.4"),
            ("Idempotency-Key", "\"x y\""),
        ] {
            assert_eq!(check(name, value).unwrap().as_str(), name.to_lowercase());
        }
    }

    #[test]
    fn headers_that_others_own_are_refused() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Expect",
            "Proxy-Authorization",
            "proxy-connection",
            "Webhook-Id",
            "webhook-signature",
            "Webhook-Test",
            "User-Agent",
            "X-Forwarded-For",
            "X-HTTP-Method-Override",
            "traceparent",
            "X-Request-Id",
            "Accept-Encoding",
        ] {
            assert_eq!(
                check(name, "x").unwrap_err().code,
                "reserved-header",
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for name in ["", "a b", "a:", "ä", "a\r\nb"] {
            assert_eq!(
                check(name, "x").unwrap_err().code,
                "invalid-header-name",
                "{name:?}"
            );
        }
        for value in ["", " ", " a", "a ", "a\r\nb: c", "a\0", "ä", "\u{7f}"] {
            assert_eq!(
                check("a", value).unwrap_err().code,
                "invalid-header-value",
                "{value:?}"
            );
        }
        for value in [
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
        ] {
            assert_eq!(
                check("content-type", value).unwrap_err().code,
                "invalid-header-value"
            );
        }
    }
}
