//! The audit log: who changed which user or task, when, from which address, with which request id.
//!
//! Each service has a table `audit_log` in its own schema, which its migrations create. They also list the actions of the
//! service. Each month is a partition. The database roles of the services can only insert and read
//! rows; deleting, forgetting and pseudonymising are functions of the schema's owner.
//!
//! Invariants:
//! - A row is part of the transaction that makes the change.
//! - A row holds identifiers and names of changed fields, never values: no e-mail address, username, password,
//!   token, code or secret.
//! - The database sets the time and the number of a row; statements of the services cannot.

mod entry;
mod list;
mod retention;

pub use entry::{Actor, AuthMethod, Entry, RecordWith, RequestMeta, Subject};
pub use list::{AuditEntry, AuditQuery, list};
pub use retention::{Changes, forget_addresses, pseudonymise, read_retention, retain};
