use std::time::Duration;

use app_config::{Csv, Error, Networks, Reader, Settings};
use auth::MailKeys;
use database::DatabaseSettings;
use messaging::BrokerSettings;
use url::Url;
use values::Language;

use super::channels::read_link;
use crate::settings::ChannelSettings;

/// Settings of the notification worker.
#[derive(Debug, Clone)]
pub struct NotificationWorkerSettings {
    /// The database with the schema `users`.
    pub database: DatabaseSettings,
    /// The broker of the queue `user.notifications`.
    pub broker: BrokerSettings,
    /// The channels through which notifications are sent.
    pub channels: ChannelSettings,
    /// Non-public networks that the webhook may be in.
    pub allowed_networks: Networks,
    /// The link that confirms an e-mail address, with `{{code}}` as the placeholder.
    pub verify_email_link: String,
    /// The language of codes by e-mail.
    pub language: Language,
    /// Mail about tasks, if it is sent.
    pub task_mail: Option<TaskMailSettings>,
    /// The pauses between the attempts to send a notification. There is one attempt more than pauses.
    pub retry_schedule: Vec<Duration>,
}

/// Where mails about tasks come from.
#[derive(Debug, Clone)]
pub struct TaskMailSettings {
    /// The URL of the people-task service.
    pub people_task_service: Url,
    /// The keys that the people-task service has, too.
    pub keys: MailKeys,
}

impl TaskMailSettings {
    /// Reads the settings. Without a key or a mail server no mail about tasks is sent.
    fn read(reader: &mut Reader, has_mail: bool) -> Result<Option<Self>, Error> {
        let keys = MailKeys::read(reader)?;
        let url = reader.optional::<Url>(
            "PEOPLE_TASK_SERVICE_URL",
            "The URL of the people-task service. TASK_MAIL_KEY requires it.",
        )?;
        match (keys.filter(|_| has_mail), url) {
            (Some(keys), Some(people_task_service)) => Ok(Some(Self {
                people_task_service,
                keys,
            })),
            (Some(_), None) => {
                let purpose = "required because TASK_MAIL_KEY is set.";
                Err(Error::missing::<Url>("PEOPLE_TASK_SERVICE_URL", purpose))
            }
            (None, _) => Ok(None),
        }
    }
}

impl Settings for NotificationWorkerSettings {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        let database = DatabaseSettings::read(reader)?;
        let broker = BrokerSettings::read(reader)?;
        let channels = ChannelSettings::read(reader)?;
        Ok(Self {
            database,
            broker,
            allowed_networks: reader.or_default(
                "WEBHOOK_ALLOWED_NETWORKS",
                "",
                "Non-public networks that webhooks may reach.",
            )?,
            verify_email_link: read_link(
                reader,
                "VERIFY_EMAIL_URL",
                "verify-email",
                "The link that confirms an e-mail address, by default a page under PUBLIC_URL. {{code}} stands for the code.",
            )?,
            language: reader.or_default(
                "MAIL_LANGUAGE",
                "en",
                "The language of mails, unless a task is created with another one.",
            )?,
            task_mail: TaskMailSettings::read(reader, channels.mail.is_some())?,
            channels,
            retry_schedule: reader
                .or_default::<Csv<Duration>>(
                    "NOTIFICATION_RETRY_SCHEDULE",
                    "1s,5s,30s,2m,10m",
                    "The pauses between the attempts to send a notification to a user, each ±20 %.",
                )?
                .0,
        })
    }
}
