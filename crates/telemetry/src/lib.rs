//! Logs, trace context and metrics of every process.
//!
//! - [`init`] turns on logging: JSON lines, or coloured text for people. Lines that are not read
//!   in time are dropped. It also starts the export of traces.
//! - [`RequestContext`] is the identity of one request. It travels in the headers `X-Request-Id` and
//!   `traceparent`, in queue messages and in the rows that workers process, so that one search finds
//!   everything that a request caused. [`RequestContext::current`] returns it.
//! - [`TraceSettings`] says where spans are exported to. Without an endpoint there is no export, and the functions that make
//!   spans for it alone, such as [`statement_span`], do nothing.
//! - [`Outage`] logs when something begins to fail and when it works again, and not each failure.
//! - [`CertificateFault`] names what is wrong with the certificate of a server that was called.
//! - [`metrics_recorder`] collects what the `metrics` macros record. [`METRICS`] lists all of it.
//!
//! No e-mail address, password, token, code or secret goes into a log, span or metric.

mod catalog;
mod certificate_fault;
mod context;
mod json_lines;
mod logging;
mod outage;
mod outgoing;
mod traces;

pub use catalog::{Label, METRICS, Metric, MetricKind, describe_metrics};
pub use certificate_fault::{CertificateFault, tls_error};
pub use context::{RequestContext, SpanKind, TraceContext};
pub use json_lines::JsonLines;
pub use logging::{LogFormat, LogSettings, Telemetry, init, metrics_recorder, print_error};
pub use outage::Outage;
pub use outgoing::{CallOutcome, outgoing};
pub use traces::{
    TraceExport, TraceSampler, TraceSettings, current_span, describe_request, set_attribute,
    set_failed, shared_span, statement_span,
};
