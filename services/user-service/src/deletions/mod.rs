//! Deletion of users: a job of several steps, and the ticket that shows its progress.

mod requests;
pub(crate) mod routes;
mod steps;
pub(crate) mod store;
mod tickets;
pub mod worker;

use jobs::JobTable;
use messaging::Queue;

pub use steps::Step;

pub(crate) const JOBS: JobTable = JobTable("deletions");
/// Identifiers of deletions that are due.
pub const QUEUE: Queue = Queue::new("user.deletions");
