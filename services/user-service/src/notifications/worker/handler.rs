use std::sync::Arc;

use database::{Connection, Database, Error};
use jobs::{Claim, JobTable, Lease, Outcome, RetryPolicy, Worker};
use messaging::Queue;
use values::{Names as _, NotificationId};

use super::channels::Channels;
use super::error::SendError;
use super::notification::{AboutKey, CodeSettings, Content, Notification};
use super::store::{self, ClaimedRow, Recipient};
use crate::notifications::{Channel, JOBS, Kind, Notice, QUEUE};

#[derive(Clone)]
pub(super) struct NotificationWorker {
    pub(super) database: Database,
    pub(super) channels: Channels,
    pub(super) codes: Arc<CodeSettings>,
    pub(super) retry: RetryPolicy,
}

pub(super) struct Attempt {
    lease: Lease<NotificationId>,
    /// What is sent, or why it is given up without an attempt.
    notification: Result<Notification, SendError>,
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
        let Some((lease, row)) = store::claim(connection, claim)? else {
            return Ok(None);
        };
        let Some(recipient) = recipient else {
            store::close(connection, lease, None)?;
            return Ok(None);
        };
        if row.is_superseded(&recipient) {
            tracing::info!(notification.id = %lease.id, "notification superseded");
            store::close(connection, lease, Some("superseded"))?;
            return Ok(None);
        }
        let notification = self.prepare(lease, &row, &recipient);
        if let Ok(notification) = &notification
            && let Content::Code(code) = &notification.content
        {
            store::insert_code(connection, &row, &recipient, code)?;
        }
        Ok(Some(Attempt {
            lease,
            notification,
        }))
    }

    fn lease(attempt: &Attempt) -> Lease<NotificationId> {
        attempt.lease
    }

    async fn handle(&self, attempt: &Attempt) -> Result<Outcome, Error> {
        match &attempt.notification {
            Ok(notification) => self.send(attempt.lease, notification).await?,
            Err(reason) => self.give_up(attempt.lease, reason.to_string()).await?,
        }
        Ok(Outcome::Settled)
    }
}

impl NotificationWorker {
    fn prepare(
        &self,
        lease: Lease<NotificationId>,
        row: &ClaimedRow,
        recipient: &Recipient,
    ) -> Result<Notification, SendError> {
        if lease.number > i64::from(self.retry.max_attempts()) {
            return Err(SendError::TooManyAttempts);
        }
        let (channel, content) = if let Some(notice) = Notice::from_name(&row.kind) {
            let about_key = AboutKey {
                notice,
                name: row.key_name.clone().unwrap_or_default(),
                expires: row.key_expires,
                link: self.codes.keys.clone(),
            };
            (Channel::Mail, Content::Key(about_key))
        } else {
            let known = Kind::from_name(&row.kind).zip(Channel::from_name(&row.channel));
            let (kind, channel) = known.ok_or(SendError::Unknown)?;
            (channel, Content::Code(self.codes.generate(kind)))
        };
        Ok(Notification {
            id: lease.id,
            channel,
            user: recipient.user,
            email: recipient.email.clone(),
            created: row.created,
            content,
        })
    }

    #[tracing::instrument(skip_all, fields(notification.id = %lease.id, user.id = %notification.user, channel = notification.channel.name()))]
    async fn send(
        &self,
        lease: Lease<NotificationId>,
        notification: &Notification,
    ) -> Result<(), Error> {
        let sent = self.channels.send(notification).await;
        let outcome = if sent.is_ok() { "sent" } else { "failed" };
        metrics::counter!("notification_attempts_total", "channel" => notification.channel.name(), "outcome" => outcome)
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
