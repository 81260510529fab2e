//! Logs, trace context and metrics of every process.
//!
//! - [`init`] turns on logging: JSON lines, or coloured text for people.
//! - [`RequestContext`] is the identity of one request. It travels in the headers `X-Request-Id` and
//!   `traceparent`, in queue messages and in the rows that workers act on, so that one search finds
//!   everything that a request caused. Code that runs for a request finds it by
//!   [`RequestContext::current`].
//! - [`metrics_recorder`] collects what the `metrics` macros count.
//!
//! No e-mail address, password, token, code or secret goes into a log, span or metric.

mod context;
mod logging;

pub use context::{RequestContext, TraceContext};
pub use logging::{Error, LogFormat, LogSettings, init, metrics_recorder};
