use std::net::{IpAddr, Ipv6Addr};

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

#[cfg(test)]
mod tests {
    use super::client_network;

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
