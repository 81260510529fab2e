//! The bridge to Postgres.
//!
//! diesel blocks, so only closures that are passed to [`Database::run`] or [`Database::transaction`] use a
//! connection. They run on threads for blocking work, at most one per connection, and callers that would
//! wait too long get [`Error::Busy`]. Store functions take `&mut` [`Connection`], so that several compose in
//! one transaction, and [`transaction`] nests them.
//!
//! The pools log when the database becomes unavailable and when it is back.
//!
//! Invariant: a closure does nothing slow besides its statements, such as hashing or calling other systems.

mod availability;
mod batches;
mod connector;
mod error;
mod migrations;
mod observer;
mod pool;
mod prepared;
mod requirements;
mod settings;

pub use batches::{BatchLimits, BatchOutcomes, Batches, Lookups, Round, lookups};
pub use error::{Cause, DatabaseProblems, Error};
pub use migrations::{MigrationError, check_schema, migrate, prepare_schema};
pub use pool::{Database, ServicePools, transaction};
pub use prepared::{And, Prepared, column, composed, interval, prepared};
pub use settings::{DatabaseSettings, OwnerSettings, StatementLimits};

/// A connection to Postgres: [`Database::run`] passes it to its closure, and rules pass it on to stores, so
/// that only stores depend on diesel.
pub use diesel::PgConnection as Connection;
