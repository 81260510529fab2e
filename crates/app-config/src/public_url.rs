use url::Url;

use crate::{Error, Reader, SettingValue, Settings};

/// The address at which people reach the gateway, without a slash at the end. Links begin with it. It has no path,
/// because the web pages ask the root of their host for scripts and for the API.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub struct PublicUrl(String);

impl SettingValue for PublicUrl {
    const ALLOWED: &'static str = "the root of a host such as `https://countersign.example.com`, without a path, a query or credentials";
    const EXAMPLE: &'static str = "https://countersign.example.com";

    fn parse(text: &str) -> Result<Self, String> {
        let url = <Url as SettingValue>::parse(text)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it has a query or a fragment".to_owned());
        }
        if url.path() != "/" {
            let reason = "it has a path, but the web pages work only at the root of a host; give the gateway a host name \
                or a port of its own";
            return Err(reason.to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it has credentials, which every link would show".to_owned());
        }
        Ok(Self(url.origin().ascii_serialization()))
    }
}

impl Settings for PublicUrl {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        reader.or_default(
            "PUBLIC_URL",
            "http://localhost:8080",
            "The address at which people reach the gateway. Links begin with it unless they have a setting of their own.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::PublicUrl;
    use crate::SettingValue as _;

    #[test]
    fn the_root_of_a_host_has_no_slash_at_its_end() {
        for (text, expected) in [
            (
                "https://countersign.example.com",
                "https://countersign.example.com",
            ),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("HTTPS://[2001:DB8::1]:443", "https://[2001:db8::1]"),
        ] {
            assert_eq!(PublicUrl::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_no_link_can_begin_with_is_refused() {
        for (text, reason) in [
            ("http://127.0.0.1:28303/cs", "it has a path"),
            ("https://example.com/cs/", "it has a path"),
            ("https://example.com//", "it has a path"),
            ("https://example.com/?a", "a query"),
            ("https://example.com/#a", "a fragment"),
            ("https://ada@example.com", "credentials"),
            ("https://:secret@example.com", "credentials"),
            ("ftp://example.com", "not an http or https URL"),
        ] {
            let error = PublicUrl::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
