//! Private Postgres and RabbitMQ servers for development and tests.
//!
//! [`Servers::start`] runs both under one directory, on free loopback ports, with random passwords;
//! starting again on the same directory finds the same data, ports and passwords. [`packages`] installs
//! what a bare Debian lacks. [`bootstrap`] prepares a database with the project's roles and schemas.
//!
//! What holds:
//! - Every process started here is known by a pid file, and nothing is ever signalled that cannot be
//!   shown to be ours (see [`process`]).
//! - Nothing listens on other than loopback addresses.
//! - Servers outlive the program that started them, until somebody calls [`Servers::stop`].
//!
//! Deliberately absent: database and broker client libraries. This crate has to build on a machine
//! that does not have them yet.

pub mod bootstrap;
pub mod description;
mod error;
pub mod packages;
pub mod ports;
mod postgres;
pub mod process;
mod rabbitmq;
pub mod random;
mod servers;
mod url_parts;

pub use bootstrap::{RolePasswords, RoleUrls};
pub use description::{Description, TEST_SERVERS_VARIABLE};
pub use error::{Error, Result};
pub use postgres::Postgres;
pub use rabbitmq::RabbitMq;
pub use servers::{Durability, Options, Parts, Servers, Stop};
pub use url_parts::with_database;
