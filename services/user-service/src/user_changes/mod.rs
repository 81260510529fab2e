//! Tells the people-task service of changes of users on which the power over tasks depends: whether a user is active, an
//! administrator, and has an e-mail address that gives access to tasks. It stops the webhooks of a user who has lost that.
//!
//! - A trigger on `users` writes a row of `user_changes` in the transaction of the change, so no change is forgotten. There
//!   is one row for a user, however often the user changes.
//! - The deletion-worker sends the user's present state and deletes the row, unless it was written again meanwhile. A worker
//!   that is killed in between sends the same state again.
//! - Calls may arrive in another order than the changes were made. Each has the time of the latest change that it contains,
//!   which always grows for a user, and the people-task service ignores a call with an earlier one.

mod sender;
mod store;

pub(crate) use sender::UserChangeSender;
