//! Deletion of users: a job of several steps, and the ticket that shows its progress.

mod engine;
pub(crate) mod routes;
mod steps;
mod store;
mod tickets;
pub mod worker;

use database::Database;
use jobs::JobTable;
use messaging::Queue;
use values::DeletionId;

pub use steps::Step;
#[cfg(test)]
pub(crate) use store::DeletionStatus;

/// Records for the deletion-worker whether new deletions have steps at a flow engine, and whether only confirmed addresses
/// give access to tasks.
pub(crate) async fn record_settings(
    database: &Database,
    with_engine: bool,
    confirmation_required: bool,
) -> Result<(), database::Error> {
    let record = move |connection: &mut _| {
        store::record_settings(connection, with_engine, confirmation_required)
    };
    database.run(record).await
}

/// Jobs that delete a user.
pub(crate) const JOBS: JobTable<DeletionId> = JobTable::new("deletions");
/// Identifiers of deletions that are due.
pub const QUEUE: Queue = Queue::new("user.deletions");
