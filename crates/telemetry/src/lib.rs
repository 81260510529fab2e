//! Logs, trace context and metrics of every process.
//!
//! - [`init`] turns on logging: JSON lines, or coloured text for people. A [`LogWriter`] writes them, and drops
//!   what its reader does not read in time.
//! - [`RequestContext`] is the identity of one request. It travels in the headers `X-Request-Id` and
//!   `traceparent`, in queue messages and in the rows that workers process, so that one search finds
//!   everything that a request caused. [`RequestContext::current`] returns it.
//! - [`metrics_recorder`] collects what the `metrics` macros record. [`METRICS`] lists all of it.
//!
//! No e-mail address, password, token, code or secret goes into a log, span or metric.

mod catalog;
mod context;
mod json_lines;
mod log_writer;
mod logging;

pub use catalog::{METRICS, Metric, MetricKind, describe_metrics};
pub use context::{RequestContext, TraceContext};
pub use json_lines::JsonLines;
pub use log_writer::{DroppedLines, LogWriter, print_error};
pub use logging::{Error, LogFormat, LogSettings, init, metrics_recorder};
