//! The flow engine's side of the contract, for development and tests.
//!
//! The engine receives what Countersign sends (webhooks of decisions and forgot-password messages) and keeps it in
//! memory for tests and people. It implements the five calls by which a flow engine erases a user's data, with
//! a little sample data. Delays, failures and an outage can be set at start, at run time (`PUT /control`), or for
//! one webhook in its query.
//!
//! Invariants: memory is bounded (items, bytes and users), and the oldest entries are dropped first. Delays end when
//! the server stops. A call is recorded before the response is sent.
//!
//! Deliberately absent: storage, TLS, verification of webhook signatures (tests do that with the recorded headers
//! and body), and all features of an engine outside the contract.

mod app;
mod engine;
mod erasure;
mod journal;
mod receivers;
mod settings;
mod users;

pub use app::{Server, run};
pub use journal::{Kind, Received};
pub use settings::{Control, ControlChange, Settings};
