//! The ways by which a message reaches a user.

mod log;
mod mail;
mod webhook;

use anyhow::Context as _;

use super::notice::Notice;
use crate::notifications::Channel;
use crate::settings::NotificationWorkerSettings;
use mail::Mail;
use webhook::Webhook;

/// Why a message was not handed over. It holds no e-mail address and no code.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The channel was configured when the message was asked for.
    #[error("this channel is not configured any more")]
    NotConfigured,
    /// The mail server.
    #[error("the mail server {0}")]
    Mail(String),
    /// The url of the operator's.
    #[error("the webhook {0}")]
    Webhook(String),
    /// The mail library takes no such address.
    #[error("the address cannot receive e-mail")]
    Address,
}

/// Whatever messages are sent by.
#[derive(Debug, Clone)]
pub(super) struct Channels {
    webhook: Option<Webhook>,
    mail: Option<Mail>,
    log: bool,
}

impl Channels {
    /// # Errors
    /// A setting that cannot be used.
    pub(super) fn new(settings: &NotificationWorkerSettings) -> anyhow::Result<Self> {
        let channels = &settings.channels;
        let webhook = channels.webhook.as_ref();
        let webhook =
            webhook.map(|url| Webhook::new(url.clone(), settings.allowed_networks.clone()));
        Ok(Self {
            webhook: webhook.transpose().context("no HTTP client")?,
            mail: channels.mail.as_ref().map(Mail::new).transpose()?,
            log: channels.log,
        })
    }

    /// Sends one message by one channel.
    ///
    /// # Errors
    /// It was not handed over, or nobody knows whether it was.
    pub(super) async fn send(&self, channel: Channel, notice: &Notice) -> Result<(), SendError> {
        match channel {
            Channel::Webhook => match &self.webhook {
                Some(webhook) => webhook.send(notice).await,
                None => Err(SendError::NotConfigured),
            },
            Channel::Mail => match &self.mail {
                Some(mail) => mail.send(notice).await,
                None => Err(SendError::NotConfigured),
            },
            Channel::Log if self.log => {
                log::send(notice);
                Ok(())
            }
            Channel::Log => Err(SendError::NotConfigured),
        }
    }
}
