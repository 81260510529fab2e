//! The audit log: who did what to which user or task, when, from where, with which request id.
//!
//! - [`Entry`] is one row to be. [`Entry::with`] puts it into the statement that makes the change, so
//!   that the row costs no round trip of its own; [`Entry::record`] is for changes that are no single
//!   statement. Either way the row is part of the change's transaction: what was answered is logged.
//! - [`respond`], [`AuditParameters`] and [`AuditEntry`] are the administrators' view.
//! - [`retain`] prunes what is old, [`forget_addresses`] takes the addresses of somebody who was deleted, and
//!   [`pseudonymise`] the identifier.
//!
//! Each service has a table `audit_log` in its own schema, made by its own migrations. The services'
//! database roles may insert and read; the changes that there are to rows, pruning, forgetting addresses and
//! putting pseudonyms, are functions of the owner's.
//!
//! Invariants:
//! - A row holds identifiers and the names of what changed, never a value: no e-mail address, username,
//!   password, token, code or secret.
//! - The moment and the row's number are the database's; no statement of a service can set them.

mod answer;
mod entry;
mod list;
mod request_meta;
mod retention;
mod statement;
mod store;
mod table;

pub use answer::AuditEntry;
pub use entry::{Actor, AuthMethod, Entry, Subject};
pub use list::{AuditParameters, respond};
pub use request_meta::RequestMeta;
pub use retention::{read_retention, retain};
pub use statement::{Recorded, Second};
pub use store::{forget_addresses, pseudonymise};
