//! Webhooks: registered for a pending task, called once it is decided, and when its due date passes.

pub(crate) mod check;
mod manage;
pub(crate) mod register;
pub(crate) mod requests;
pub(crate) mod responses;
pub(crate) mod routes;
mod send_test;
pub(crate) mod store;
