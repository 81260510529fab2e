//! How notifications are sent.

mod mail;
mod webhook;

use anyhow::Context as _;
use values::Names as _;

use super::error::SendError;
use super::notification::{Content, Notification};
use crate::notifications::Channel;
use crate::settings::NotificationWorkerSettings;
use webhook::Webhook;

pub(super) use mail::Mail;

#[derive(Clone)]
pub(super) struct Channels {
    webhook: Option<Webhook>,
    pub(super) mail: Option<Mail>,
    log: bool,
}

impl Channels {
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
            (Channel::Mail, _) => {
                let mail = self.mail.as_ref().ok_or(SendError::NotConfigured)?;
                mail.send(notification).await
            }
            (Channel::Webhook, Content::Code(code)) => {
                let webhook = self.webhook.as_ref().ok_or(SendError::NotConfigured)?;
                webhook.send(notification, code).await
            }
            (Channel::Log, Content::Code(code)) if self.log => {
                // This is the only place where a code is logged, and for development only.
                tracing::info!(
                    user.id = %notification.user,
                    kind = code.kind.name(),
                    link = code.link.expose(),
                    "link with a code (FORGOT_PASSWORD_LOG is on)"
                );
                Ok(())
            }
            _ => Err(SendError::NotConfigured),
        }
    }
}
