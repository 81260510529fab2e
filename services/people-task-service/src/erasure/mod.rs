//! Erasure of a deleted user's data, in steps that the deletion-worker repeats until nothing is left.
//!
//! It deletes the tasks that the user created or requested, with their webhooks, deliveries and attempts, and
//! the webhooks that the user registered for other tasks. Tasks of others that the user approves stay: they are
//! the requester's data. In the audit log a pseudonym replaces the user's id, and client addresses are removed.

mod erase;
mod requests;
mod responses;
pub(crate) mod routes;
mod store;
