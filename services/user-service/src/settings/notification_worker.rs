use std::time::Duration;

use app_config::{Csv, Networks, Reader, Settings};
use database::DatabaseSettings;
use messaging::BrokerSettings;

use crate::settings::ChannelSettings;

/// Settings of the notification worker.
#[derive(Debug, Clone)]
pub struct NotificationWorkerSettings {
    /// The schema `users`.
    pub database: DatabaseSettings,
    /// The queue `user.notifications`.
    pub broker: BrokerSettings,
    /// The ways by which messages reach users.
    pub channels: ChannelSettings,
    /// Networks that are not public and that the webhook may lie in.
    pub allowed_networks: Networks,
    /// The link in messages that confirm an e-mail address, with `{{code}}` where the code goes.
    pub verify_email_link: String,
    /// The pauses between the attempts to send a message; one attempt more than there are pauses.
    pub retry_schedule: Vec<Duration>,
}

impl Settings for NotificationWorkerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            database: DatabaseSettings::read(reader)?,
            broker: BrokerSettings::read(reader)?,
            channels: ChannelSettings::read(reader)?,
            allowed_networks: reader.or_default(
                "WEBHOOK_ALLOWED_NETWORKS",
                "",
                "Networks that are not public and that webhooks may lie in.",
            )?,
            verify_email_link: reader.or_default(
                "VERIFY_EMAIL_URL",
                "http://localhost:8080/verify-email?code={{code}}",
                "The link in messages that confirm an e-mail address; {{code}} stands for the code.",
            )?,
            retry_schedule: reader
                .or_default::<Csv<Duration>>(
                    "NOTIFICATION_RETRY_SCHEDULE",
                    "1s,5s,30s,2m,10m",
                    "The pauses between the attempts to send a message to a user, each ±20 %.",
                )?
                .0,
        })
    }
}
