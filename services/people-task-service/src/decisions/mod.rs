//! Decisions: the approver approves or rejects a task once, or the other side withdraws it, and its webhooks are called.

pub(crate) mod decide;
mod requests;
pub(crate) mod routes;
mod store;
