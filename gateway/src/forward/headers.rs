//! The method, path and headers that are sent to a service.
//!
//! actix-web has parsed the names and converted them to lower case, and only allow-listed names are sent,
//! so `X_Auth_User` or `X.Auth.User` cannot pass for a header that a service trusts.

use actix_web::dev::{Path, Url};
use actix_web::http::header::{CONNECTION, HeaderMap, HeaderName as GivenName};
use actix_web::http::{StatusCode, Uri};
use http::{HeaderMap as Outgoing, HeaderName, HeaderValue};
use http_kit::Problem;
use telemetry::RequestContext;

use crate::client_info::ClientInfo;
use crate::routes::{Access, Route};

/// The request headers that services read. `content-length` is set with the body.
static FORWARDED: [ForwardedName; 11] = [
    ForwardedName::new("accept"),
    ForwardedName::new("accept-language"),
    ForwardedName::new("authorization"),
    ForwardedName::new("content-encoding"),
    ForwardedName::new("content-type"),
    ForwardedName::new("idempotency-key"),
    ForwardedName::new("if-match"),
    ForwardedName::new("if-none-match"),
    ForwardedName::new("tracestate"),
    ForwardedName::new("user-agent"),
    ForwardedName::new("x-task-secret"),
];

/// The request headers that only the routes of sessions read: the cookie, and which page sent the request.
static OF_SESSIONS: [ForwardedName; 3] = [
    ForwardedName::new("cookie"),
    ForwardedName::new("origin"),
    ForwardedName::new("sec-fetch-site"),
];

pub(crate) fn forwarded_request_headers() -> impl Iterator<Item = &'static str> {
    FORWARDED.iter().map(|name| name.hyper.as_str())
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The name of a header that is passed on, as actix-web's type and as hyper's. It is parsed once, when this program is
/// compiled.
pub(super) struct ForwardedName {
    pub(super) actix: GivenName,
    pub(super) hyper: HeaderName,
}

impl ForwardedName {
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            actix: GivenName::from_static(name),
            hyper: HeaderName::from_static(name),
        }
    }
}

/// The longest path with its query, in bytes: far more than any call needs, and far less than what the
/// libraries on the way could refuse.
const MAX_TARGET_LENGTH: usize = 16 * 1024;

pub(super) fn check_length(target: &Uri) -> Result<(), Problem> {
    let length = target.path().len() + target.query().map_or(0, str::len);
    if length <= MAX_TARGET_LENGTH {
        return Ok(());
    }
    let detail = "The path and the query must have at most 16 KiB (16384 bytes).";
    let status = StatusCode::URI_TOO_LONG;
    Err(Problem::new(status, "uri-too-long", detail))
}

/// Replaces every value that cannot be an identifier.
const UNKNOWN_ID: &str = "-";

/// The path at the service: the route's template with the request's values. A value that cannot be an
/// identifier, such as `..` or one that needs percent-encoding, is replaced by one that does not exist, so
/// that the service still checks the caller first.
pub(super) fn path(route: &Route, values: &Path<Url>) -> String {
    let mut path = String::with_capacity(64);
    for segment in route.path.split('/').skip(1) {
        path.push('/');
        let name = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
        match name {
            None => path.push_str(segment),
            Some(name) => {
                let value = values.get(name).filter(|value| is_plain(value));
                path.push_str(value.unwrap_or(UNKNOWN_ID));
            }
        }
    }
    path
}

fn is_plain(value: &str) -> bool {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'~' | b'.');
    !matches!(value, "" | "." | "..") && value.bytes().all(unreserved)
}

/// The caller's headers that are passed on, and those that only the gateway may set.
pub(super) fn request_headers(access: Access, given: &HeaderMap, client: &ClientInfo) -> Outgoing {
    let mut headers = Outgoing::with_capacity(16);
    let of_sessions = OF_SESSIONS.iter().filter(|_| access == Access::Cookie);
    let dropped = hop_by_hop(given);
    for name in FORWARDED.iter().chain(of_sessions) {
        if dropped.contains(&&name.actix) {
            continue;
        }
        for value in given.get_all(&name.actix) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(&name.hyper, value);
            }
        }
    }
    identify(&mut headers, client);
    headers
}

/// Adds the headers that only the gateway may set: which request it is, and which client sent it.
pub(super) fn identify(headers: &mut Outgoing, client: &ClientInfo) {
    let context = RequestContext::current_or_fresh();
    set(headers, X_REQUEST_ID, &context.request_id);
    set(headers, TRACEPARENT, &context.trace.to_string());
    set(headers, X_FORWARDED_FOR, &client.address.to_string());
    headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(client.scheme));
    if let Some(host) = &client.host {
        set(headers, X_FORWARDED_HOST, host);
    }
}

fn set(headers: &mut Outgoing, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The headers to pass on that the caller's `Connection` header names (RFC 9110 section 7.6.1). It may be long, so it is read
/// once for each request.
fn hop_by_hop(given: &HeaderMap) -> Vec<&'static GivenName> {
    let listed = given.get_all(CONNECTION);
    let listed = listed.filter_map(|value| value.to_str().ok());
    let mut named = Vec::new();
    for option in listed.flat_map(|value| value.split(',')).map(str::trim) {
        let mut names = FORWARDED.iter().chain(&OF_SESSIONS).map(|name| &name.actix);
        let name = names.find(|name| option.eq_ignore_ascii_case(name.as_str()));
        named.extend(name.filter(|name| !named.contains(name)));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::{FORWARDED, OF_SESSIONS, is_plain};

    #[test]
    fn only_unreserved_characters_are_plain() {
        for value in ["65f0c0ffee65f0c0ffee65f0", "a_b-c~d.e", "..a"] {
            assert!(is_plain(value), "{value}");
        }
        for value in [
            "", ".", "..", "a/b", "%2e%2e", "a%2Fb", "a b", "ä", "a?b", "a;b", "a\\b",
        ] {
            assert!(!is_plain(value), "{value}");
        }
    }

    #[test]
    fn no_forwarded_header_is_one_that_services_trust() {
        for name in FORWARDED.iter().chain(&OF_SESSIONS) {
            let name = name.actix.as_str();
            assert!(!name.starts_with("x-forwarded") && !name.contains('_'));
        }
    }
}
