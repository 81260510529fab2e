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

#[derive(Clone)]
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
        let webhook = webhook.map(|url| Webhook::new(url.clone(), settings.addresses.clone()));
        let mail = channels.mail.as_ref();
        let mail = mail.map(|mail| Mail::new(mail, settings.language));
        Ok(Self {
            webhook: webhook.transpose().context("no HTTP client")?,
            mail: mail.transpose()?,
            log: channels.log,
        })
    }

    pub(super) async fn send(&self, notification: &Notification) -> Result<(), SendError> {
        match (notification.channel, &notification.content) {
            (Channel::Mail, _) => self.mail()?.send(notification).await,
            (Channel::Webhook, Content::Code(code)) => {
                let webhook = self.webhook.as_ref().ok_or(SendError::NotConfigured)?;
                webhook.send(notification, code).await
            }
            (Channel::Log, Content::Code(code)) if self.log => {
                log_link(notification.user, code);
                Ok(())
            }
            _ => Err(SendError::NotConfigured),
        }
    }

    /// Sends a mail about a task, with the same errors.
    pub(super) async fn send_about_task(&self, mail: &TaskMail) -> Result<(), SendError> {
        self.mail()?.send_about_task(mail).await
    }

    fn mail(&self) -> Result<&Mail, SendError> {
        self.mail.as_ref().ok_or(SendError::NotConfigured)
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
