//! Webhooks: registered for a pending task, called once it is decided.

mod delete;
mod error;
mod list;
mod register;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;
