//! Jobs that are rows of a table, and the worker that processes them.
//!
//! A [`JobTable`] is any table with the columns that its documentation lists. A request inserts a row; a
//! [`Worker`] says how a row is claimed and what one step of its work is; [`run`] does the rest, and reports readiness.
//!
//! Invariants:
//! - A claim has a [`Lease`] with a number. Every write of a worker names it, so that a worker that lost
//!   its lease writes nothing.
//! - A job needs no message: lost, duplicated and reordered messages do no harm.
//! - No connection is held while a step calls another service.
//!
//! Deliberately absent: what ends a job. The status and the columns that explain it belong to the table's
//! capability.

mod retry;
mod store;
mod sweep;
mod worker;

pub use retry::{RetryPolicy, growing_pause, jitter};
pub use store::{Backlog, Claim, JobId, JobTable, Lease, RetentionRule, retain};
pub use worker::{Outcome, Worker, WorkerConfig, health, run};

use std::time::Duration;

/// How long sweeps ignore a new row: its request publishes the message right after the commit.
pub const REPUBLISH_GRACE: Duration = Duration::from_secs(5);
