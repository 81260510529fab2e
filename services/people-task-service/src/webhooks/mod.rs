//! Webhooks: registered for a pending task, called once it is decided, and when its due date passes.

mod delete;
mod error;
mod list;
pub(crate) mod register;
mod registration_store;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;
