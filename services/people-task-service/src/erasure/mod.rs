//! Erasure of a deleted user's data, in steps that the deletion-worker repeats until nothing is left.
//!
//! It deletes the tasks that the user created or requested, with their webhooks, deliveries and attempts, and
//! the webhooks that the user registered for other tasks, the mails that the user would get about them, and what repeats
//! of the user's requests would get. Tasks of others that the user approves stay: they are the requester's data. In the audit log a pseudonym replaces the user's id, and client addresses are removed.
//!
//! Before anything is deleted, a row in `erased_users` keeps the user's tokens from adding anything, even if this
//! service cannot read the revocation feed. It is kept for as long as a token can be valid.

mod erase;
mod requests;
pub(crate) mod routes;

use std::time::Duration;

use jobs::RetentionRule;

/// How long it is known which users were erased: as long as any token can be valid, and a day.
pub(crate) const RETENTION: RetentionRule = RetentionRule {
    table: "erased_users",
    column: "erased",
    keep: auth::MAX_TOKEN_LIFETIME.saturating_add(Duration::from_secs(24 * 3600)),
};
