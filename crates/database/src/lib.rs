//! The bridge to Postgres.
//!
//! diesel blocks, so nothing but [`Database::run`] and [`Database::transaction`] touches a connection:
//! they run a closure on a thread for blocking work, never more closures at once than there are
//! connections, and refuse with [`Error::Busy`] what would wait too long. Store functions take
//! `&mut PgConnection`, so that they compose in one transaction.
//!
//! [`migrate`] brings a schema up to date at start, under a lock that all replicas share.
//!
//! Invariant: nothing slow (a hash, a call to elsewhere) happens inside such a closure.

mod connector;
mod error;
mod interval;
mod migrations;
mod pool;
mod prepared;

pub use error::{Error, violated_constraint};
pub use interval::interval;
pub use migrations::{MigrationError, migrate};
pub use pool::{Database, DatabaseSettings, transaction};
pub use prepared::{And, Prepared, prepared};

/// A connection to Postgres: what [`Database::run`] hands to its closure and rules pass on to stores, so
/// that only stores name diesel.
pub type Connection = diesel::PgConnection;
