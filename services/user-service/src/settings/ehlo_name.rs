use app_config::{PublicUrl, SettingValue};
use url::{Host, Url};
use values::Secret;

const MAX_LENGTH: usize = 255;

/// The parameter of `EHLO` (RFC 5321 section 4.1.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EhloName(pub(super) String);

impl SettingValue for EhloName {
    const ALLOWED: &'static str =
        "a host name such as countersign.example.com, or an IP address, at most 255 characters";
    const EXAMPLE: &'static str = "countersign.example.com";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_LENGTH {
            return Err("it is too long".to_owned());
        }
        let literal = text.strip_prefix("[IPv6:").or(text.strip_prefix('['));
        let text = literal.map_or(text, |literal| literal.trim_end_matches(']'));
        match text.parse() {
            Ok(std::net::IpAddr::V4(address)) => return Ok(Self(format!("[{address}]"))),
            Ok(std::net::IpAddr::V6(address)) => return Ok(Self(format!("[IPv6:{address}]"))),
            Err(_) => {}
        }
        match Host::parse(text) {
            Ok(Host::Domain(name)) if is_host_name(&name) => Ok(Self(name)),
            _ => Err("it is not a host name".to_owned()),
        }
    }
}

impl EhloName {
    /// The path of `SMTP_URL`, which named it before there was a setting.
    pub(super) fn of_path(smtp_url: &Secret) -> Option<Self> {
        let url = Url::parse(smtp_url.expose()).ok()?;
        let name = url.path().trim_matches('/');
        Self::parse(name).ok()
    }

    /// The host of a URL, if it is a full name. Mail servers refuse others.
    pub(super) fn of_host(public_url: &PublicUrl) -> Option<Self> {
        let url = Url::parse(&public_url.to_string()).ok()?;
        match url.host()? {
            Host::Domain(name) if name.contains('.') => Self::parse(name).ok(),
            _ => None,
        }
    }
}

/// Letters, digits and hyphens, in labels that are not empty.
fn is_host_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut labels = name.trim_end_matches('.').split('.');
    labels.all(|label| !label.is_empty() && label.chars().all(is_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<String> {
        EhloName::parse(text).ok().map(|EhloName(name)| name)
    }

    #[test]
    fn a_name_is_a_host_name_or_an_address_literal() {
        for (text, expected) in [
            ("mail.example.com", "mail.example.com"),
            ("münchen.example", "xn--mnchen-3ya.example"),
            ("relay", "relay"),
            ("192.0.2.1", "[192.0.2.1]"),
            ("[192.0.2.1]", "[192.0.2.1]"),
            ("[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["a b", "a\r\nQUIT", "a_b", "", "a..b", "https://example.com"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parsed(&"a.".repeat(200)), None);
    }
}
