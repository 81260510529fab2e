use std::time::Duration;

use app_config::{Reader, SettingValue as _, Settings};
use url::Url;
use values::Secret;

use super::Sender;

/// Where the code goes in a link.
const CODE: &str = "{{code}}";

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
    pub from: Sender,
}

impl Settings for ChannelSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            webhook: reader.optional(
                "WEBHOOK_USER_FORGOT_PASSWORD",
                "A url that gets the codes of forgotten passwords as JSON.",
            )?,
            mail: MailSettings::read(reader)?,
            log: reader.or_default(
                "FORGOT_PASSWORD_LOG",
                "false",
                "For development only: writes the links with codes into the log.",
            )?,
            link: reader.in_range(
                "FORGOT_PASSWORD_URL",
                "http://localhost:8080/reset-password?code={{code}}",
                "a url with {{code}} in it",
                "The link in messages; {{code}} stands for the code.",
                |link: &String| link.contains(CODE),
            )?,
            code_lifetime: reader.in_range(
                "FORGOT_PASSWORD_TTL",
                "60m",
                "a duration from 1s to 30d",
                "How long a code for a forgotten password is valid.",
                |lifetime: &Duration| (1..=30 * 24 * 3600).contains(&lifetime.as_secs()),
            )?,
        })
    }
}

impl MailSettings {
    fn read(reader: &mut Reader) -> Result<Option<Self>, app_config::Error> {
        let smtp_url = reader.optional(
            "SMTP_URL",
            "The mail server for codes, such as smtps://user:password@mail.example.com; needs MAIL_FROM.",
        )?;
        let from = reader.optional::<Sender>("MAIL_FROM", "The sender of messages with codes.")?;
        match (smtp_url, from) {
            (Some(smtp_url), Some(from)) => Ok(Some(Self { smtp_url, from })),
            (Some(_), None) => Err(app_config::Error::Missing {
                name: "MAIL_FROM",
                allowed: Sender::ALLOWED,
                purpose: "needed because SMTP_URL is set.",
                secret: false,
            }),
            (None, _) => Ok(None),
        }
    }
}
