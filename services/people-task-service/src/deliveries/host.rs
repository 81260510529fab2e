use url::Url;

/// The unit of fairness between receivers: the host of a webhook's URL, whatever its scheme and port. It is never
/// empty and contains no space.
pub(crate) fn host_of(url: &str) -> String {
    // Every URL was parsed at registration.
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or(url);
    // Scans start after the empty text, so a host of nothing but dots stays as it is.
    let trimmed = host.trim_end_matches('.');
    if trimmed.is_empty() { host } else { trimmed }.to_owned()
}

/// The scheme and the host of a webhook's URL, for people who may not see the rest.
pub(crate) fn scheme_and_host(url: &str) -> String {
    let is_https = url
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("https:"));
    let scheme = if is_https { "https" } else { "http" };
    format!("{scheme}://{}", host_of(url))
}

#[cfg(test)]
mod tests {
    use super::{host_of, scheme_and_host};

    #[test]
    fn scheme_and_host_are_without_credentials_port_path_and_query() {
        for (url, shown) in [
            (
                "HTTPS://u:p@Hooks.example.com:8443/in/secret?key=1#x",
                "https://hooks.example.com",
            ),
            ("http://[::1]:9/x", "http://[::1]"),
        ] {
            assert_eq!(scheme_and_host(url), shown);
        }
    }

    #[test]
    fn the_host_is_without_scheme_port_and_final_dot() {
        for (url, host) in [
            ("http://a.example.com/x?y=1", "a.example.com"),
            ("https://A.example.com:8443/", "a.example.com"),
            ("https://a.example.com./", "a.example.com"),
            ("http://u:p@127.0.0.1:8090/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://./", "."),
            ("http://[0:0::1]:80/", "[::1]"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }
}
