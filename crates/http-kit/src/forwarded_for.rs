//! The `X-Forwarded-For`, `-Proto` and `-Host` headers, as far as trusted proxies wrote them.
//!
//! A proxy appends an entry for the address that it was called from. Anything before the entries of
//! trusted proxies comes from the caller and is ignored.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;
use app_config::Networks;

/// The proxies whose entries count.
#[derive(Debug, Clone, Copy)]
pub enum TrustedProxies<'a> {
    /// The peer alone: only the gateway calls a service.
    Peer,
    /// Every proxy in these networks.
    Networks(&'a Networks),
}

/// The address of the client; `None` only if it is the peer's and the socket has just been closed.
pub fn client_address(request: &HttpRequest, trusted: TrustedProxies<'_>) -> Option<IpAddr> {
    let peer = peer_address(request);
    let entries: Vec<_> = entries(request, "x-forwarded-for").collect();
    let mut addresses = entries.into_iter().rev().map(parse_address);
    match trusted {
        TrustedProxies::Peer => addresses.next().flatten().or(peer),
        TrustedProxies::Networks(networks) => {
            let mut client = peer?;
            while networks.contains(client)
                && let Some(Some(address)) = addresses.next()
            {
                client = address;
            }
            Some(client)
        }
    }
}

/// The unit by which a client is limited: an IPv4 address, or the /64 network of an IPv6 address, because
/// a client usually has the whole network.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The value that the nearest proxy sent in a header such as `X-Forwarded-Proto`; `None` if it is not trusted.
pub fn forwarded<'a>(
    request: &'a HttpRequest,
    name: &str,
    trusted: TrustedProxies<'_>,
) -> Option<&'a str> {
    let is_trusted = match trusted {
        TrustedProxies::Peer => true,
        TrustedProxies::Networks(networks) => {
            peer_address(request).is_some_and(|peer| networks.contains(peer))
        }
    };
    let last = entries(request, name).last();
    last.filter(|entry| is_trusted && !entry.is_empty())
}

fn peer_address(request: &HttpRequest) -> Option<IpAddr> {
    Some(request.peer_addr()?.ip().to_canonical())
}

/// An address. Some proxies append the client's port, put brackets around an IPv6 address as in a URL, or quote both as
/// in `Forwarded` (RFC 7239).
fn parse_address(entry: &str) -> Option<IpAddr> {
    let entry = between(entry, '"', '"');
    let with_port = || Some(entry.parse::<SocketAddr>().ok()?.ip());
    let in_brackets = || between(entry, '[', ']').parse::<Ipv6Addr>().ok();
    let address = entry.parse().ok().or_else(with_port);
    let address = address.or_else(|| in_brackets().map(IpAddr::V6))?;
    Some(address.to_canonical())
}

/// The text between two characters, or all of it if it has not both.
fn between(text: &str, start: char, end: char) -> &str {
    let inner = text
        .strip_prefix(start)
        .and_then(|text| text.strip_suffix(end));
    inner.unwrap_or(text)
}

/// The entries of all lines of a header, in their order. They are split as bytes, because a caller can put
/// any bytes before the entry that a proxy appends. An entry that is not ASCII is empty.
fn entries<'a>(request: &'a HttpRequest, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let lines = request.headers().get_all(name);
    let entries = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    entries.map(|entry| match str::from_utf8(entry) {
        Ok(text) if text.is_ascii() => text.trim(),
        _ => "",
    })
}

#[cfg(test)]
mod tests {
    use actix_web::HttpRequest;
    use actix_web::http::header::{HeaderName, HeaderValue};
    use actix_web::test::TestRequest;
    use app_config::{Networks, SettingValue as _};

    use super::{TrustedProxies, client_address, client_network, forwarded};

    fn request(peer: &str, headers: &[(&str, &str)]) -> HttpRequest {
        let peer = format!("{peer}:1234").parse().unwrap();
        let mut request = TestRequest::default().peer_addr(peer);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            request = request.append_header((name, value));
        }
        request.to_http_request()
    }

    /// The client behind `peer` with these lines of `X-Forwarded-For`, for a service (which trusts its
    /// peer) and for a gateway that trusts 10.0.0.0/8.
    fn clients(peer: &str, lines: &[&str]) -> [String; 2] {
        let networks = Networks::parse("10.0.0.0/8").unwrap();
        let headers: Vec<_> = lines
            .iter()
            .map(|line| ("x-forwarded-for", *line))
            .collect();
        let request = request(peer, &headers);
        [TrustedProxies::Peer, TrustedProxies::Networks(&networks)]
            .map(|trusted| client_address(&request, trusted).unwrap().to_string())
    }

    #[test]
    fn the_client_is_the_peer_when_nothing_is_forwarded() {
        assert_eq!(clients("10.0.0.2", &[]), ["10.0.0.2"; 2]);
        assert_eq!(clients("203.0.113.9", &[]), ["203.0.113.9"; 2]);
    }

    #[test]
    fn an_untrusted_peer_cannot_forward_an_address() {
        let [service, gateway] = clients("203.0.113.9", &["1.1.1.1"]);
        assert_eq!(
            (service.as_str(), gateway.as_str()),
            ("1.1.1.1", "203.0.113.9")
        );
    }

    #[test]
    fn a_service_reads_one_entry_and_a_gateway_those_of_all_trusted_proxies() {
        let [service, gateway] = clients("10.0.0.2", &["6.6.6.6, 198.51.100.7", "10.0.0.3"]);
        assert_eq!(
            (service.as_str(), gateway.as_str()),
            ("10.0.0.3", "198.51.100.7")
        );
    }

    #[test]
    fn an_entry_that_is_not_an_address_ends_the_chain() {
        assert_eq!(clients("10.0.0.2", &["unknown"]), ["10.0.0.2"; 2]);
        assert_eq!(clients("10.0.0.2", &["unknown, 10.0.0.9"]), ["10.0.0.9"; 2]);
        assert_eq!(clients("10.0.0.2", &["6.6.6.6, é"]), ["10.0.0.2"; 2]);
    }

    #[test]
    fn foreign_bytes_do_not_hide_the_entry_of_the_proxy() {
        for lines in [&["é, 203.0.113.5"][..], &["6.6.6.6", "é, 203.0.113.5"]] {
            assert_eq!(clients("10.0.0.2", lines), ["203.0.113.5"; 2]);
        }
    }

    #[test]
    fn ports_are_ignored_and_mapped_addresses_are_ipv4() {
        for (entry, address) in [
            ("198.51.100.7:49152", "198.51.100.7"),
            ("[2001:db8::7]:49152", "2001:db8::7"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("[::ffff:198.51.100.7]", "198.51.100.7"),
            ("\"2001:db8::7\"", "2001:db8::7"),
            ("\"[2001:db8::7]\"", "2001:db8::7"),
            ("\"[2001:db8::7]:49152\"", "2001:db8::7"),
            ("\"198.51.100.7\"", "198.51.100.7"),
            ("\"198.51.100.7:49152\"", "198.51.100.7"),
        ] {
            assert_eq!(clients("10.0.0.2", &[entry]), [address; 2]);
        }
    }

    #[test]
    fn half_a_pair_of_brackets_or_quotes_is_no_address() {
        for entry in [
            "[2001:db8::7",
            "2001:db8::7]",
            "\"2001:db8::7",
            "[198.51.100.7]",
            "[[2001:db8::7]]",
            "[]",
            "\"",
        ] {
            assert_eq!(clients("10.0.0.2", &[entry]), ["10.0.0.2"; 2], "{entry}");
        }
    }

    #[test]
    fn a_trusted_peer_forwards_the_scheme_and_an_untrusted_one_does_not() {
        let networks = Networks::parse("10.0.0.0/8").unwrap();
        let trusted = TrustedProxies::Networks(&networks);
        let scheme = |peer, line| {
            let request = request(peer, &[("x-forwarded-proto", line)]);
            forwarded(&request, "x-forwarded-proto", trusted).map(str::to_owned)
        };
        assert_eq!(scheme("10.0.0.2", "http, https").as_deref(), Some("https"));
        assert_eq!(scheme("10.0.0.2", "é, https").as_deref(), Some("https"));
        assert_eq!(scheme("10.0.0.2", "https, é"), None);
        assert_eq!(scheme("203.0.113.9", "https"), None);
    }

    #[test]
    fn an_ipv6_network_is_one_client_and_a_mapped_address_is_ipv4() {
        for (address, network) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("192.0.2.7", "192.0.2.7"),
        ] {
            let counted = client_network(address.parse().unwrap());
            assert_eq!(counted.to_string(), network, "{address}");
        }
    }
}
