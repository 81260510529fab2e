use std::time::Duration;

use app_config::{Csv, Networks, Reader, Settings};
use database::DatabaseSettings;
use messaging::BrokerSettings;

use super::channels::{CODE, read_link};
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
    /// The pauses between the attempts to send a notification. There is one attempt more than pauses.
    pub retry_schedule: Vec<Duration>,
}

impl Settings for NotificationWorkerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let (database, broker) = (
            DatabaseSettings::read(reader)?,
            BrokerSettings::read(reader)?,
        );
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
                format!("{}/verify-email?code={CODE}", channels.public_url),
                "The link that confirms an e-mail address, by default a page under PUBLIC_URL. {{code}} stands for the code.",
            )?,
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
