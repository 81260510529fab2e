use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use http_kit::Problem;
use http_kit::forwarded_for::{TrustedProxies, client_address};

use super::ClientNetwork;

impl ClientNetwork {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        match client_address(request, TrustedProxies::Peer) {
            Some(address) => Self::from(http_kit::client_network(address).to_string().as_str()),
            None => Self::from("unknown"),
        }
    }
}

impl FromRequest for ClientNetwork {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::of(request)))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::ClientNetwork;

    fn network(request: TestRequest) -> String {
        let request = request.to_http_request();
        ClientNetwork::of(&request).as_str().to_owned()
    }

    #[test]
    fn the_last_forwarded_address_is_used() {
        let request = TestRequest::default()
            .peer_addr("192.0.2.9:1234".parse().unwrap())
            .append_header(("X-Forwarded-For", "203.0.113.7, 198.51.100.1"))
            .append_header(("X-Forwarded-For", "198.51.100.2"));
        assert_eq!(network(request), "198.51.100.2");
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let counted = |address: &str| {
            network(TestRequest::default().append_header(("X-Forwarded-For", address)))
        };
        assert_eq!(counted("2001:db8:1:2::1"), "2001:db8:1:2::");
        assert_eq!(counted("2001:db8:1:2:ffff::9"), "2001:db8:1:2::");
        assert_ne!(counted("2001:db8:1:3::1"), "2001:db8:1:2::");
        assert_eq!(counted("::ffff:192.0.2.9"), "192.0.2.9");
    }

    #[test]
    fn without_a_forwarded_address_the_peer_is_used() {
        let peer = "192.0.2.9:1234".parse().unwrap();
        let request = TestRequest::default().peer_addr(peer);
        assert_eq!(network(request), "192.0.2.9");
        let request = TestRequest::default()
            .peer_addr(peer)
            .append_header(("X-Forwarded-For", "not an address"));
        assert_eq!(network(request), "192.0.2.9");
    }
}
