//! Deleting a user: a job of steps that a worker goes through, and the ticket that shows how far it is.

mod calls;
mod engine;
mod error;
mod people_tasks;
pub(crate) mod routes;
mod start;
mod steps;
mod store;
pub mod worker;

use messaging::Queue;

pub use steps::Step;

/// Identifiers of deletions that are due.
pub const QUEUE: Queue = Queue::new("user.deletions");
