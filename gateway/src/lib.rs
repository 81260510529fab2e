//! The only public port: routing, token check, limits, proxying, documentation and pages.
//!
//! Invariants: a path that is not in the table of routes does not exist. Only allow-listed headers reach a
//! service, so a caller cannot forge one that a service trusts. The path that is sent to a service is built
//! from the route's template and checked values, so it is the path whose access was checked. A service only
//! gets complete request bodies.
//!
//! Deliberately absent: the database, the queue, sessions, and any rule about users or tasks. The services
//! check tokens again themselves.

mod app;
mod client_info;
mod context;
mod forward;
mod keys;
mod limits;
mod middleware;
mod pages;
pub mod routes;
mod settings;
mod tls;
mod upstream;
mod waiting;

pub use app::run;
pub use settings::GatewaySettings;
