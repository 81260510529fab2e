//! Mails about tasks: the approver is asked, reminded before and at the due date, and told if the task is withdrawn; the
//! requester is told about the decision. The notification worker fetches them:
//! [why](../../../../docs/decisions/mails-are-fetched.md).
//!
//! `mailed_tasks` has a row for each task that mails are sent about. A mail whose worker ends is sent by another: at least once.
//! A mail is judged when it is claimed. It is dropped if the task has changed, the recipient wants no reminders or has
//! got too many mails, or the mail is a day late, such as after a backup was restored.

mod claim;
pub(crate) mod routes;
mod store;
mod unsubscribe;

use std::time::Duration;

use auth::mails::MailKind;
use database::Database;
use jobs::RetentionRule;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::status::TaskStatus;

pub(crate) use store::{TURNS, delete_of_recipients, is_mailed, planned_reminders, replan};

/// Rows that are no longer needed. Mails that were never claimed are deleted when they would be dropped anyway.
pub(crate) const RETENTION: [RetentionRule; 2] = [
    RetentionRule::of_all("mail_counts", "hour", Duration::from_hours(1)),
    RetentionRule::of_all("task_mails", "next_attempt", Duration::from_hours(48)),
];

/// Whether recipients can opt out of mails of this kind.
fn is_reminder(kind: MailKind) -> bool {
    matches!(kind, MailKind::Reminder | MailKind::Due)
}

/// Whether a mail of this kind is right about a task with this status.
fn fits(kind: MailKind, status: TaskStatus) -> bool {
    match kind {
        MailKind::Asked | MailKind::Reminder | MailKind::Due => status == TaskStatus::Pending,
        MailKind::Decided => matches!(status, TaskStatus::Approved | TaskStatus::Rejected),
        MailKind::Cancelled => status == TaskStatus::Cancelled,
    }
}

const BACKLOG_INTERVAL: Duration = Duration::from_secs(15);

/// Keeps the gauge of the backlog up to date until it is cancelled. It grows when no notification worker sends.
pub(crate) async fn watch_backlog(database: Database, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        match database.run(store::oldest_due).await {
            Ok(seconds) => metrics::gauge!("task_mails_oldest_due_seconds").set(seconds),
            Err(error) => error.warn("the mails that are due could not be read"),
        }
        shutdown.run_until_cancelled(sleep(BACKLOG_INTERVAL)).await;
    }
}
