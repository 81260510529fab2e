//! How notifications are sent.

mod mail;
mod webhook;

use anyhow::Context as _;
use values::{Names as _, UserId};

use super::error::SendError;
use super::notification::{Code, Content, Notification};
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
    pub(super) async fn send(&self, notification: &Notification) -> Result<(), SendError> {
        match (notification.channel, &notification.content, self) {
            (
                Channel::Mail,
                _,
                Self {
                    mail: Some(mail), ..
                },
            ) => mail.send(notification).await,
            (
                Channel::Webhook,
                Content::Code(code),
                Self {
                    webhook: Some(webhook),
                    ..
                },
            ) => webhook.send(notification, code).await,
            (Channel::Log, Content::Code(code), Self { log: true, .. }) => {
                log_link(notification.user, code);
                Ok(())
            }
            _ => Err(SendError::NotConfigured),
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
fn log_link(user: UserId, code: &Code) {
    tracing::info!(
        user.id = %user,
        kind = code.kind.name(),
        link = code.link.expose(),
        "link with a code (FORGOT_PASSWORD_LOG is on)"
    );
}
