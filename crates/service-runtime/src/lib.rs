//! A process from its start to its stop: settings, telemetry, run, signal, graceful end.
//!
//! A binary is one call of [`main`]. What it starts is a [`Running`]: tests start the same thing inside
//! their own process, on free ports, and stop it in the same way.

mod connection;
mod entry;
mod running;
mod server;

pub use entry::{ProcessSettings, main};
pub use running::Running;
pub use server::{HttpServerSettings, Listener, bind, serve};
