use std::net::IpAddr;

use app_config::{PublicUrl, Reader, SettingValue, Settings as _};
use lettre::message::Mailbox;
use url::{Host, Url};
use values::{Secret, is_visible};

const MAX_EHLO_LENGTH: usize = 255;

/// A mail server and the sender's address.
#[derive(Debug, Clone)]
pub(crate) struct MailSettings {
    /// An `smtp://` or `smtps://` URL, with credentials if the server requires them.
    pub(crate) smtp_url: Secret,
    pub(crate) from: Sender,
    /// The name by which the worker introduces itself to the mail server (`EHLO`).
    pub(crate) ehlo_name: String,
}

/// The sender of e-mails: an address, or a name with an address in angle brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sender(pub Mailbox);

impl SettingValue for Sender {
    const ALLOWED: &'static str =
        "an e-mail address such as no-reply@example.com or `Countersign <no-reply@example.com>`";
    const EXAMPLE: &'static str = "no-reply@example.com";

    fn parse(text: &str) -> Result<Self, String> {
        let mailbox = text.trim().parse::<Mailbox>();
        let mailbox = mailbox.map_err(|_| "it is not an e-mail address".to_owned())?;
        if !AsRef::<str>::as_ref(&mailbox.email).is_ascii() {
            return Err(
                "its address has characters beyond ASCII; write the domain in punycode (xn--…)"
                    .to_owned(),
            );
        }
        match mailbox.name.as_deref() {
            Some(name) if !is_visible(name) => {
                Err("its name has no character that can be seen".to_owned())
            }
            _ => Ok(Self(mailbox)),
        }
    }
}

/// The URL of a mail server, as it was given and in parts.
struct SmtpUrl(Secret, Url);

impl SettingValue for SmtpUrl {
    const ALLOWED: &'static str = "a URL that starts with smtp:// or smtps://";
    const EXAMPLE: &'static str = "smtps://user:password@mail.example.com";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        match (url.scheme(), url.host()) {
            ("smtp" | "smtps", Some(_)) => Ok(Self(Secret::new(text), url)),
            _ => Err("it is not the URL of a mail server".to_owned()),
        }
    }
}

/// The parameter of `EHLO` (RFC 5321 section 4.1.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
struct EhloName(String);

impl SettingValue for EhloName {
    const ALLOWED: &'static str =
        "a host name such as countersign.example.com, or an IP address, at most 255 characters";
    const EXAMPLE: &'static str = "countersign.example.com";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_EHLO_LENGTH {
            return Err("it is too long".to_owned());
        }
        let literal = text.strip_prefix("[IPv6:").or(text.strip_prefix('['));
        let text = literal.map_or(text, |literal| literal.trim_end_matches(']'));
        match text.parse() {
            Ok(IpAddr::V4(address)) => return Ok(Self(format!("[{address}]"))),
            Ok(IpAddr::V6(address)) => return Ok(Self(format!("[IPv6:{address}]"))),
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
    fn of_path(smtp_url: &Url) -> Option<Self> {
        Self::parse(smtp_url.path().trim_matches('/')).ok()
    }

    /// The host of a URL, if it is a full name. Mail servers refuse others.
    fn of_host(public_url: &PublicUrl) -> Option<Self> {
        let url = Url::parse(&public_url.to_string()).ok()?;
        match url.host()? {
            Host::Domain(name) if name.contains('.') => Self::parse(name).ok(),
            _ => None,
        }
    }
}

impl MailSettings {
    pub(super) fn read(reader: &mut Reader) -> Result<Option<Self>, app_config::Error> {
        let public_url = PublicUrl::read(reader)?;
        let smtp_url = reader.optional::<SmtpUrl>(
            "SMTP_URL",
            "The mail server for codes, such as smtps://user:password@mail.example.com. It requires MAIL_FROM. The server's certificate is checked with the trust store of the system (SSL_CERT_FILE, SSL_CERT_DIR).",
        )?;
        let from = reader.optional::<Sender>("MAIL_FROM", "The sender of e-mails with codes.")?;
        let ehlo_name = reader.optional::<EhloName>(
            "SMTP_EHLO_NAME",
            "The name by which the notification-worker introduces itself to the mail server (EHLO). The default is the host of PUBLIC_URL, or the domain of MAIL_FROM if that is an address or a name without a dot.",
        )?;
        let Some(SmtpUrl(smtp_url, url)) = smtp_url else {
            return Ok(None);
        };
        let purpose = "required because SMTP_URL is set.";
        let missing = || app_config::Error::missing::<Sender>("MAIL_FROM", purpose);
        let from = from.ok_or_else(missing)?;
        if !is_encrypted_or_local(&url) {
            reader.warn("SMTP_URL does not require TLS: codes and the mail server's password can be read on the network. Use smtps://, or add ?tls=required.");
        }
        let ehlo_name = ehlo_name
            .or_else(|| EhloName::of_path(&url))
            .or_else(|| EhloName::of_host(&public_url))
            .map_or_else(|| from.0.email.domain().to_owned(), |EhloName(name)| name);
        Ok(Some(Self {
            smtp_url,
            from,
            ehlo_name,
        }))
    }
}

/// Whether e-mails reach the mail server over TLS or the loopback interface.
fn is_encrypted_or_local(url: &Url) -> bool {
    let is_local = url.host_str().is_none_or(|host| {
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    });
    let requires_tls = ("tls".into(), "required".into());
    is_local || url.scheme() != "smtp" || url.query_pairs().any(|pair| pair == requires_tls)
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

    #[test]
    fn a_sender_has_an_optional_name() {
        let named = Sender::parse(" Countersign <no-reply@example.com>").unwrap();
        assert_eq!(named.0.name.as_deref(), Some("Countersign"));
        assert!(
            Sender::parse("no-reply@example.com")
                .unwrap()
                .0
                .name
                .is_none()
        );
        assert!(Sender::parse("Büro <info@xn--mnchen-3ya.example>").is_ok());
        let error = Sender::parse("info@münchen.example").unwrap_err();
        assert!(error.contains("punycode"), "{error}");
        assert!(Sender::parse("ada").is_err());
        assert!(Sender::parse("\u{200b} <ada@example.com>").is_err());
        assert!(Sender::parse("a@b.c\r\nBcc: d@e.f").is_err());
    }
}
