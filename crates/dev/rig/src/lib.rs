//! Starts, drives and breaks systems: what the commands in `devtools`, `drills`, `chaos` and `bench` share.
//!
//! Invariants: what starts something also stops it, even if it fails, unless it was asked to leave it running. Only
//! processes that these commands started are signalled.
//!
//! Deliberately absent: database and broker clients. This must build on a machine that has only Git, a C compiler and Rust,
//! because it installs the rest.

#![expect(missing_docs, reason = "names and signatures of many items say it all")]

mod backing;
mod client;
mod duration;
mod held_lock;
pub mod instance;
pub mod interrupt;
mod mail_server;
mod output;
mod own;
pub mod paint;
mod plan;
mod process;
pub mod programs;
mod receiver;
mod secrets;
mod stack_file;
mod stream;
mod sync;
mod system;
mod tcp_proxy;
pub mod transcript;
mod workspace;

pub use anstream::stdout;
pub use backing::Backing;
pub use client::{Call, Client, Person, Response};
pub use duration::parse_duration;
pub use held_lock::HeldLock;
pub use mail_server::{Mail, MailServer};
pub use output::{announce_seed, complain, exit_code, say, verdict};
pub use own::{run, with_own_system};
pub use plan::{Replicas, parse_replicas};
pub use process::{Process, stop_system};
pub use programs::Source;
pub use receiver::{Receiver, Reply, Request, key_of};
pub use secrets::ed25519_pem;
pub use stack_file::{Admin, Entry, Stack};
pub use stream::Stream;
pub use sync::{ToggleListener, Watch, join, lock, spawn};
pub use system::{Options, System};
pub use tcp_proxy::{TcpProxy, connect_to};
pub use workspace::{Profile, Programs, Workspace};
