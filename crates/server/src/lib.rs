//! The lifecycle of a process: settings, telemetry, startup, signals, graceful shutdown.
//!
//! A binary is one call of [`main`]. It starts a [`Running`]; tests start the same thing inside
//! their own process, on free ports, and stop it in the same way.

mod admission;
mod blank_line;
mod connection;
mod http_server;
mod intake;
mod metrics_server;
mod open_files;
mod paced_stream;
mod process;
mod refusal;
mod running;
mod settings;
mod upgrade_offers;

pub use connection::{is_tls, keep_until_closed, set_aside};
pub use http_server::{Listener, bind, serve};
pub use metrics_server::serve_metrics;
pub use open_files::limit_aside;
pub use process::{Program, command, main};
pub use running::Running;
pub use settings::{HttpServerSettings, ProcessSettings};
