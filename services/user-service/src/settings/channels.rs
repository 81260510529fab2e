use std::time::Duration;

use settings::{Reader, Settings};
use url::Url;
use values::{EmailAddress, Secret};

/// The ways by which a code reaches a user, and what the link in the message looks like.
#[derive(Debug, Clone)]
pub struct ChannelSettings {
    /// A url that gets the code as a JSON body.
    pub webhook: Option<Url>,
    /// A mail server.
    pub mail: Option<MailSettings>,
    /// The link in the worker's log, for development only.
    pub log: bool,
    /// The link, with `{{code}}` where the code goes.
    pub link: String,
    /// How long a code is valid.
    pub code_lifetime: Duration,
}

/// A mail server and the sender's address.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// `smtp://` or `smtps://`, with credentials if the server wants them.
    pub smtp_url: Secret,
    /// The `From` of the messages.
    pub from: EmailAddress,
}

impl Settings for ChannelSettings {
    fn read(reader: &mut Reader) -> Result<Self, settings::Error> {
        let webhook = reader.optional(
            "WEBHOOK_USER_FORGOT_PASSWORD",
            "A url that gets the codes of forgotten passwords as JSON.",
        )?;
        let smtp_url = reader.optional::<Secret>(
            "SMTP_URL",
            "The mail server for codes, such as smtps://user:password@mail.example.com; needs MAIL_FROM.",
        )?;
        let from = reader.optional::<EmailAddress>(
            "MAIL_FROM",
            "The sender of messages with codes; needs SMTP_URL.",
        )?;
        Ok(Self {
            webhook,
            mail: smtp_url
                .zip(from)
                .map(|(smtp_url, from)| MailSettings { smtp_url, from }),
            log: reader.or(
                "FORGOT_PASSWORD_LOG",
                "false",
                "For development only: writes the links with codes into the log.",
            )?,
            link: reader.or(
                "FORGOT_PASSWORD_URL",
                "http://localhost:8080/reset-password?code={{code}}",
                "The link in messages; {{code}} stands for the code.",
            )?,
            code_lifetime: reader.or(
                "FORGOT_PASSWORD_TTL",
                "60m",
                "How long a code for a forgotten password is valid.",
            )?,
        })
    }
}
