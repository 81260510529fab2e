//! An address that is not public is refused in every notation.

#![cfg(test)]

use std::net::Ipv4Addr;

use outbound::AddressPolicy;
use proptest::prelude::*;
use url::Url;

/// Addresses that are not public.
fn not_public() -> impl Strategy<Value = Ipv4Addr> {
    let ranges = prop_oneof![
        Just((10, 0..=255_u8)),
        Just((127, 0..=255)),
        Just((169, 254..=254)),
        Just((172, 16..=31)),
        Just((192, 168..=168)),
    ];
    let addresses = (ranges, any::<[u8; 2]>());
    addresses.prop_flat_map(|((a, b), [c, d])| b.prop_map(move |b| Ipv4Addr::new(a, b, c, d)))
}

/// Every notation that a URL may use.
fn notations(address: Ipv4Addr) -> [String; 9] {
    let [a, b, c, d] = address.octets();
    let number = address.to_bits();
    let mapped = address.to_ipv6_mapped();
    [
        format!("{address}"),
        format!("{number}"),
        format!("{number:#x}"),
        format!("0{number:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{}", u32::from_be_bytes([0, b, c, d])),
        format!("[{mapped}]"),
        format!("[::ffff:{:x}:{:x}]", number >> 16, number & 0xffff),
    ]
}

proptest! {
    #[test]
    fn every_notation_of_an_address_that_is_not_public_is_refused(address in not_public()) {
        let policy = AddressPolicy::default();
        for host in notations(address) {
            let url = Url::parse(&format!("http://{host}:8080/path")).unwrap();
            prop_assert!(policy.check_url(&url).is_err(), "{}", host);
        }
    }

    #[test]
    fn no_url_panics(text in "https?://[ -~]{0,60}") {
        if let Ok(url) = Url::parse(&text) {
            let _ = AddressPolicy::default().check_url(&url);
        }
    }
}
