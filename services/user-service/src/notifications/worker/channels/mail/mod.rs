mod smtp;

use std::fmt;
use std::sync::Arc;

use anyhow::Context as _;
use email_encoding::headers::rfc2047;
use email_encoding::headers::writer::EmailWriter;
use lettre::Message;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, MessageBuilder, MultiPart, SinglePart};
use telemetry::CallOutcome;
use values::Language;

use crate::notifications::worker::emails::{AllTexts, Email};
use crate::notifications::worker::error::SendError;
use crate::notifications::worker::notification::{Content, Notification};
use crate::notifications::worker::task_mail::TaskMail;
use crate::settings::MailSettings;
use smtp::MailServer;

/// The length limit of a line (RFC 5322 section 2.1.1).
const MAX_LINE_LENGTH: usize = 998;
const SUBJECT: &str = "Subject";
/// Keeps automatic responders from replying (RFC 3834).
const AUTO_SUBMITTED: &str = "Auto-Submitted";
/// One-click unsubscribing (RFC 8058).
const LIST_UNSUBSCRIBE: &str = "List-Unsubscribe";
const LIST_UNSUBSCRIBE_POST: &str = "List-Unsubscribe-Post";
const ONE_CLICK: &str = "List-Unsubscribe=One-Click";

#[derive(Clone)]
pub(in crate::notifications::worker) struct Mail {
    server: MailServer,
    from: Mailbox,
    texts: Arc<AllTexts>,
    /// The language of notifications.
    language: Language,
}

impl Mail {
    pub(super) fn new(settings: &MailSettings, language: Language) -> anyhow::Result<Self> {
        Ok(Self {
            server: MailServer::new(settings)?,
            from: settings.from.0.clone(),
            texts: Arc::new(AllTexts::load().context("texts of mails")?),
            language,
        })
    }

    pub(super) async fn send(&self, notification: &Notification) -> Result<(), SendError> {
        let texts = self.texts.of(self.language);
        let email = match &notification.content {
            Content::Code(code) => Email::with_code(code, &notification.email, texts),
            Content::Key(key) => Email::about_key(key, texts),
        };
        let message = self.builder(&notification.email, &notification.id)?;
        self.send_message(message, email).await
    }

    pub(in crate::notifications::worker) async fn send_about_task(
        &self,
        mail: &TaskMail,
    ) -> Result<(), SendError> {
        let email = Email::about_task(mail, self.texts.of(mail.language));
        let mut message = self.builder(&mail.to, &mail.id)?;
        if let Some(link) = &mail.unsubscribe_link {
            message = message
                .raw_header(header(LIST_UNSUBSCRIBE, format!("<{}>", link.expose())))
                .raw_header(header(LIST_UNSUBSCRIBE_POST, ONE_CLICK.to_owned()));
        }
        self.send_message(message, email).await
    }

    async fn send_message(
        &self,
        message: MessageBuilder,
        email: askama::Result<Email>,
    ) -> Result<(), SendError> {
        let message = compose(message, email.map_err(|_| SendError::Template)?)?;
        let outcome = |sent: &Result<_, _>| match sent {
            Ok(_) => CallOutcome::Success,
            Err(_) => CallOutcome::Failure,
        };
        telemetry::outgoing("smtp", self.server.send(&message), outcome).await
    }

    /// The head of a message, without its subject. Each attempt has the same `Message-ID`, so that mail programs recognise
    /// duplicates.
    fn builder(&self, to: &str, id: &dyn fmt::Display) -> Result<MessageBuilder, SendError> {
        let to = to.parse().map_err(|_| SendError::Address)?;
        Ok(Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .raw_header(header(AUTO_SUBMITTED, "auto-generated".to_owned())))
    }
}

fn header(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value)
}

fn compose(message: MessageBuilder, email: Email) -> Result<Message, SendError> {
    let bodies = MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, email.plain))
        .singlepart(part(ContentType::TEXT_HTML, email.html));
    let subject = subject(email.subject).map_err(|_| SendError::Template)?;
    message
        .raw_header(subject)
        .multipart(bodies)
        .map_err(|_| SendError::Address)
}

/// A subject. The library writes ASCII as it is, so a title that looks like an encoded word of RFC 2047 is encoded here:
/// otherwise mail programs would show what it decodes to.
fn subject(text: String) -> Result<HeaderValue, fmt::Error> {
    if !text.contains("=?") {
        return Ok(header(SUBJECT, text));
    }
    let mut encoded = String::new();
    let mut writer = EmailWriter::new(&mut encoded, SUBJECT.len() + ": ".len(), 0, false);
    rfc2047::encode(&text, &mut writer)?;
    drop(writer);
    let name = HeaderName::new_from_ascii_str(SUBJECT);
    Ok(HeaderValue::dangerous_new_pre_encoded(name, text, encoded))
}

/// A body. The library would break a long link with soft line ends, which some mail programs do not undo,
/// so ASCII lines within the length limit are not encoded.
fn part(kind: ContentType, text: String) -> SinglePart {
    let plain = text.is_ascii() && text.lines().all(|line| line.len() <= MAX_LINE_LENGTH);
    let body = if plain {
        Body::dangerous_pre_encoded(text.into_bytes(), ContentTransferEncoding::SevenBit)
    } else {
        Body::new(text)
    };
    SinglePart::builder().header(kind).body(body)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::{Email, Message, compose};

    /// The subject as a mail program shows it, which ignores the whitespace between encoded words.
    fn shown_subject(subject: &str) -> String {
        let email = Email {
            subject: subject.to_owned(),
            plain: "plain".to_owned(),
            html: "html".to_owned(),
        };
        let message = Message::builder()
            .from("a@example.com".parse().unwrap())
            .to("b@example.com".parse().unwrap());
        let message = String::from_utf8(compose(message, email).unwrap().formatted()).unwrap();
        let (_, rest) = message.split_once("\r\nSubject: ").unwrap();
        let end = rest
            .match_indices("\r\n")
            .find(|(at, _)| !rest[at + 2..].starts_with(' '));
        let header = &rest[..end.unwrap().0];
        assert!(header.lines().all(|line| line.len() <= 76), "{header}");
        let mut bytes = Vec::new();
        for word in header
            .split("\r\n ")
            .flat_map(|line| line.split_inclusive("?="))
        {
            match word
                .strip_prefix("=?utf-8?b?")
                .and_then(|word| word.strip_suffix("?="))
            {
                Some(encoded) => bytes.extend(BASE64_STANDARD.decode(encoded).unwrap()),
                None => bytes.extend(word.as_bytes()),
            }
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_subject_arrives_as_written_even_if_it_looks_like_an_encoded_word() {
        for subject in [
            "Please decide: Buy a printer",
            "Please decide: =?utf-8?q?Pay_Eve?=",
            "Please decide: =?UTF-8?B?UGF5IEV2ZQ==?= =?utf-8?q?now?=",
            "Bitte entscheiden: größer =?utf-8?q?x=0D=0ABcc:_eve@example.com?= ✓",
            "a=?b",
            &"=?utf-8?q?é?= 日本 ".repeat(20),
        ] {
            assert_eq!(shown_subject(subject), subject);
        }
    }
}
