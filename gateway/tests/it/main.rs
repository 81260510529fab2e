//! The gateway between real sockets: callers on one side, services that record what they get on the other.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is shared by tests may panic like the tests themselves"
)]

mod access;
mod bodies;
mod circuit;
mod connection;
mod cors;
mod documents;
mod failures;
mod head_requests;
mod headers;
mod pages;
mod rate;
mod routes;
mod services;
mod tls;
mod world;
