//! The process that sends notifications to users.
//!
//! - A notification's row says who it is for and which channel carries it. The code is made when it is
//!   sent: its hash is stored first. So no readable code is ever stored, and every code that a user
//!   receives is known to the database.
//! - Each attempt makes its own code, because the previous attempt may or may not have arrived.
//! - A notification without a user (a request for an unknown address) is closed without being sent.
//!
//! It also sends mails about tasks (`task_mails`), whose rows the people-task service has.
//!
//! A new reason to notify users is a `Kind`, with its texts in `emails/`.

mod channels;
mod emails;
mod error;
mod handler;
mod notification;
mod store;
mod task_mail;
mod task_mails;

use std::sync::Arc;
use std::time::Duration;

use database::Database;
use jobs::{RetentionRule, RetryPolicy, WorkerConfig};
use server::Running;

use crate::calls;
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::NotificationWorkerSettings;
use channels::Channels;
use handler::NotificationWorker;
use notification::CodeSettings;
use task_mails::TaskMailSender;

/// Notifications that one worker sends at once.
const CONCURRENCY: u16 = 32;
/// Longer than any channel takes.
const LEASE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

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
    let retry = RetryPolicy::Schedule(settings.retry_schedule.0.into());
    if let (Some(keys), Some(base), Some(mail)) = (
        settings.task_mail_keys,
        settings.people_task_service,
        &channels.mail,
    ) {
        let sender = TaskMailSender {
            client: calls::client()?,
            base,
            token: keys.worker_token(),
            mail: mail.clone(),
            retry: retry.clone(),
        };
        running.spawn(sender.run(running.shutdown()));
    }
    let worker = NotificationWorker {
        database: database.clone(),
        channels,
        codes: Arc::new(CodeSettings {
            keys: format!("{}/keys", settings.channels.public_url),
            forgot_password: settings.channels.link,
            verify_email: settings.verify_email_link,
            lifetime: settings.channels.code_lifetime,
        }),
        retry,
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
    let rule = |table, column, keep| RetentionRule {
        table,
        column,
        keep,
    };
    vec![
        rule("codes", "expires", Duration::ZERO),
        rule("credentials", "expires", Duration::ZERO),
        // The feed lists them for an hour.
        rule("ended_credentials", "ended", 2 * HOUR),
        rule("code_requests", "forgotten_at", Duration::ZERO),
        rule("notifications", "finished", DAY),
        // A back-off lasts minutes; rows stay for a day so that operators can investigate.
        rule("sign_in_failures", "last_failure", DAY),
        rule("sign_in_refusals", "hour", DAY),
        rule("known_networks", "last_sign_in", 90 * DAY),
        rule("sign_up_networks", "last_sign_up", 90 * DAY),
    ]
}
