//! Private Postgres and RabbitMQ servers for development and tests.
//!
//! Invariants:
//! - Every process started here is known by a pid file, and only processes that were started here are
//!   signalled.
//! - Servers listen only on loopback addresses.
//! - Servers outlive the program that started them, until [`Servers::stop`] is called.
//!
//! Deliberately absent: database and broker client libraries. This crate must build on a machine that does
//! not have them yet.

#![expect(missing_docs, reason = "names and signatures of many items say it all")]

pub mod bootstrap;
pub mod client;
mod description;
pub mod packages;
mod pid_file;
pub mod ports;
mod postgres;
pub mod private;
mod process;
mod rabbitmq;
pub mod random;
mod servers;

pub use bootstrap::Roles;
pub use client::{database_name, with_database};
pub use description::{
    Description, PostgresDescription, RabbitMqDescription, TEST_SERVERS_VARIABLE,
};
pub use packages::Need;
pub use postgres::Postgres;
pub use process::{
    Detached, EndOnDrop, Identity, family, find_by_variable, holds_within, output_of, succeeds,
    tail, wait_until,
};
pub use rabbitmq::RabbitMq;
pub use servers::{Durability, Layout, Servers, Stop};
