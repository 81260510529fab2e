//! New tasks: each with its webhooks, its mails and, if the request may be repeated, its answer, in one transaction.

mod create;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod write;
