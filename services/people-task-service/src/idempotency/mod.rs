//! Repeats of requests: a caller that did not get an answer sends the request again with the same `Idempotency-Key`, and
//! gets what was answered.
//!
//! - The answer is a row, inserted by the transaction that makes the change. So if the change was made, the answer is
//!   known, whenever a process ends; and only successes are remembered.
//! - A transaction that handles such a request holds an advisory lock of its key. A request that does not get it is told
//!   that another one runs, so nothing waits, and two of them never both find that there is no answer.
//! - Keys can be guessed and stand in logs, so rows are found by an HMAC of them, and of whose they are and for what. The
//!   secrets of a new task are derived for each answer from seeds in the row and a key that is not in the database.

mod error;
mod keys;
mod requests;
pub(crate) mod store;

use std::time::Duration;

use jobs::RetentionRule;
use values::Names as _;

pub(crate) use error::{RepeatError, Repeated};
pub(crate) use keys::{Operation, Repeatable, repeat_keys};
pub(crate) use requests::{IDEMPOTENT_REPLAYED, IdempotencyKeyHeader, repeatable};
pub(crate) use store::StoredAnswer;

/// Answers are kept for a day.
pub(crate) const RETENTION: RetentionRule = RetentionRule {
    table: "idempotency_keys",
    column: "created",
    keep: Duration::from_secs(24 * 3_600),
};

/// Counts a request with a key by what became of it.
pub(crate) fn count(operation: Operation, outcome: &'static str) {
    metrics::counter!("idempotent_requests_total", "operation" => operation.name(), "outcome" => outcome)
        .increment(1);
}
