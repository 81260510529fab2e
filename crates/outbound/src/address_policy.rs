use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use app_config::Networks;
use ipnet::IpNet;
use url::{Host, Url};

use crate::Resolve;

/// Why a URL may not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheme is neither `http` nor `https`.
    #[error("the scheme must be http or https")]
    Scheme,
    /// The URL has no host.
    #[error("the URL has no host")]
    NoHost,
    /// The host is or resolves to an address that is neither public nor allowed.
    #[error("the address {0} is not public; WEBHOOK_ALLOWED_NETWORKS does not allow it")]
    NotPublic(IpAddr),
}

app_config::settings! {
    /// Decides which addresses may be called: public ones, and those in networks that the operator allows.
    ///
    /// An IPv6 address that embeds an IPv4 address (mapped, compatible, NAT64, 6to4) is treated as the latter.
    /// Link-local, multicast, broadcast and unspecified addresses, and those at which clouds tell their machines
    /// secrets, are allowed only by a network inside their range.
    #[derive(Default)]
    pub struct AddressPolicy {
        /// Non-public networks that webhooks may reach.
        pub allowed: Networks = or_default("WEBHOOK_ALLOWED_NETWORKS", ""),
    }
}

impl AddressPolicy {
    /// Whether the address may be called.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        let effective = match address.to_canonical() {
            IpAddr::V6(v6) => embedded(v6).map_or(IpAddr::V6(v6), IpAddr::V4),
            v4 => v4,
        };
        let mut ranges = ALLOWED_EXPLICITLY.iter();
        let range = ranges.find(|range| range.contains(&effective));
        let allows = |network: &IpNet| {
            network.contains(&effective) && range.is_none_or(|range| range.contains(network))
        };
        let is_public = match effective {
            IpAddr::V4(v4) => is_public_v4(v4),
            IpAddr::V6(v6) => is_public_v6(v6),
        };
        is_public && range.is_none() || self.allowed.0.iter().any(allows)
    }

    /// Returns the address if it may be called.
    ///
    /// # Errors
    /// The address is neither public nor allowed.
    pub fn check_address(&self, address: IpAddr) -> Result<IpAddr, Refusal> {
        if self.permits(address) {
            Ok(address)
        } else {
            Err(Refusal::NotPublic(address))
        }
    }

    /// Checks a URL without resolving its host. It recognises literal addresses in every notation (`127.1`,
    /// `0x7f000001`, `[::ffff:7f00:1]` …).
    ///
    /// # Errors
    /// The scheme is neither http nor https, or the host is a literal address that may not be called.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        let literal = match url.host().ok_or(Refusal::NoHost)? {
            Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
            Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
            Host::Domain("") => return Err(Refusal::NoHost),
            // The URL parser leaves no address here, but the connector parses the name again.
            Host::Domain(name) => name.trim_end_matches('.').parse().ok(),
        };
        literal.map_or(Ok(()), |address| self.check_address(address).map(drop))
    }

    /// Checks a URL that is to be called later: like [`AddressPolicy::check_url`], and every address that the
    /// host has now. A host that does not resolve now is accepted.
    ///
    /// # Errors
    /// Like [`AddressPolicy::check_url`], or an address of the host may not be called.
    pub async fn check_registration(
        &self,
        url: &Url,
        resolver: &dyn Resolve,
    ) -> Result<(), Refusal> {
        self.check_url(url)?;
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        for address in resolver.resolve(name).await.unwrap_or_default() {
            self.check_address(address)?;
        }
        Ok(())
    }
}

/// Ranges that only a network inside them allows.
const ALLOWED_EXPLICITLY: [IpNet; 15] = [
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
    // The services of AWS for its machines, the metadata services of Google Cloud, Oracle, Scaleway, Akamai and Alibaba Cloud
    // that are not link-local, and the agent of Azure.
    IpNet::new_assert(
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0)),
        32,
    ),
    metadata_v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]),
    metadata_v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]),
    metadata_v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]),
    metadata_v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1]),
    metadata_v6([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200]),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), 32),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)), 32),
];

const fn metadata_v6([a, b, c, d, e, f, g, h]: [u16; 8]) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), 128)
}

/// Whether the IANA registry of special-purpose IPv4 addresses calls the address globally reachable.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        // "This network", private, loopback, multicast, reserved, broadcast.
        (0 | 10 | 127 | 224..=255, _, _)
        // Shared address space of providers.
        | (100, 64..=127, _)
        | (169, 254, _)
        | (172, 16..=31, _)
        | (192, 168, _)
        // Protocol assignments, documentation, 6to4 relays, benchmarking, documentation.
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113)
    )
}

/// Only `2000::/3` is global unicast, with exceptions inside it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let global_unicast = a & 0xe000 == 0x2000;
    // Protocol assignments (Teredo, benchmarking, ORCHID …), documentation, 6to4.
    let special = matches!(
        (a, b),
        (0x2001, 0..=0x01ff | 0x0db8) | (0x2002, _) | (0x3fff, 0..=0x0fff)
    );
    global_unicast && !special
}

fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let (high, low) = match (a, b, c, d, e, f) {
        // Compatible, except `::` and `::1`.
        (0, 0, 0, 0, 0, 0) if g != 0 || h > 1 => (g, h),
        // NAT64.
        (0x0064, 0xff9b, 0, 0, 0, 0) => (g, h),
        // 6to4.
        (0x2002, high, low, _, _, _) => (high, low),
        _ => return None,
    };
    let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(w, x, y, z))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use app_config::{Networks, SettingValue as _};
    use url::Url;

    use super::{AddressPolicy, Refusal};

    const PUBLIC: &str = "
        1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.1 192.169.0.1
        198.17.255.255 198.20.0.0 223.255.255.255 2606:4700:4700::1111 2001:200::1
        2a00:1450:4001:830::200e ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1 ::8.8.8.8";

    const SPECIAL: &str = "
        0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255
        169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1
        198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
        255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1
        64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:db8::1 2002:7f00:1::1
        2002:a00:1:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1";

    fn allowing(networks: &str) -> AddressPolicy {
        AddressPolicy {
            allowed: Networks::parse(networks).unwrap(),
        }
    }

    fn permits(policy: &AddressPolicy, address: &str) -> bool {
        policy.permits(address.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in PUBLIC.split_whitespace() {
            assert!(permits(&AddressPolicy::default(), address), "{address}");
        }
    }

    #[test]
    fn special_addresses_are_refused() {
        for address in SPECIAL.split_whitespace() {
            assert!(!permits(&AddressPolicy::default(), address), "{address}");
        }
    }

    #[test]
    fn an_allowed_network_permits_its_addresses_in_every_form() {
        let policy = allowing("127.0.0.0/8,::1/128,10.1.0.0/16,fc00::/7");
        for address in [
            "127.0.0.1",
            "::1",
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "64:ff9b::a01:203",
            "fd12::1",
        ] {
            assert!(permits(&policy, address), "{address}");
        }
        for address in ["10.2.0.1", "192.168.0.1", "fe80::1", "169.254.169.254"] {
            assert!(!permits(&policy, address), "{address}");
        }
    }

    #[test]
    fn a_wide_network_does_not_permit_link_local_multicast_or_metadata_addresses() {
        let wide = allowing("0.0.0.0/0,::/0,160.0.0.0/3");
        assert!(permits(&wide, "10.0.0.1") && permits(&wide, "fd00::1"));
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "224.0.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "fe80::1",
            "ff02::1",
            "::",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fd00:a9fe:a9fe::1",
            "fd00:100::100:200",
            "100.100.100.200",
            "168.63.129.16",
        ] {
            assert!(!permits(&wide, address), "{address}");
            assert!(!permits(&AddressPolicy::default(), address), "{address}");
        }
        let named = allowing("169.254.0.0/16,fe80::/64");
        assert!(permits(&named, "169.254.169.254") && permits(&named, "fe80::1"));
        assert!(!permits(&named, "fe81::1"));
    }

    #[test]
    fn a_literal_address_is_recognised_in_every_notation() {
        let policy = AddressPolicy::default();
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://0x7f.1/",
            "http://1２7.0.0.1/",
            "http://user:password@127.0.0.1:8080/x",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:ffff:7f00:1]/",
            "https://[fe80::1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let refusal = policy.check_url(&Url::parse(url).unwrap()).unwrap_err();
            assert!(matches!(refusal, Refusal::NotPublic(_)), "{url}: {refusal}");
        }
        for url in [
            "http://8.8.8.8/",
            "https://[2606:4700::1]/",
            "http://example.com/",
        ] {
            assert_eq!(policy.check_url(&Url::parse(url).unwrap()), Ok(()), "{url}");
        }
        for url in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://8.8.8.8/",
        ] {
            let refused = policy.check_url(&Url::parse(url).unwrap());
            assert_eq!(refused, Err(Refusal::Scheme), "{url}");
        }
    }

    #[test]
    fn a_refusal_names_the_setting_that_would_allow_it() {
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(
            Refusal::NotPublic(address).to_string(),
            "the address 127.0.0.1 is not public; WEBHOOK_ALLOWED_NETWORKS does not allow it"
        );
    }
}
