//! The only public port: routing, token check, limits, proxying, documentation and pages.
//!
//! - `table` is the one list of what exists: method, path, service and access of every route.
//! - `forward` takes a request through its checks (rate, token, size) to its service and streams the
//!   answer back.
//! - `circuit` leaves a service alone that does not answer, `rate_limit` counts by client address.
//! - `cors`, `tls` and `transport_security` are what browsers and the transport need.
//! - `documents` merges the services' OpenAPI documents into the one that callers read.
//! - `pages` are the few pages for people: documentation, a new password, a decision.
//!
//! Invariants: what is not in the table does not exist. Only headers of an allow-list reach a service,
//! so none that a service trusts can come from outside. The path that is sent to a service is made from
//! the route's template and checked values, so it is the path whose access was checked. A body that
//! breaks off never looks complete to a service.
//!
//! Deliberately absent: the database, the queue, sessions, and any rule about users or tasks. The services
//! check tokens again themselves.

mod app;
mod circuit;
mod cors;
mod departures;
mod documents;
mod forward;
mod gateway;
mod head_requests;
mod origin;
mod pages;
mod rate_limit;
mod settings;
mod table;
mod tls;
mod transport_security;
mod upstream;

pub use crate::circuit::CircuitSettings;
pub use crate::cors::Origins;
pub use crate::rate_limit::RateLimit;
pub use crate::settings::{GatewaySettings, RateLimitSettings};
pub use crate::table::routes;
pub use crate::tls::TlsSettings;
pub use app::run;
