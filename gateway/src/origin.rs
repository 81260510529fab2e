//! Where a request came from, as far as that can be believed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderMap};
use app_config::Networks;

/// A request's origin, for `X-Forwarded-*` and rate limits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The client's address: the peer's, or what the proxies that we trust say about it.
    pub(crate) client: IpAddr,
    /// `http` or `https`, as the client sees it.
    pub(crate) scheme: &'static str,
    /// The host that the client asked for.
    pub(crate) host: Option<String>,
}

impl Origin {
    pub(crate) fn of(request: &HttpRequest, trusted: &Networks) -> Self {
        let (peer, own) = (peer(request), own_scheme(request));
        Self::believed(peer, own, request.headers(), trusted)
    }

    fn believed(
        peer: IpAddr,
        own_scheme: &'static str,
        headers: &HeaderMap,
        trusted: &Networks,
    ) -> Self {
        let forwarded = trusted
            .contains(peer)
            .then(|| last(headers, "x-forwarded-host"));
        let host = forwarded.flatten().or_else(|| last(headers, HOST.as_str()));
        Self {
            client: client(peer, headers, trusted),
            scheme: believed_scheme(peer, own_scheme, headers, trusted),
            host: host.map(str::to_owned),
        }
    }
}

/// `http` or `https`, as the client sees it.
pub(crate) fn scheme(request: &HttpRequest, trusted: &Networks) -> &'static str {
    believed_scheme(
        peer(request),
        own_scheme(request),
        request.headers(),
        trusted,
    )
}

fn peer(request: &HttpRequest) -> IpAddr {
    let peer = request.peer_addr().map(|address| address.ip());
    // Only a socket that has just been closed has no peer.
    peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

fn own_scheme(request: &HttpRequest) -> &'static str {
    if request.app_config().secure() {
        "https"
    } else {
        "http"
    }
}

/// The scheme at our own port, or what a proxy that we trust says about its own.
fn believed_scheme(
    peer: IpAddr,
    own: &'static str,
    headers: &HeaderMap,
    trusted: &Networks,
) -> &'static str {
    let forwarded = trusted
        .contains(peer)
        .then(|| last(headers, "x-forwarded-proto"));
    match forwarded.flatten() {
        Some(scheme) if scheme.eq_ignore_ascii_case("https") => "https",
        Some(_) => "http",
        None => own,
    }
}

/// Walks from the peer back along `X-Forwarded-For`, for as long as proxies that we trust wrote it.
fn client(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> IpAddr {
    let mut client = peer.to_canonical();
    let chain: Vec<_> = entries(headers, "x-forwarded-for").collect();
    for entry in chain.into_iter().rev() {
        if !trusted.contains(client) {
            break;
        }
        match address(entry) {
            Some(address) => client = address.to_canonical(),
            None => break,
        }
    }
    client
}

/// An address, which some proxies write with the client's port.
fn address(entry: &str) -> Option<IpAddr> {
    let with_port = || Some(entry.parse::<SocketAddr>().ok()?.ip());
    entry.parse().ok().or_else(with_port)
}

/// The entry that the nearest proxy wrote.
fn last<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    entries(headers, name)
        .last()
        .filter(|entry| !entry.is_empty())
}

/// The entries of all lines of a header, in their order. They are split as bytes, because what a stranger wrote
/// stands in one line with what a proxy added; one that is not ASCII is empty.
fn entries<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let entries = headers
        .get_all(name)
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    entries.map(|entry| match str::from_utf8(entry) {
        Ok(text) if text.is_ascii() => text.trim(),
        _ => "",
    })
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
    use app_config::{Networks, SettingValue as _};

    use super::Origin;

    fn origin(peer: &str, headers: &[(&str, &str)]) -> Origin {
        let trusted = Networks::parse("10.0.0.0/8").unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        Origin::believed(peer.parse().unwrap(), "http", &map, &trusted)
    }

    /// The client that these lines of `X-Forwarded-For` tell of, of which the last was written by a proxy.
    fn client(lines: &[&str]) -> String {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| ("x-forwarded-for", *line))
            .collect();
        origin("10.0.0.2", &lines).client.to_string()
    }

    #[test]
    fn a_strangers_word_does_not_count() {
        let headers = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.example"),
            ("host", "api.example"),
        ];
        let origin = origin("203.0.113.9", &headers);
        assert_eq!(origin.client.to_string(), "203.0.113.9");
        assert_eq!(origin.scheme, "http");
        assert_eq!(origin.host.as_deref(), Some("api.example"));
    }

    #[test]
    fn a_trusted_proxys_word_counts_and_what_stands_before_it_does_not() {
        let headers = [
            ("x-forwarded-for", "6.6.6.6, 198.51.100.7"),
            ("x-forwarded-for", "10.0.0.3"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "api.example"),
            ("host", "gateway.internal"),
        ];
        let origin = origin("10.0.0.2", &headers);
        assert_eq!(origin.client.to_string(), "198.51.100.7");
        assert_eq!(origin.scheme, "https");
        assert_eq!(origin.host.as_deref(), Some("api.example"));
    }

    #[test]
    fn a_chain_that_is_no_address_ends_at_the_last_one_that_is() {
        assert_eq!(client(&["unknown"]), "10.0.0.2");
        assert_eq!(client(&["::ffff:198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&["unknown, 10.0.0.9"]), "10.0.0.9");
    }

    #[test]
    fn bytes_of_a_stranger_do_not_hide_what_the_proxy_added() {
        assert_eq!(client(&["é, 203.0.113.5"]), "203.0.113.5");
        assert_eq!(client(&["6.6.6.6", "é, 203.0.113.5"]), "203.0.113.5");
        assert_eq!(client(&["6.6.6.6, é"]), "10.0.0.2");
        let headers = [
            ("x-forwarded-proto", "é, https"),
            ("x-forwarded-host", "é, api.example"),
        ];
        let origin = origin("10.0.0.2", &headers);
        assert_eq!(origin.scheme, "https");
        assert_eq!(origin.host.as_deref(), Some("api.example"));
    }

    #[test]
    fn a_port_behind_an_address_is_left_out() {
        assert_eq!(client(&["198.51.100.7:49152"]), "198.51.100.7");
        assert_eq!(client(&["[2001:db8::7]:49152"]), "2001:db8::7");
    }
}
