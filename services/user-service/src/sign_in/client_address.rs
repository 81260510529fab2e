use actix_web::HttpRequest;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address that failures and requests for codes are counted by. The gateway appends the caller's address as the last
/// entry; what stands before it is the caller's own claim. Without a gateway it is the peer's address.
pub(crate) fn client_address(request: &HttpRequest) -> String {
    let forwarded = request.headers().get_all(FORWARDED_FOR).last();
    let last = forwarded
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.rsplit(',').next())
        .and_then(|entry| entry.trim().parse::<std::net::IpAddr>().ok());
    last.or_else(|| Some(request.peer_addr()?.ip()))
        .map_or_else(
            || "unknown".to_owned(),
            |address| address.to_canonical().to_string(),
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
