use app_config::SettingValue;
use lettre::message::Mailbox;

/// The sender of e-mails: an address, or a name with an address in angle brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender(pub Mailbox);

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
        Ok(Self(mailbox))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Sender::parse("a@b.c\r\nBcc: d@e.f").is_err());
    }
}
