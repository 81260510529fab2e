use std::time::Duration;

use app_config::{Reader, SettingValue as _, Settings};
use url::Url;
use values::Secret;

use super::Sender;

/// The placeholder of the code in a link.
const CODE: &str = "{{code}}";

/// The channels that send codes to users, and the link that contains the code.
#[derive(Debug, Clone)]
pub struct ChannelSettings {
    /// The URL that receives codes as JSON.
    pub webhook: Option<Url>,
    /// A mail server.
    pub mail: Option<MailSettings>,
    /// Whether the worker logs the link. For development only.
    pub log: bool,
    /// The link, with `{{code}}` as the placeholder.
    pub link: String,
    /// How long a code is valid.
    pub code_lifetime: Duration,
}

/// A mail server and the sender's address.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// An `smtp://` or `smtps://` URL, with credentials if the server requires them.
    pub smtp_url: Secret,
    /// The `From` of e-mails.
    pub from: Sender,
}

impl Settings for ChannelSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            webhook: reader.optional(
                "WEBHOOK_USER_FORGOT_PASSWORD",
                "The URL that receives the codes for forgotten passwords as JSON.",
            )?,
            mail: MailSettings::read(reader)?,
            log: reader.or_default(
                "FORGOT_PASSWORD_LOG",
                "false",
                "For development only: logs the links with codes.",
            )?,
            link: reader.in_range(
                "FORGOT_PASSWORD_URL",
                "http://localhost:8080/reset-password?code={{code}}",
                "a URL that contains {{code}}",
                "The link that sets a new password. {{code}} stands for the code.",
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
            "The mail server for codes, such as smtps://user:password@mail.example.com. It requires MAIL_FROM.",
        )?;
        let from = reader.optional::<Sender>("MAIL_FROM", "The sender of e-mails with codes.")?;
        match (smtp_url, from) {
            (Some(smtp_url), Some(from)) => Ok(Some(Self { smtp_url, from })),
            (Some(_), None) => Err(app_config::Error::Missing {
                name: "MAIL_FROM",
                allowed: Sender::ALLOWED,
                purpose: "required because SMTP_URL is set.",
                secret: false,
            }),
            (None, _) => Ok(None),
        }
    }
}
