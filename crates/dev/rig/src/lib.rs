//! Starts, drives and breaks systems: what the commands in `devtools`, `drills`, `chaos` and `bench` share.
//!
//! - [`system::System`]: servers and processes, which can be replaced, frozen and killed. [`own::with_own_system`] runs a
//!   test on one of its own, and removes it.
//! - [`client::Client`]: calls a process or the gateway.
//! - [`receiver::Receiver`] and [`mail_server::MailServer`]: get what the system sends.
//! - [`process::Process`], [`tcp_proxy::TcpProxy`] and [`held_lock::HeldLock`]: what faults are made of.
//!
//! Invariants: what starts something also stops it, even if it fails, unless it was asked to leave it running. Only
//! processes that these commands started are signalled.
//!
//! Deliberately absent: database and broker clients. This must build on a machine that has only Git, a C compiler and Rust,
//! because it installs the rest.

pub mod backing;
pub mod client;
pub mod duration;
pub mod held_lock;
pub mod instance;
pub mod interrupt;
pub mod mail_server;
pub mod output;
pub mod own;
pub mod paint;
pub mod plan;
pub mod process;
pub mod programs;
pub mod receiver;
mod secrets;
pub mod stack_file;
pub mod stream;
pub mod sync;
pub mod system;
pub mod tcp_proxy;
pub mod transcript;
pub mod workspace;
