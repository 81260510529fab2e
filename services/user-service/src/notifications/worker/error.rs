use telemetry::CertificateFault;

/// Why a notification was not sent. It contains no e-mail address and no code.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The channel was configured when the notification was requested.
    #[error("this channel is no longer configured")]
    NotConfigured,
    /// The mail server took no mail.
    #[error("the mail server {0}")]
    Mail(String),
    /// The mail server may have taken the mail.
    #[error("the mail server {0}")]
    MailUncertain(String),
    #[error("the mail server's certificate was refused: {0}")]
    MailCertificate(CertificateFault),
    /// The mail server refused the recipient or the mail for good.
    #[error("the mail server refused the {0} with {1}")]
    MailRefused(&'static str, String),
    #[error("the webhook {0}")]
    Webhook(String),
    #[error("every attempt ended without a result")]
    TooManyAttempts,
    #[error("this version does not know the notification's kind or channel")]
    Unknown,
    #[error("the mail could not be written")]
    Template,
    /// The mail library does not accept the address.
    #[error("the address cannot receive e-mail")]
    Address,
}

impl SendError {
    /// Whether another attempt would fail, too. Errors that an operator can end are not permanent.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(self, Self::MailRefused(..) | Self::Address)
    }

    /// Whether the mail server, and nothing about the mail, is known to be why it was not taken.
    pub(super) fn is_of_mail_server(&self) -> bool {
        matches!(self, Self::Mail(_) | Self::MailCertificate(_))
    }
}
