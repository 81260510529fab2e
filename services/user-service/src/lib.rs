//! User accounts: sign-up, sign-in, administration, passwords and their recovery, deletion.
//!
//! One library, three processes: the HTTP service ([`run`]), the worker that deletes users
//! (`deletions::worker`) and the worker that sends messages to users (`notifications::worker`).
//!
//! Invariants:
//! - This service alone owns the schema `users` and the key that signs access tokens.
//! - No username equals another user's username or e-mail address; the database sees to it.
//! - Whatever makes earlier tokens wrong raises the user's epoch in the same transaction.
//! - Passwords are hashed on a small pool of their own and never while a connection is held.
//! - A job or message that was answered for is a committed row; the queue only says that it is there.
//!
//! Deliberately absent: sessions, refresh tokens, and any reading of another service's tables.

mod accounts;
mod app;
mod audit;
mod context;
pub mod deletions;
mod documentation;
mod hashing;
mod jitter;
pub mod notifications;
mod passwords;
mod retention;
mod revocations;
mod schema;
pub mod settings;
mod sign_in;
mod sql;
mod worker;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use app::{openapi, run};
pub use deletions::worker::run_deletion_worker;
pub use notifications::worker::run_notification_worker;
pub use settings::{DeletionWorkerSettings, NotificationWorkerSettings, UserServiceSettings};

/// The schema that this service owns.
pub(crate) const SCHEMA: &str = "users";
/// The migrations of the schema `users`.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!();
