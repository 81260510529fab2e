//! The only public port: routing, token check, limits, proxying, documentation and pages.
//!
//! - `table` is the one list of what exists: method, path, service and access of every route.
//! - `forward` takes a request through its checks (rate, token, size) to its service and streams the
//!   answer back.
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
mod documents;
mod forward;
mod gateway;
mod origin;
mod pages;
mod rate_limit;
mod settings;
mod table;
mod upstream;

pub use crate::rate_limit::RateLimit;
pub use crate::settings::{GatewaySettings, RateLimitSettings};
pub use app::run;
