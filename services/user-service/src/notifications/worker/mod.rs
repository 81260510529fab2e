//! The process that sends messages to users.
//!
//! - A message's row says for whom it is and by which channel; the code is made here, at the last
//!   moment, stored as a fingerprint, and only then sent. So no code is ever at rest in a readable form,
//!   and a code that somebody receives is one that the database knows.
//! - Each attempt makes a code of its own, because nobody can tell whether the attempt before arrived.
//! - A message for nobody (a request for an unknown address) is closed without being sent.
//!
//! A new reason to send something is a `notice::Kind`, with its words in `texts`.

mod channels;
mod notice;
mod store;
mod texts;
mod work;

use std::sync::Arc;
use std::time::Duration;

use database::Database;
use messaging::{ConsumerConfig, Publisher};
use service_runtime::Running;

use crate::notifications::QUEUE;
use crate::retention::{self, Rule};
use crate::schema::{MIGRATIONS, SCHEMA};
use crate::settings::NotificationWorkerSettings;
use crate::worker::{self, Outbox};
use channels::Channels;
use notice::CodeSettings;
use work::Worker;

/// Messages that one worker sends at once.
const MESSAGES_AT_ONCE: u16 = 32;
/// How long a message's row stays after it was closed.
const KEEP_CLOSED: Duration = Duration::from_secs(24 * 3_600);
/// No back-off lasts longer than minutes; a day also covers clocks and curious operators.
const KEEP_FAILURES: Duration = Duration::from_secs(24 * 3_600);

/// Starts the notification worker.
///
/// # Errors
/// The schema cannot be migrated, or the settings of a channel cannot be used.
pub async fn run_notification_worker(
    settings: NotificationWorkerSettings,
) -> anyhow::Result<Running> {
    database::migrate(&settings.database, SCHEMA, MIGRATIONS).await?;
    let mut running = Running::new();
    let shutdown = running.shutdown();
    let database = Database::connect(&settings.database);
    let messages = Worker {
        database: database.clone(),
        channels: Channels::new(&settings)?,
        codes: Arc::new(code_settings(&settings)),
        retry_schedule: settings.retry_schedule.into(),
        shutdown: shutdown.clone(),
    };

    let queue = QUEUE;
    let (publisher, publishing) = Publisher::new(settings.broker.clone(), queue, shutdown.clone());
    running.spawn(publishing);
    let sweep = worker::sweep(publisher, database.clone(), shutdown.clone(), store::due);
    running.spawn(sweep);
    let gauges = worker::measure(database.clone(), Outbox::Notifications, shutdown.clone());
    running.spawn(gauges);

    let rules = vec![
        Rule::codes(),
        Rule::code_requests(),
        Rule::notifications(KEEP_CLOSED),
        Rule::sign_in_failures(KEEP_FAILURES),
    ];
    running.spawn(retention::retain(database.clone(), rules, shutdown.clone()));

    let consumption = ConsumerConfig::new(settings.broker, queue, MESSAGES_AT_ONCE);
    running.health = worker::health(&database, &consumption);
    running.spawn(messaging::consume(consumption, shutdown, move |message| {
        messages.clone().handle(message)
    }));
    Ok(running)
}

fn code_settings(settings: &NotificationWorkerSettings) -> CodeSettings {
    CodeSettings {
        forgot_password: settings.channels.link.clone(),
        verify_email: settings.verify_email_link.clone(),
        lifetime: settings.channels.code_lifetime,
    }
}
