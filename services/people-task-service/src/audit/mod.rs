//! The audit log of tasks. Each capability writes its rows together with its changes; this module has the
//! names of the actions, and the administrators' list.

mod action;
mod entries;
pub(crate) mod routes;

pub(crate) use action::{AuditAction, AuditIdentity};
pub(crate) use entries::insert_entries;
