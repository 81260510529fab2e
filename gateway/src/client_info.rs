use std::net::{IpAddr, Ipv4Addr};

use actix_web::HttpRequest;
use actix_web::http::header::HOST;
use app_config::Networks;
use http_kit::forwarded_for::{TrustedProxies, client_address, forwarded};

/// The client as trusted proxies report it: for the `X-Forwarded-*` headers that services read, and for
/// rate limits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    pub(crate) address: IpAddr,
    pub(crate) scheme: &'static str,
    pub(crate) host: Option<String>,
}

impl ClientInfo {
    pub(crate) fn of(request: &HttpRequest, trusted: &Networks) -> Self {
        let proxies = TrustedProxies::Networks(trusted);
        let address = client_address(request, proxies);
        let host = forwarded(request, "x-forwarded-host", proxies)
            .or_else(|| request.headers().get(HOST)?.to_str().ok())
            .filter(|host| !host.is_empty());
        Self {
            // Only a socket that has just been closed has no address.
            address: address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            scheme: scheme(request, trusted),
            host: host.map(str::to_owned),
        }
    }
}

/// `http` or `https`, as the client sees it: the scheme of this port, or what a trusted proxy reports.
pub(crate) fn scheme(request: &HttpRequest, trusted: &Networks) -> &'static str {
    let proxies = TrustedProxies::Networks(trusted);
    match forwarded(request, "x-forwarded-proto", proxies) {
        Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
        Some(_) => "http",
        None if server::is_tls() => "https",
        None => "http",
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use app_config::{Networks, SettingValue as _};

    use super::ClientInfo;

    fn client(peer: &str) -> ClientInfo {
        let request = TestRequest::default()
            .peer_addr(peer.parse().unwrap())
            .append_header(("x-forwarded-for", "198.51.100.7"))
            .append_header(("x-forwarded-proto", "https"))
            .append_header(("x-forwarded-host", "evil.example, api.example"))
            .append_header(("host", "gateway.internal"));
        ClientInfo::of(
            &request.to_http_request(),
            &Networks::parse("10.0.0.0/8").unwrap(),
        )
    }

    #[test]
    fn a_trusted_proxy_reports_address_scheme_and_host() {
        let expected = ClientInfo {
            address: [198, 51, 100, 7].into(),
            scheme: "https",
            host: Some("api.example".to_owned()),
        };
        assert_eq!(client("10.0.0.2:1234"), expected);
    }

    #[test]
    fn the_forwarded_headers_of_an_untrusted_peer_are_ignored() {
        let expected = ClientInfo {
            address: [203, 0, 113, 9].into(),
            scheme: "http",
            host: Some("gateway.internal".to_owned()),
        };
        assert_eq!(client("203.0.113.9:1234"), expected);
    }
}
