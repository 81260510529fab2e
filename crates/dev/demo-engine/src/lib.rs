//! A flow engine's side of the contract, for development and tests.
//!
//! It receives what Countersign sends (webhooks of decisions, forgot-password messages), keeps it in
//! memory so that a test or a person can look at it, and implements the five calls by which a flow
//! engine erases a user's data, with a little invented data to erase. Delays, failures and an outage
//! can be asked for at start, at run time (`PUT /control`), or for one webhook by its query.
//!
//! Invariants: memory is bounded (items, bytes and users; the oldest go first); nothing that was
//! asked to wait outlives the server's stop; what was received is recorded before it is answered.
//!
//! Deliberately absent: storage, TLS, verification of webhook signatures (the receiving test does
//! that, over the recorded headers and body), and every engine feature outside the contract.

mod control;
mod duration;
mod engine;
mod erasure;
mod journal;
mod receivers;
mod server;
mod settings;
mod users;

pub use control::{Control, ControlChange};
pub use journal::{Kind, Received};
pub use server::{Server, run};
pub use settings::Settings;
