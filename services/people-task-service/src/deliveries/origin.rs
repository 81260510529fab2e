use url::Url;

/// The unit of fairness between receivers, which the column `origin` has: the host of a webhook's URL, whatever
/// its scheme and port.
pub(crate) fn origin_of(url: &str) -> String {
    // Every URL was parsed at registration.
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or(url);
    host.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::origin_of;

    #[test]
    fn an_origin_is_a_host() {
        for (url, origin) in [
            ("http://a.example.com/x?y=1", "a.example.com"),
            ("https://A.example.com:8443/", "a.example.com"),
            ("https://a.example.com./", "a.example.com"),
            ("http://u:p@127.0.0.1:8090/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://[0:0::1]:80/", "[::1]"),
        ] {
            assert_eq!(origin_of(url), origin);
        }
    }
}
