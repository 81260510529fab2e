//! User accounts: sign-up, sign-in, administration, passwords and their recovery, deletion.
//!
//! The library has three processes: the HTTP service ([`run`]), the worker that deletes users
//! (`deletions::worker`) and the worker that sends codes to users (`notifications::worker`).
//!
//! Invariants:
//! - Only this service reads or writes the schema `users` and has the key that signs access tokens.
//! - A username never equals another user's username or e-mail address. The database enforces it.
//! - A change that invalidates earlier tokens raises the user's epoch in the same transaction.
//! - Passwords are hashed on a separate small thread pool and never while a connection is held.
//! - A deletion or notification is committed before the response is sent. The queue only announces it.
//!
//! Deliberately absent: access to another service's tables.

mod accounts;
mod app;
mod audit;
mod back_off;
mod calls;
mod client_network;
mod code_limits;
mod context;
mod credentials;
pub mod deletions;
mod error;
mod hashing;
mod keys;
pub mod notifications;
mod password_rules;
mod passwords;
mod people_tasks;
mod programs;
mod revocations;
mod schema;
#[cfg(test)]
mod schema_tests;
mod sessions;
mod settings;
mod sign_in;
mod user_changes;
mod verification;

pub use app::{openapi, run};
pub use deletions::worker::run_deletion_worker;
pub use notifications::worker::run_notification_worker;
pub use programs::{PROGRAMS, deletion_worker};
pub use revocations::revoke_all_tokens;
pub use schema::{MIGRATIONS, SCHEMA};
pub use settings::{DeletionWorkerSettings, NotificationWorkerSettings, UserServiceSettings};
