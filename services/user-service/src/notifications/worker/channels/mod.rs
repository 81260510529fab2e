//! How notifications are sent.

mod mail;
mod webhook;

use anyhow::Context as _;
use values::Names as _;

use super::error::SendError;
use super::key_mail::KeyMail;
use super::notification::Notification;
use super::task_mail::TaskMail;
use crate::notifications::Channel;
use crate::settings::NotificationWorkerSettings;
use mail::Mail;
use webhook::Webhook;

/// The configured channels.
#[derive(Debug, Clone)]
pub(super) struct Channels {
    webhook: Option<Webhook>,
    mail: Option<Mail>,
    log: bool,
}

impl Channels {
    /// # Errors
    /// A setting is invalid.
    pub(super) fn new(settings: &NotificationWorkerSettings) -> anyhow::Result<Self> {
        let channels = &settings.channels;
        let webhook = channels.webhook.as_ref();
        let webhook =
            webhook.map(|url| Webhook::new(url.clone(), settings.allowed_networks.clone()));
        Ok(Self {
            webhook: webhook.transpose().context("no HTTP client")?,
            mail: channels
                .mail
                .as_ref()
                .map(|mail| Mail::new(mail, settings.language))
                .transpose()?,
            log: channels.log,
        })
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// It was not sent, or it is unknown whether it was.
    pub(super) async fn send(
        &self,
        channel: Channel,
        notification: &Notification,
    ) -> Result<(), SendError> {
        match (channel, &self.webhook, &self.mail) {
            (Channel::Webhook, Some(webhook), _) => webhook.send(notification).await,
            (Channel::Mail, _, Some(mail)) => mail.send(notification).await,
            (Channel::Log, ..) if self.log => {
                log_link(notification);
                Ok(())
            }
            _ => Err(SendError::NotConfigured),
        }
    }

    /// Sends a mail about an API key.
    ///
    /// # Errors
    /// It was not sent, or it is unknown whether it was.
    pub(super) async fn send_about_key(&self, mail: &KeyMail) -> Result<(), SendError> {
        match &self.mail {
            Some(channel) => channel.send_about_key(mail).await,
            None => Err(SendError::NotConfigured),
        }
    }

    /// Sends a mail about a task.
    ///
    /// # Errors
    /// It was not sent, or it is unknown whether it was.
    pub(super) async fn send_about_task(&self, mail: &TaskMail) -> Result<(), SendError> {
        match &self.mail {
            Some(channel) => channel.send_about_task(mail).await,
            None => Err(SendError::NotConfigured),
        }
    }
}

/// Logs the link. This is the only place where a code is logged, and for development only.
fn log_link(notification: &Notification) {
    tracing::info!(
        user.id = %notification.user,
        kind = notification.kind.name(),
        link = notification.link.expose(),
        "link with a code (FORGOT_PASSWORD_LOG is on)"
    );
}
