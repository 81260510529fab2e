use std::time::Duration;

use anyhow::Context as _;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

use super::SendError;
use crate::notifications::worker::notice::Notice;
use crate::notifications::worker::texts::Text;
use crate::settings::MailSettings;

/// For each answer of the mail server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// For the whole conversation.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest line that a mail may have (RFC 5322 section 2.1.1).
const LONGEST_LINE: usize = 998;
/// Keeps out-of-office programs from answering (RFC 3834).
const AUTO_SUBMITTED: &str = "Auto-Submitted";

/// Hands e-mails to a mail server.
#[derive(Debug, Clone)]
pub(super) struct Mail {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mail {
    pub(super) fn new(settings: &MailSettings) -> anyhow::Result<Self> {
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(settings.smtp_url.expose())
            // The cause could show the url, which holds a password.
            .map_err(|_| anyhow::anyhow!("it is no smtp:// or smtps:// url"))
            .context("SMTP_URL")?
            .timeout(Some(ANSWER_TIMEOUT))
            .build();
        Ok(Self {
            transport,
            from: settings.from.0.clone(),
        })
    }

    pub(super) async fn send(&self, notice: &Notice) -> Result<(), SendError> {
        let message = self.compose(notice)?;
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.transport.send(message)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(failure(&error)),
            Err(_) => Err(SendError::Mail("did not answer in time".to_owned())),
        }
    }

    fn compose(&self, notice: &Notice) -> Result<Message, SendError> {
        let text = Text::of(notice);
        let to = notice.email.parse().map_err(|_| SendError::Address)?;
        let automatic = HeaderValue::new(
            HeaderName::new_from_ascii_str(AUTO_SUBMITTED),
            "auto-generated".to_owned(),
        );
        let bodies = MultiPart::alternative()
            .singlepart(part(ContentType::TEXT_PLAIN, text.plain))
            .singlepart(part(ContentType::TEXT_HTML, text.html));
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(text.subject)
            .message_id(None)
            .raw_header(automatic)
            .multipart(bodies)
            .map_err(|_| SendError::Address)
    }
}

/// A body. The library would break a long link with soft line ends, which some programs leave in; plain
/// ASCII lines of a legal length go as they are.
fn part(kind: ContentType, text: String) -> SinglePart {
    let plain = text.is_ascii() && text.lines().all(|line| line.len() <= LONGEST_LINE);
    let body = if plain {
        Body::dangerous_pre_encoded(text.into_bytes(), ContentTransferEncoding::SevenBit)
    } else {
        Body::new(text)
    };
    SinglePart::builder().header(kind).body(body)
}

/// What went wrong, without the server's own words: those often repeat the recipient's address.
fn failure(error: &smtp::Error) -> SendError {
    let what = match error.status() {
        Some(code) => format!("answered {code}"),
        None if error.is_timeout() => "did not answer in time".to_owned(),
        None if error.is_tls() => "could not be trusted (TLS)".to_owned(),
        None if error.is_response() => "answered something unintelligible".to_owned(),
        None if error.is_client() => "offers nothing that SMTP_URL needs".to_owned(),
        None => "could not be reached".to_owned(),
    };
    SendError::Mail(what)
}
