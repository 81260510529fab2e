//! The only public port: routing, token check, limits, proxying, documentation and pages.
//!
//! - [`routes`] is the one list of routes: method, path, service and access of each.
//! - `forward` checks a request (rate, token, size), collects its body, sends it to its service and streams the
//!   response back.
//! - `waiting` lets callers wait for the end of a task, and hears of it from the people-task service.
//! - `keys` exchanges API keys for tokens, which services see in their place.
//! - `limits` holds the rate limits, the circuit breakers and what client networks share.
//! - `middleware` holds CORS and HSTS; `tls` the certificates.
//! - `pages` are the web pages, rendered at the start from templates and what the settings say about them.
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
