use app_config::SettingValue;
use lettre::message::Mailbox;
use values::is_visible;

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
        match mailbox.name.as_deref() {
            Some(name) if !is_visible(name) => {
                Err("its name has no character that can be seen".to_owned())
            }
            _ => Ok(Self(mailbox)),
        }
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
        assert!(Sender::parse("\u{200b} <ada@example.com>").is_err());
        assert!(Sender::parse("a@b.c\r\nBcc: d@e.f").is_err());
    }
}
