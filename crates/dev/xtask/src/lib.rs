//! The project's commands: `cargo xtask up`, `down`, `demo`, `test`, `check` and so on. Each is a file or folder
//! of `commands/`.
//!
//! Invariants: a command that starts something also stops it, even if it fails, unless it was asked to leave it
//! running. Only processes that these commands started are signalled.
//!
//! The library is public for `chaos` and `bench`, which start the same system.
//!
//! Deliberately absent: database and broker clients. This program must build on a machine that has only Git, a C
//! compiler and Rust, because it installs the rest.

mod backing;
pub mod baseline;
pub mod cleanup;
pub mod client;
mod commands;
pub mod duration;
pub mod environment;
pub mod http;
pub mod instance;
pub mod interrupt;
mod launch;
pub mod output;
pub mod own_system;
pub mod paint;
pub mod plan;
pub mod processes;
pub mod programs;
pub mod secrets;
pub mod stack_file;
pub mod stream;
mod transcript;
pub mod workspace;

pub use commands::run;
