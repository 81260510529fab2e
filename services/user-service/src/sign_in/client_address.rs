use actix_web::HttpRequest;
use http_kit::client_network;

/// What failures and requests for codes are counted by: an IPv4 address, or an IPv6 /64 network.
pub(crate) fn client_address(request: &HttpRequest) -> String {
    http_kit::client_address(request).map_or_else(
        || "unknown".to_owned(),
        |address| client_network(address).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::client_address;

    #[test]
    fn the_last_entry_counts() {
        let request = TestRequest::default()
            .peer_addr("192.0.2.9:1234".parse().unwrap())
            .append_header(("X-Forwarded-For", "203.0.113.7, 198.51.100.1"))
            .append_header(("X-Forwarded-For", "198.51.100.2"))
            .to_http_request();
        assert_eq!(client_address(&request), "198.51.100.2");
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        let counted = |address: &str| {
            let request = TestRequest::default().append_header(("X-Forwarded-For", address));
            client_address(&request.to_http_request())
        };
        assert_eq!(counted("2001:db8:1:2::1"), "2001:db8:1:2::");
        assert_eq!(counted("2001:db8:1:2:ffff::9"), "2001:db8:1:2::");
        assert_ne!(counted("2001:db8:1:3::1"), "2001:db8:1:2::");
        assert_eq!(counted("::ffff:192.0.2.9"), "192.0.2.9");
    }

    #[test]
    fn without_a_gateway_it_is_the_peer() {
        let peer = "192.0.2.9:1234".parse().unwrap();
        let request = TestRequest::default().peer_addr(peer);
        assert_eq!(client_address(&request.to_http_request()), "192.0.2.9");
        let request = TestRequest::default()
            .peer_addr(peer)
            .append_header(("X-Forwarded-For", "not an address"));
        assert_eq!(client_address(&request.to_http_request()), "192.0.2.9");
    }
}
