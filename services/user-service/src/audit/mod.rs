//! The audit log of accounts: the names of its actions and the administrators' list. Each capability
//! writes its entries with its changes.

mod action;
pub(crate) mod routes;

pub(crate) use action::{AuditAction, RequestActor};
