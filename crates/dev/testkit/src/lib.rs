//! What tests share.
//!
//! - [`TestDatabase`]: a database of the test's own, cloned from a migrated template, dropped at the end.
//! - [`TestBroker`]: a vhost of the test's own.
//! - [`TokenAuthority`]: stands in for the user service where only its keys and its revocation feed are
//!   needed, and signs any token that a test wants.
//! - [`Forger`]: the table of tokens that must not count, and [`expect_forgeries_refused`] that sends it.
//! - [`Http`]: requests against a running service; [`Reply`] has the status, the headers and the JSON.
//! - [`assert_schema_matches`] and [`assert_allowed_texts`]: hold tables and enums against the database.
//! - [`eventually()`]: waits for a condition, never for a time.
//!
//! The servers are started once by `cargo xtask test`, which names them in `COUNTERSIGN_TEST_SERVERS`.
//! A test without them fails with that advice: no test is skipped in silence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test kit fails tests by panicking"
)]

mod broker;
mod database;
mod eventually;
mod forger;
mod http;
mod keys;
mod schema;
mod servers;
mod token_authority;

pub use broker::TestBroker;
pub use database::TestDatabase;
pub use eventually::eventually;
pub use forger::{Forger, Forgery, expect_forgeries_refused};
pub use http::{Http, Reply, Request};
pub use keys::ed25519_pem;
pub use schema::{assert_allowed_texts, assert_schema_matches};
pub use token_authority::TokenAuthority;
