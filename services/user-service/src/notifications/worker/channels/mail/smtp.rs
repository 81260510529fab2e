//! The conversation with a mail server.
//!
//! lettre's own transport does not say which command was refused. But a refused recipient or text ends a mail, whereas
//! a refused password, sender or connection is for the operator to repair, so the mail is tried again.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use lettre::Message;
use lettre::address::Envelope;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Tls, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, MailBodyParameter, MailParameter};
use lettre::transport::smtp::{Error, SMTP_PORT, SUBMISSION_PORT, SUBMISSIONS_PORT};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use telemetry::CertificateFault;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use crate::notifications::worker::error::SendError;
use crate::settings::MailSettings;

/// The timeout for the whole conversation.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to say that a connection still works, or to say goodbye.
const IDLE_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a connection stays open for the next mail, and how many do.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_IDLE: usize = 10;
/// Servers that require a password may say so only at the recipient (RFC 4954 section 6).
const AUTHENTICATION_REQUIRED: &str = "530";
/// Beginnings of enhanced codes (RFC 3463) that are not about the recipient but about permission, the protocol and the sender. By
/// default Postfix says only at the recipient that it refuses the sender, the name of the client, or to relay.
const NOT_OF_RECIPIENT: [&str; 4] = ["5.7.", "5.5.", "5.1.7", "5.1.8"];
const NO_RESPONSE: &str = "did not respond in time";

/// A mail server, with the connections that are open to it.
#[derive(Clone)]
pub(super) struct MailServer {
    address: Arc<Address>,
    idle: Arc<Mutex<Idle>>,
}

#[derive(Default)]
struct Idle {
    connections: Vec<(Instant, AsyncSmtpConnection)>,
    /// Whether a task closes those that nothing uses.
    is_watched: bool,
}

struct Address {
    host: String,
    port: u16,
    tls: Tls,
    credentials: Option<Credentials>,
    ehlo_name: ClientId,
}

impl MailServer {
    /// Fails if the URL is invalid, or the system trusts no certificate. The error does not contain the URL.
    pub(super) fn new(settings: &MailSettings) -> anyhow::Result<Self> {
        let url = Url::parse(settings.smtp_url.expose());
        let url = url.map_err(|_| anyhow::anyhow!("it is not an smtp:// or smtps:// URL"));
        let address = url.and_then(|url| Address::new(&url, &settings.ehlo_name));
        Ok(Self {
            address: Arc::new(address.context("SMTP_URL")?),
            idle: Arc::default(),
        })
    }

    pub(super) async fn send(&self, message: &Message) -> Result<(), SendError> {
        let (envelope, text) = (message.envelope(), message.formatted());
        let no_response = || NO_RESPONSE.to_owned();
        let deadline = Instant::now() + SEND_TIMEOUT;
        let begun = timeout_at(deadline, self.begin(envelope, text.is_ascii())).await;
        let mut connection = begun.unwrap_or_else(|_| Err(SendError::Mail(no_response())))?;
        let sent = timeout_at(deadline, connection.message(&text)).await;
        match sent.map_err(|_| SendError::MailUncertain(no_response()))? {
            Ok(_) => {
                self.keep(connection);
                Ok(())
            }
            Err(error) => {
                close(connection).await;
                Err(text_failure(&error))
            }
        }
    }

    /// A connection on which the text of a mail can follow.
    async fn begin(
        &self,
        envelope: &Envelope,
        is_ascii: bool,
    ) -> Result<AsyncSmtpConnection, SendError> {
        let mut connection = self.connection().await.map_err(|error| failure(&error))?;
        match begin_mail(&mut connection, envelope, is_ascii).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                close(connection).await;
                Err(error)
            }
        }
    }

    async fn connection(&self) -> Result<AsyncSmtpConnection, Error> {
        while let Some(mut connection) = self.take_idle() {
            match timeout(IDLE_ANSWER_TIMEOUT, connection.test_connected()).await {
                Ok(true) => return Ok(connection),
                Ok(false) => {}
                // The others are probably dead, too, and each would take as long.
                Err(_) => self.idle.lock().connections.clear(),
            }
        }
        self.address.connect().await
    }

    fn take_idle(&self) -> Option<AsyncSmtpConnection> {
        let (_, connection) = self.idle.lock().connections.pop()?;
        Some(connection)
    }

    fn keep(&self, connection: AsyncSmtpConnection) {
        let mut idle = self.idle.lock();
        if idle.connections.len() < MAX_IDLE {
            idle.connections.push((Instant::now(), connection));
            if !std::mem::replace(&mut idle.is_watched, true) {
                tokio::spawn(self.clone().close_idle());
            }
        }
    }

    /// Closes the connections that nothing uses for a while, until there are none.
    async fn close_idle(self) {
        loop {
            tokio::time::sleep(IDLE_TIMEOUT).await;
            let expired: Vec<_> = {
                let connections = &mut self.idle.lock().connections;
                let is_expired = |(since, _): &mut (Instant, _)| since.elapsed() >= IDLE_TIMEOUT;
                connections.extract_if(.., is_expired).collect()
            };
            for (_, connection) in expired {
                close(connection).await;
            }
            let mut idle = self.idle.lock();
            idle.is_watched = !idle.connections.is_empty();
            if !idle.is_watched {
                return;
            }
        }
    }
}

impl Address {
    fn new(url: &Url, ehlo_name: &str) -> anyhow::Result<Self> {
        // Hosts of URLs with another scheme than http are not parsed as IPv4 addresses, which does not matter here.
        let host = match url.host().context("it has no host")? {
            Host::Ipv6(address) => address.to_string(),
            host => host.to_string(),
        };
        let parameters = || {
            TlsParameters::new(host.clone()).context(
                "the trust store of the system cannot be used (SSL_CERT_FILE, SSL_CERT_DIR)",
            )
        };
        let tls = url.query_pairs().find(|(name, _)| name == "tls");
        let (default_port, tls) = match (url.scheme(), tls.as_ref().map(|(_, tls)| tls.as_ref())) {
            ("smtp", None) => (SMTP_PORT, Tls::None),
            ("smtp", Some("required")) => (SUBMISSION_PORT, Tls::Required(parameters()?)),
            ("smtp", Some("opportunistic")) => (SUBMISSION_PORT, Tls::Opportunistic(parameters()?)),
            ("smtps", _) => (SUBMISSIONS_PORT, Tls::Wrapper(parameters()?)),
            ("smtp", Some(_)) => {
                anyhow::bail!("its `tls` is neither `required` nor `opportunistic`")
            }
            _ => anyhow::bail!("it is not an smtp:// or smtps:// URL"),
        };
        Ok(Self {
            port: url.port().unwrap_or(default_port),
            tls,
            credentials: credentials(url)?,
            ehlo_name: ClientId::Domain(ehlo_name.to_owned()),
            host,
        })
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let wrapper = match &self.tls {
            Tls::Wrapper(parameters) => Some(parameters.clone()),
            _ => None,
        };
        let (server, name) = ((self.host.as_str(), self.port), &self.ehlo_name);
        let connecting =
            AsyncSmtpConnection::connect_tokio1(server, Some(CONNECT_TIMEOUT), name, wrapper, None);
        let mut connection = connecting.await?;
        match &self.tls {
            Tls::Opportunistic(parameters) if connection.can_starttls() => {
                connection.starttls(parameters.clone(), name).await?;
            }
            Tls::Required(parameters) => connection.starttls(parameters.clone(), name).await?,
            _ => {}
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }
}

fn credentials(url: &Url) -> anyhow::Result<Option<Credentials>> {
    let Some(password) = url.password() else {
        return Ok(None);
    };
    let decode = |text| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.context("its user or password is not UTF-8")
    };
    let (user, password) = (decode(url.username())?, decode(password)?);
    let credentials = Credentials::new(user.into_owned(), password.into_owned());
    Ok(Some(credentials))
}

async fn close(mut connection: AsyncSmtpConnection) {
    let _ = timeout(IDLE_ANSWER_TIMEOUT, connection.abort()).await;
}

async fn begin_mail(
    connection: &mut AsyncSmtpConnection,
    envelope: &Envelope,
    is_ascii: bool,
) -> Result<(), SendError> {
    let parameters = match is_ascii {
        true => Vec::new(),
        false => vec![MailParameter::Body(MailBodyParameter::EightBitMime)],
    };
    let sender = Mail::new(envelope.from().cloned(), parameters);
    let sent = connection.command(sender).await;
    sent.map_err(|error| failure(&error))?;
    for recipient in envelope.to() {
        let sent = connection.command(Rcpt::new(recipient.clone(), Vec::new()));
        sent.await.map_err(|error| recipient_failure(&error))?;
    }
    let sent = connection.command(Data).await;
    sent.map_err(|error| refusal("mail", &error))?;
    Ok(())
}

fn recipient_failure(error: &Error) -> SendError {
    let reply = error.source().map(ToString::to_string).unwrap_or_default();
    if NOT_OF_RECIPIENT.iter().any(|code| reply.starts_with(code)) {
        failure(error)
    } else {
        refusal("recipient", error)
    }
}

/// The error of a text. Without a reply it is unknown whether the server took the mail.
fn text_failure(error: &Error) -> SendError {
    match refusal("mail", error) {
        SendError::Mail(what) if error.status().is_none() => SendError::MailUncertain(what),
        other => other,
    }
}

/// The error of a command about the mail itself: a permanent one ends it.
fn refusal(what: &'static str, error: &Error) -> SendError {
    let code = error.status().filter(|_| error.is_permanent());
    match code.map(|code| code.to_string()) {
        Some(code) if code != AUTHENTICATION_REQUIRED => SendError::MailRefused(what, code),
        _ => failure(error),
    }
}

/// The error without the server's own text, which often repeats the recipient's address.
fn failure(error: &Error) -> SendError {
    if let Some(fault) = CertificateFault::find(error) {
        return SendError::MailCertificate(fault);
    }
    let what = match error.status() {
        Some(code) => format!("responded with {code}"),
        None if error.is_timeout() => NO_RESPONSE.to_owned(),
        None if telemetry::tls_error(error).is_some() => {
            "did not complete the TLS handshake".to_owned()
        }
        None if error.is_response() => "sent an invalid response".to_owned(),
        None if error.is_client() => "does not support what SMTP_URL needs".to_owned(),
        None => "could not be reached".to_owned(),
    };
    SendError::Mail(what)
}
