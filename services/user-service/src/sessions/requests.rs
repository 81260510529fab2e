//! What browsers send: a session's cookie, the name of an exchange, and headers that say where a page is from. A request of
//! another site is refused: browsers say so in headers that pages cannot set.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{COOKIE, HeaderValue, ORIGIN, USER_AGENT};
use audit_log::RequestMeta;
use http_kit::forwarded_for::{TrustedProxies, forwarded};
use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::{Fingerprint, Invalid, Secret};

use crate::client_network::ClientNetwork;

const MIN_ATTEMPT: usize = 32;
const MAX_ATTEMPT: usize = 128;

/// The body of an exchange.
#[derive(Debug, ToSchema)]
pub(super) struct ExchangeRequest {
    /// A random text of 32 to 128 characters that names this exchange. A browser that got no response repeats it, together
    /// with its cookie.
    #[schema(value_type = Option<String>, min_length = 32, max_length = 128, example = "9c1f0a5e7d3b4c2a8e6f1d0b9a7c5e3f")]
    pub(super) attempt: Option<Fingerprint>,
}

impl ExchangeRequest {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let attempt = fields.optional::<Secret>("attempt");
        let length = attempt.as_ref().map(|attempt| attempt.expose().len());
        if length.is_some_and(|length| !(MIN_ATTEMPT..=MAX_ATTEMPT).contains(&length)) {
            let message = "Must have 32 to 128 characters.";
            fields.reject("attempt", Invalid::new("invalid-length", message));
        }
        fields.finish()?;
        Ok(Self {
            attempt: attempt.map(|attempt| attempt.fingerprint()),
        })
    }
}

const MAX_PROGRAM: usize = 200;

/// A browser whose page asks for its own session.
#[derive(Debug, Clone)]
pub(super) struct Browser {
    pub(super) is_secure: bool,
    pub(super) cookie: Option<CookieValues>,
    pub(super) network: ClientNetwork,
    pub(super) program: String,
}

pub(super) fn cross_site_request() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "cross-site-request",
        "Only the pages of this server may use sessions. Programs get tokens from `POST /user/auth`.",
    )
}

http_kit::extractors! {
    Browser = |request| {
        if !is_same_origin(&request) {
            return Err(cross_site_request());
        }
        let is_secure = is_secure(&request);
        Ok(Self {
            is_secure,
            cookie: CookieValues::of(&request, is_secure),
            network: ClientNetwork::of(&RequestMeta::of(&request)),
            program: program(&request),
        })
    };
}

/// Whether a page of this server sent the request. Browsers before 2023 do not say so, but name the page's origin. A page that
/// came without TLS may be forged, so it may not ask over TLS.
fn is_same_origin(request: &HttpRequest) -> bool {
    if let Some(site) = request.headers().get("sec-fetch-site") {
        return site == "same-origin";
    }
    let origin = request.headers().get(ORIGIN).map(HeaderValue::to_str);
    let origin = origin.and_then(Result::ok).unwrap_or_default();
    origin.split_once("://").is_some_and(|(scheme, page)| {
        host(request).is_some_and(|host| host.eq_ignore_ascii_case(page))
            && (scheme == "https" || !is_over_tls(request))
    })
}

fn host(request: &HttpRequest) -> Option<&str> {
    forwarded(request, "x-forwarded-host", TrustedProxies::Peer)
}

/// Whether the browser sent the request over TLS, as the gateway reports it.
fn is_over_tls(request: &HttpRequest) -> bool {
    forwarded(request, "x-forwarded-proto", TrustedProxies::Peer) == Some("https")
}

/// Whether the cookie is for connections with TLS only: everywhere but on the developer's own machine without TLS.
fn is_secure(request: &HttpRequest) -> bool {
    is_over_tls(request) || !host(request).is_some_and(is_local)
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let address = name.parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn program(request: &HttpRequest) -> String {
    let given = request.headers().get(USER_AGENT).map(HeaderValue::to_str);
    let given = given.and_then(Result::ok).unwrap_or_default();
    given.chars().take(MAX_PROGRAM).collect()
}

/// The name of the cookie on connections with TLS. Browsers take the prefix only from those.
const SECURE_NAME: &str = "__Secure-countersign-session";
/// Its name on the developer's own machine, where there is no TLS.
const LOCAL_NAME: &str = "countersign-session";
/// The only paths to which browsers send it.
const PATH: &str = "/session";
const DIGITS: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct CookieValues {
    /// Finds the session, and never changes.
    finder: Secret,
    /// Is replaced by every exchange.
    secret: Secret,
}

impl CookieValues {
    pub(super) fn random() -> Self {
        Self {
            finder: Secret::random(),
            secret: Secret::random(),
        }
    }

    /// The values of the same session after an exchange.
    pub(super) fn replaced(&self) -> Self {
        Self {
            finder: self.finder.clone(),
            secret: Secret::random(),
        }
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.finder.fingerprint()
    }

    pub(super) fn secret(&self) -> Fingerprint {
        self.secret.fingerprint()
    }

    /// The values of a request's cookie. A request with several such cookies has none: a page of a neighbouring host may have
    /// set the other ones.
    pub(super) fn of(request: &HttpRequest, is_secure: bool) -> Option<Self> {
        let lines = request.headers().get_all(COOKIE);
        let lines = lines.filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';'));
        let mut found = pairs
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| name.trim() == cookie_name(is_secure));
        let (_, value) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        Self::parse(value.trim())
    }

    fn parse(text: &str) -> Option<Self> {
        let (finder, secret) = text.split_once('.')?;
        let is_value =
            |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_value(finder) && is_value(secret)).then(|| Self {
            finder: Secret::new(finder),
            secret: Secret::new(secret),
        })
    }

    pub(super) fn header(&self, is_secure: bool, lifetime: Duration) -> Option<HeaderValue> {
        let value = format!("{}.{}", self.finder.expose(), self.secret.expose());
        cookie_header(&value, is_secure, lifetime)
    }
}

pub(super) fn cookie_removal(is_secure: bool) -> Option<HeaderValue> {
    cookie_header("", is_secure, Duration::ZERO)
}

fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_NAME } else { LOCAL_NAME }
}

fn cookie_header(value: &str, is_secure: bool, lifetime: Duration) -> Option<HeaderValue> {
    let (name, seconds) = (cookie_name(is_secure), lifetime.as_secs());
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path={PATH}; Max-Age={seconds}; HttpOnly{secure}; SameSite=Strict"
    );
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn asked(headers: &[(&'static str, &'static str)]) -> TestRequest {
        let request = TestRequest::default()
            .peer_addr("192.0.2.9:1234".parse().unwrap())
            .insert_header(("x-forwarded-host", "tasks.example:8443"));
        headers
            .iter()
            .fold(request, |request, header| request.insert_header(*header))
    }

    #[test]
    fn only_pages_of_the_same_origin_may_ask() {
        for (headers, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "https://tasks.example:8443")], true),
            (&[("origin", "https://tasks.example")], false),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "null")], false),
            (&[("origin", "http://tasks.example:8443")], true),
            (
                &[
                    ("origin", "http://tasks.example:8443"),
                    ("x-forwarded-proto", "https"),
                ],
                false,
            ),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("origin", "https://tasks.example:8443"),
                ],
                false,
            ),
            (&[], false),
        ] {
            let request = asked(headers).to_http_request();
            assert_eq!(is_same_origin(&request), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_cookie_without_tls_is_for_this_machine_only() {
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("localhost.example", false),
            ("192.168.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_local(host), expected, "{host}");
        }
        for (scheme, host, expected) in [
            ("http", "localhost:8080", false),
            ("https", "localhost:8443", true),
            ("http", "tasks.example", true),
        ] {
            let headers = [("x-forwarded-proto", scheme), ("x-forwarded-host", host)];
            let request = asked(&headers).to_http_request();
            assert_eq!(is_secure(&request), expected, "{scheme} {host}");
        }
    }

    fn values(cookies: &[&str], is_secure: bool) -> Option<CookieValues> {
        let request = cookies
            .iter()
            .fold(TestRequest::default(), |request, line| {
                request.append_header(("cookie", *line))
            });
        CookieValues::of(&request.to_http_request(), is_secure)
    }

    #[test]
    fn a_cookie_is_read_back_as_it_was_set() {
        for is_secure in [true, false] {
            let set = CookieValues::random();
            let header = set.header(is_secure, Duration::from_secs(60)).unwrap();
            let text = header.to_str().unwrap();
            assert_eq!(text.contains("; Secure"), is_secure, "{text}");
            let pair = text.split(';').next().unwrap();
            let read = values(&["other=1", &format!("a=b; {pair}")], is_secure).unwrap();
            assert!(read.fingerprint().matches(set.fingerprint().as_bytes()));
            assert!(read.secret().matches(set.secret().as_bytes()));
            assert!(values(&[pair], !is_secure).is_none());
            assert!(values(&[pair, pair], is_secure).is_none());
        }
    }

    #[test]
    fn other_values_are_none() {
        let digits = "a".repeat(DIGITS);
        for value in [
            String::new(),
            digits.clone(),
            format!("{digits}.{}", &digits[1..]),
            format!("{digits}.{digits}.{digits}"),
            format!("{digits}.{}g", &digits[1..]),
        ] {
            let pair = format!("{LOCAL_NAME}={value}");
            assert!(values(&[&pair], false).is_none(), "{value}");
        }
        assert!(values(&[], false).is_none());
    }
}
