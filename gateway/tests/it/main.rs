//! The gateway with real sockets: callers on one side, fake services that record requests on the other.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "shared test code may panic like the tests"
)]

mod access;
mod circuit_breaker;
mod connection;
mod cors;
mod failures;
mod fixture;
mod head_requests;
mod headers;
mod keys;
mod pages;
mod problems;
mod process;
mod rate_limit;
mod request_bodies;
mod routes;
mod services;
mod shares;
mod tls;
mod waiting;
