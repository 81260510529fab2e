//! Logs, trace context and metrics of every process.
//!
//! Log lines that are not read in time are dropped. An [`Outage`] logs when something begins to fail and when it works again,
//! and not each failure. A [`RequestContext`] travels with what a request causes, so that one search finds all of it.
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
pub use logging::{
    LogFilter, LogFormat, LogSettings, Telemetry, init, metrics_recorder, print, print_error,
};
pub use outage::Outage;
pub use outgoing::{CallOutcome, outgoing};
pub use traces::{
    TraceExport, TraceSampler, TraceSettings, current_span, describe_request, set_attribute,
    set_failed, shared_span, statement_span,
};
