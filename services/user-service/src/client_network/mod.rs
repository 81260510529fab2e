//! The client network that a request comes from: what failures, requests for codes and waiting passwords
//! are counted by.

use std::sync::Arc;

use audit_log::RequestMeta;

/// An IPv4 address or an IPv6 /64 network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(Arc<str>);

impl ClientNetwork {
    /// Stands for work that no client requested.
    pub(crate) fn internal() -> Self {
        Self::from("internal")
    }

    pub(crate) fn of(meta: &RequestMeta) -> Self {
        match meta.client_network() {
            Some(network) => Self::from(network.to_string().as_str()),
            None => Self::from("unknown"),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClientNetwork {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use audit_log::RequestMeta;

    use super::ClientNetwork;

    fn network(request: TestRequest) -> String {
        let request = request.to_http_request();
        ClientNetwork::of(&RequestMeta::of(&request))
            .as_str()
            .to_owned()
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
