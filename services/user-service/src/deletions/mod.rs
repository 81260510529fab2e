//! Deletion of users: a job of several steps, and the ticket that shows its progress.

mod engine;
mod error;
mod list;
mod people_tasks;
mod requests;
mod responses;
mod retry;
pub(crate) mod routes;
mod start;
mod steps;
mod store;
mod ticket;
pub mod worker;

use database::Database;
use jobs::JobTable;
use messaging::Queue;
use values::DeletionId;

pub use steps::Step;
#[cfg(test)]
pub(crate) use store::DeletionStatus;

/// Records whether new deletions have steps at a flow engine, for the deletion-worker.
pub(crate) async fn record_with_engine(
    database: &Database,
    with_engine: bool,
) -> Result<(), database::Error> {
    let record = move |connection: &mut _| store::record_with_engine(connection, with_engine);
    database.run(record).await
}

/// Jobs that delete a user.
pub(crate) const JOBS: JobTable<DeletionId> = JobTable::new("deletions");
/// Identifiers of deletions that are due.
pub const QUEUE: Queue = Queue::new("user.deletions");
