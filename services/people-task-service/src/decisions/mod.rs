//! Decisions: the approver approves or rejects a task once, and its webhooks are called.

mod decide;
mod requests;
pub(crate) mod routes;
