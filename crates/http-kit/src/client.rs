use std::net::{IpAddr, Ipv6Addr};

use actix_web::HttpRequest;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address that a request came from. The gateway appends the caller's address to `X-Forwarded-For`
/// as the last entry; what stands before it is the caller's own claim. Without a gateway it is the
/// peer's address, and `None` for a socket that is closed already.
#[must_use]
pub fn client_address(request: &HttpRequest) -> Option<IpAddr> {
    let forwarded = request.headers().get_all(FORWARDED_FOR).last();
    let last = forwarded
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.rsplit(',').next())
        .and_then(|entry| entry.trim().parse::<IpAddr>().ok());
    let address = last.or_else(|| Some(request.peer_addr()?.ip()))?;
    Some(address.to_canonical())
}

/// What a client address is counted by: an IPv4 address, or the /64 network of an IPv6 address, because
/// whoever has one of its addresses has the others, too.
#[must_use]
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use actix_web::test::TestRequest;

    use super::{client_address, client_network};

    fn from(peer: &str, forwarded: &[&str]) -> Option<IpAddr> {
        let mut request = TestRequest::default().peer_addr(peer.parse().unwrap());
        for value in forwarded {
            request = request.append_header(("X-Forwarded-For", *value));
        }
        client_address(&request.to_http_request())
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_last_entry_counts() {
        let forwarded = ["203.0.113.7, 198.51.100.1", "198.51.100.2"];
        assert_eq!(from("192.0.2.9:1234", &forwarded), address("198.51.100.2"));
        assert_eq!(
            from("192.0.2.9:1234", &["::ffff:198.51.100.7"]),
            address("198.51.100.7")
        );
    }

    #[test]
    fn without_a_gateway_it_is_the_peer() {
        assert_eq!(from("192.0.2.9:1234", &[]), address("192.0.2.9"));
        assert_eq!(
            from("192.0.2.9:1234", &["not an address"]),
            address("192.0.2.9")
        );
    }

    #[test]
    fn an_ipv6_network_counts_as_one_client_and_a_mapped_address_as_ipv4() {
        for (address, counted) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("192.0.2.7", "192.0.2.7"),
        ] {
            let network = client_network(address.parse().unwrap());
            assert_eq!(network.to_string(), counted, "{address}");
        }
    }
}
