//! The process that sends notifications to users.
//!
//! - A notification's row says who it is for and which channel carries it. The code is made when it is
//!   sent: its hash is stored first. So no readable code is ever stored, and every code that a user
//!   receives is known to the database.
//! - Each attempt makes its own code, because the previous attempt may or may not have arrived.
//! - A code is given up after the last attempt, and so is a mail about a key, unless the mail server itself fails: that waits for
//!   a day.
//! - A code that was requested more than a day ago is not sent, nor tried again.
//! - A notification without a user (a request for an unknown address) is closed without being sent.
//!
//! It also sends mails about tasks (`task_mail_sender`), whose rows the people-task service has.
//!
//! A new reason to notify users is a `Kind`, with its texts in `emails/`.

mod channels;
mod emails;
mod error;
mod notification;
mod store;
mod task_mail;
mod task_mail_sender;

use std::sync::Arc;
use std::time::Duration;

use database::{Connection, Database, Error};
use jobs::{Claim, JobTable, Lease, Outcome, RetentionRule, RetryPolicy, Worker, WorkerConfig};
use messaging::Queue;
use server::Running;
use values::{Names as _, NotificationId};

use crate::calls;
use crate::notifications::store::DAY;
use crate::notifications::{Channel, JOBS, Kind, Notice, QUEUE};
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::NotificationWorkerSettings;
use channels::Channels;
use error::SendError;
use notification::{AboutKey, Code, Content, Notification, is_recent};
use store::{ClaimedRow, Recipient};
use task_mail_sender::TaskMailSender;

/// Notifications that one worker sends at once.
const CONCURRENCY: u16 = 32;
/// Longer than any channel takes.
const LEASE: Duration = Duration::from_secs(30);
/// The pause after those of the schedule if the mail server may have taken the mail each time, so that few copies arrive.
const UNCERTAIN_PAUSE: Duration = Duration::from_secs(6 * 3_600);
const HOUR: Duration = Duration::from_secs(3_600);

/// Starts the notification worker.
///
/// # Errors
/// The schema cannot be migrated, or the settings of a channel are invalid.
pub async fn run_notification_worker(
    settings: NotificationWorkerSettings,
) -> anyhow::Result<Running> {
    database::prepare_schema(&settings.database, SCHEMA, MIGRATIONS).await?;
    let mut running = Running::new();
    let database = Database::connect(&settings.database);
    let channels = Channels::new(&settings)?;
    let retry = RetryPolicy(settings.retry_schedule.0.clone().into());
    let task_mail = settings.task_mail_keys.as_ref();
    let task_mail = task_mail.zip(settings.people_task_service.clone());
    match (task_mail, &channels.mail) {
        (Some((keys, base)), Some(mail)) => {
            let sender = TaskMailSender {
                client: calls::client()?,
                base,
                token: keys.worker_token(),
                mail: mail.clone(),
                retry: retry.clone(),
            };
            running.spawn(sender.run(running.shutdown()));
        }
        (Some(_), None) => tracing::warn!(
            "mails about tasks are accepted and not sent: set SMTP_URL and MAIL_FROM"
        ),
        (None, _) => {}
    }
    let worker = NotificationWorker {
        database: database.clone(),
        channels,
        retry,
        settings: Arc::new(settings.clone()),
    };
    let config = WorkerConfig {
        database,
        broker: settings.broker,
        concurrency: CONCURRENCY,
        lease: LEASE,
        retention: retention(),
    };
    jobs::run(&mut running, config, worker);
    Ok(running)
}

fn retention() -> Vec<RetentionRule> {
    let rule = RetentionRule::of_all;
    let only = |table, column, keep, only| RetentionRule {
        table,
        column,
        keep,
        only,
    };
    // No token is left that was issued with the lifetime, or to the user.
    let unused = "last_used < now() - interval '1 hour' - seconds * interval '1 second'";
    let gone = "deleted < now() - interval '1 hour'
        - (SELECT max(seconds) FROM token_lifetimes) * interval '1 second'";
    vec![
        rule("codes", "expires", Duration::ZERO),
        rule("credentials", "expires", Duration::ZERO),
        // The feed lists them for 70 minutes.
        rule("ended_credentials", "ended", 2 * HOUR),
        only("token_lifetimes", "last_used", HOUR, unused),
        only("deleted_users", "deleted", HOUR, gone),
        rule("code_requests", "forgotten_at", Duration::ZERO),
        rule("notifications", "finished", DAY),
        // A back-off lasts minutes; rows stay for a day so that operators can investigate.
        rule("sign_in_failures", "last_failure", DAY),
        rule("sign_in_refusals", "hour", DAY),
        rule("known_networks", "last_sign_in", 90 * DAY),
        rule("sign_up_networks", "last_sign_up", 90 * DAY),
    ]
}

#[derive(Clone)]
struct NotificationWorker {
    database: Database,
    channels: Channels,
    retry: RetryPolicy,
    settings: Arc<NotificationWorkerSettings>,
}

impl Worker for NotificationWorker {
    type Id = NotificationId;
    /// What is sent, or why it is given up without an attempt.
    type Job = (Lease<NotificationId>, Result<Notification, SendError>);

    const TABLE: JobTable = JOBS;
    const QUEUE: Queue = QUEUE;
    const CLAIM_REDELIVERED: bool = false;

    /// Claims the notification and stores the hash of its code in one transaction, so that every code
    /// that is sent is in the database.
    fn claim(
        &self,
        connection: &mut Connection,
        claim: Claim<NotificationId>,
    ) -> Result<Option<Self::Job>, Error> {
        let recipient = store::lock_recipient(connection, claim.id)?;
        let Some((lease, (row, is_late))) = store::claim(connection, claim)? else {
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
        if is_late && Notice::from_name(&row.kind).is_none() {
            // No worker has run for long, and the user no longer waits for the code.
            tracing::info!(notification.id = %lease.id, "the code was requested too long ago");
            store::close(connection, lease, Some("late"))?;
            return Ok(None);
        }
        let notification = self.prepare(lease, &row, &recipient);
        if let Ok(notification) = &notification
            && let Content::Code(code) = &notification.content
        {
            store::insert_code(connection, &row, &recipient, code)?;
        }
        Ok(Some((lease, notification)))
    }

    fn lease((lease, _): &Self::Job) -> Lease<NotificationId> {
        *lease
    }

    async fn handle(&self, (lease, notification): &Self::Job) -> Result<Outcome, Error> {
        match notification {
            Ok(notification) => self.send(*lease, notification).await?,
            Err(reason) => self.give_up(*lease, reason.to_string()).await?,
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
        let notice = Notice::from_name(&row.kind);
        let may_wait = notice.is_some() && is_recent(row.created);
        if lease.number > i64::from(self.retry.max_attempts()) && !may_wait {
            return Err(SendError::TooManyAttempts);
        }
        let (channel, content) = if let Some(notice) = notice {
            let about_key = AboutKey {
                notice,
                name: row.key_name.clone().unwrap_or_default(),
                expires: row.key_expires,
                link: format!("{}/keys", self.settings.channels.public_url),
            };
            (Channel::Mail, Content::Key(about_key))
        } else {
            let known = Kind::from_name(&row.kind).zip(Channel::from_name(&row.channel));
            let (kind, channel) = known.ok_or(SendError::Unknown)?;
            (channel, Content::Code(Code::generate(kind, &self.settings)))
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
        match self.pause_after(failures, notification, &error) {
            Some(pause) => {
                let retry =
                    move |connection: &mut _| store::retry(connection, lease, &reason, pause);
                self.database.transaction(retry).await
            }
            None => self.give_up(lease, reason).await,
        }
    }

    /// The pause before the next attempt, if there is one. Only a mail about a key waits for a mail server that fails: a code is
    /// worthless by then, and its user asks for another one, but nothing else tells the owner of a key.
    fn pause_after(
        &self,
        attempt: u32,
        notification: &Notification,
        error: &SendError,
    ) -> Option<Duration> {
        let last = self.retry.max_attempts();
        let may_wait = matches!(notification.content, Content::Key(_));
        let waits = attempt >= last && may_wait && is_recent(notification.created);
        match error {
            SendError::MailUncertain(_) if waits => Some(UNCERTAIN_PAUSE),
            error if error.is_of_mail_server() && waits => Some(self.retry.last_pause()),
            error if error.is_permanent() => None,
            _ => self.retry.pause_after(attempt),
        }
    }

    async fn give_up(&self, lease: Lease<NotificationId>, reason: String) -> Result<(), Error> {
        tracing::error!(notification.id = %lease.id, reason, "notification given up");
        let close = move |connection: &mut _| store::close(connection, lease, Some(&reason));
        self.database.run(close).await
    }
}
