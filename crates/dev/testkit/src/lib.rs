//! Helpers that the tests of several packages share.
//!
//! `cargo xtask test` starts the servers once and names them in `COUNTERSIGN_TEST_SERVERS`. Without them a test
//! fails with that advice, and is not skipped.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test kit fails tests by panicking"
)]
#![expect(missing_docs, reason = "names and signatures of many items say it all")]

mod broker;
mod certificates;
mod database;
mod forger;
mod http;
mod migrations;
mod name_server;
mod schema;
mod servers;

pub use broker::{TestBroker, shared_broker};
pub use certificates::{PrivateCa, tls_in_front_of, with_private_ca};
pub use database::{Connections, TestConnection, TestDatabase, lines, rows_read};
pub use forger::{Forger, Forgery, INCARNATION, ed25519_pem, expect_forgeries_refused};
pub use http::{Http, Reply, Request};
pub use migrations::assert_migrations_can_be_undone;
pub use name_server::TestNameServer;
pub use rig::{Mail, MailServer};
pub use schema::{assert_allowed_texts, assert_schema_matches};
pub use servers::eventually;
