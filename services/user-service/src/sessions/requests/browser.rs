//! The browser that a request comes from. A request of another site is refused: browsers say so in headers that pages cannot
//! set.

use std::future::{Ready, ready};
use std::net::IpAddr;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, ORIGIN, USER_AGENT};
use actix_web::{FromRequest, HttpRequest};
use audit_log::RequestMeta;
use http_kit::Problem;
use http_kit::forwarded_for::{TrustedProxies, forwarded};

use super::cookie::CookieValues;
use crate::client_network::ClientNetwork;

/// The characters of a program's name that are kept.
const MAX_PROGRAM: usize = 200;

/// A browser whose page asks for its own session.
#[derive(Debug, Clone)]
pub(in crate::sessions) struct Browser {
    /// Whether the cookie is for connections with TLS only.
    pub(in crate::sessions) is_secure: bool,
    pub(in crate::sessions) cookie: Option<CookieValues>,
    pub(in crate::sessions) network: ClientNetwork,
    /// What the browser calls itself.
    pub(in crate::sessions) program: String,
}

/// `403 cross-site-request`.
pub(in crate::sessions) fn cross_site_request() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "cross-site-request",
        "Only the pages of this server may use sessions. Programs get tokens from `POST /user/auth`.",
    )
}

impl FromRequest for Browser {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        if !is_same_origin(request) {
            return ready(Err(cross_site_request()));
        }
        let is_secure = is_secure(request);
        ready(Ok(Self {
            is_secure,
            cookie: CookieValues::of(request, is_secure),
            network: ClientNetwork::of(&RequestMeta::of(request)),
            program: program(request),
        }))
    }
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

/// The host that the browser asked for, as the gateway reports it.
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

/// Whether a host with its port is this machine.
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

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::{is_local, is_same_origin, is_secure};

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
}
