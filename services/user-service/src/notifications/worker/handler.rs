use std::sync::Arc;

use database::{Connection, Database, Error};
use jobs::{Claim, JobTable, Lease, Outcome, RetryPolicy, Worker};
use messaging::Queue;
use values::{Names as _, NotificationId, Secret, UserId};

use super::channels::Channels;
use super::key_mail::KeyMail;
use super::notification::{CodeSettings, Notification};
use super::store::{self, ClaimedRow, Recipient};
use crate::notifications::{Channel, JOBS, Kind, Notice, QUEUE};

/// Sends notifications.
#[derive(Debug, Clone)]
pub(super) struct NotificationWorker {
    pub(super) database: Database,
    pub(super) channels: Channels,
    pub(super) codes: Arc<CodeSettings>,
    pub(super) retry: RetryPolicy,
}

/// A claimed notification.
pub(super) struct Attempt {
    lease: Lease<NotificationId>,
    content: Result<Content, Undeliverable>,
}

/// What is sent.
enum Content {
    /// A code, through a channel.
    Code(Channel, Notification),
    /// A mail about an API key.
    Key(KeyMail),
}

impl Content {
    fn user(&self) -> UserId {
        match self {
            Self::Code(_, notification) => notification.user,
            Self::Key(mail) => mail.user,
        }
    }

    fn channel(&self) -> Channel {
        match self {
            Self::Code(channel, _) => *channel,
            Self::Key(_) => Channel::Mail,
        }
    }
}

/// Why a notification is given up without an attempt.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Undeliverable {
    #[error("every attempt ended without a result")]
    TooManyAttempts,
    #[error("this version does not know the notification's kind or channel")]
    Unknown,
}

impl Worker for NotificationWorker {
    type Id = NotificationId;
    type Job = Attempt;

    const TABLE: JobTable<NotificationId> = JOBS;
    const QUEUE: Queue = QUEUE;
    const CLAIM_REDELIVERED: bool = false;

    /// Claims the notification and stores the hash of its code in one transaction, so that every code
    /// that is sent is in the database.
    fn claim(
        &self,
        connection: &mut Connection,
        claim: Claim<NotificationId>,
    ) -> Result<Option<Attempt>, Error> {
        let recipient = store::lock_recipient(connection, claim.id)?;
        let Some(row) = store::claim(connection, claim)? else {
            return Ok(None);
        };
        let Some(recipient) = recipient else {
            store::close(connection, row.lease, None)?;
            return Ok(None);
        };
        if row.is_superseded(&recipient) {
            tracing::info!(notification.id = %row.lease.id, "notification superseded");
            store::close(connection, row.lease, Some("superseded"))?;
            return Ok(None);
        }
        let content = self.prepare(&row, &recipient);
        if let Ok(Content::Code(_, notification)) = &content {
            store::insert_code(connection, &row, &recipient, notification)?;
        }
        let lease = row.lease;
        Ok(Some(Attempt { lease, content }))
    }

    fn lease(attempt: &Attempt) -> Lease<NotificationId> {
        attempt.lease
    }

    async fn handle(&self, attempt: &Attempt) -> Result<Outcome, Error> {
        match &attempt.content {
            Ok(content) => self.send(attempt.lease, content).await?,
            Err(reason) => self.give_up(attempt.lease, reason.to_string()).await?,
        }
        Ok(Outcome::Settled)
    }
}

impl NotificationWorker {
    fn prepare(&self, row: &ClaimedRow, recipient: &Recipient) -> Result<Content, Undeliverable> {
        if row.lease.number > i64::from(self.retry.max_attempts()) {
            return Err(Undeliverable::TooManyAttempts);
        }
        if let Some(notice) = Notice::from_name(&row.kind) {
            return Ok(Content::Key(self.key_mail(notice, row, recipient)));
        }
        let known = Kind::from_name(&row.kind).zip(Channel::from_name(&row.channel));
        let (kind, channel) = known.ok_or(Undeliverable::Unknown)?;
        let code = Secret::random();
        let notification = Notification {
            id: row.lease.id,
            kind,
            user: recipient.user,
            email: recipient.email.clone(),
            created: row.created,
            link: self.codes.link(kind, &code),
            code,
            lifetime: self.codes.lifetime,
        };
        Ok(Content::Code(channel, notification))
    }

    fn key_mail(&self, notice: Notice, row: &ClaimedRow, recipient: &Recipient) -> KeyMail {
        let (name, expires) = row.key.clone();
        KeyMail {
            id: row.lease.id,
            notice,
            user: recipient.user,
            email: recipient.email.clone(),
            name: name.unwrap_or_default(),
            expires,
            link: self.codes.keys.clone(),
        }
    }

    #[tracing::instrument(skip_all, fields(notification.id = %lease.id, user.id = %content.user(), channel = content.channel().name()))]
    async fn send(&self, lease: Lease<NotificationId>, content: &Content) -> Result<(), Error> {
        let channel = content.channel();
        let sent = match content {
            Content::Code(channel, code) => self.channels.send(*channel, code).await,
            Content::Key(mail) => self.channels.send_about_key(mail).await,
        };
        let outcome = if sent.is_ok() { "sent" } else { "failed" };
        metrics::counter!("notification_attempts_total", "channel" => channel.name(), "outcome" => outcome)
            .increment(1);
        let attempt = lease.number;
        let Err(error) = sent else {
            tracing::info!(attempt, "notification sent");
            let close = move |connection: &mut _| store::close(connection, lease, None);
            return self.database.run(close).await;
        };
        tracing::warn!(attempt, error = %error, "notification not sent");
        let reason = error.to_string();
        let failures = u32::try_from(attempt).unwrap_or(u32::MAX);
        let pause = self.retry.pause_after(failures);
        match pause.filter(|_| !error.is_permanent()) {
            Some(pause) => {
                let retry =
                    move |connection: &mut _| store::retry(connection, lease, &reason, pause);
                self.database.transaction(retry).await
            }
            None => self.give_up(lease, reason).await,
        }
    }

    async fn give_up(&self, lease: Lease<NotificationId>, reason: String) -> Result<(), Error> {
        tracing::error!(notification.id = %lease.id, reason, "notification given up");
        let close = move |connection: &mut _| store::close(connection, lease, Some(&reason));
        self.database.run(close).await
    }
}
