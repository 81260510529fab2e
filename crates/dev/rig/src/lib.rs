//! Starts, drives and breaks systems: what the commands in `devtools`, `drills`, `chaos` and `bench` share.
//!
//! Invariants: what starts something also stops it, even if it fails, unless it was asked to leave it running. Only
//! processes that these commands started are signalled.
//!
//! Deliberately absent: database and broker clients. This must build on a machine that has only Git, a C compiler and Rust,
//! because it installs the rest.

pub mod backing;
pub mod baseline;
pub mod cleanup;
pub mod client;
pub mod duration;
pub mod environment;
pub mod http;
pub mod instance;
pub mod interrupt;
pub mod launch;
pub mod output;
pub mod own_system;
pub mod paint;
pub mod plan;
pub mod processes;
pub mod programs;
pub mod secrets;
pub mod stack_file;
pub mod stream;
pub mod transcript;
pub mod workspace;
