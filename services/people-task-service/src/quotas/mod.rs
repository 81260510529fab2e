//! What users may have and add, each of them and all together, so that no user fills the database or the queues of all.
//!
//! A *stock* is what a user has: pending tasks, the webhooks that the user registered for them, and the bytes of titles,
//! descriptions, metadata and options of webhooks. Beyond it nothing is added until there is less. A *rate* is what is added in
//! a minute, or in an hour for mails, which begins with what is added after the last one.
//!
//! No row is locked by every write of a user: each replica adds up in memory, stocks are [counted](watch) every few
//! seconds (large ones every few minutes), and bytes are added to a row as often. So a user can exceed a stock by what is added
//! until the next count, and a rate by the number of replicas.

mod error;
mod ledger;
mod limits;
mod store;

pub(crate) use error::{QuotaError, QuotaExceeded};
pub(crate) use ledger::{Quotas, watch};
pub(crate) use limits::{Amounts, Limits};
pub(crate) use store::forget;
