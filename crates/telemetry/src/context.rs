use std::future::Future;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use rand::distr::{Alphanumeric, SampleString as _};
use tracing::field::display;
use tracing::{Instrument as _, Span};
use values::Names as _;

use crate::traces;

/// The name of the span that has the identifier of a request.
pub(crate) const WORK: &str = "work";

const MAX_REQUEST_ID_LENGTH: usize = 128;

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// The identity of one request, from the caller through services, queue and workers to receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// The caller's `X-Request-Id`, or a generated one.
    pub request_id: String,
    /// The position in the caller's trace, or in a new trace. While traces are exported and this code runs in
    /// [`RequestContext::scope`], it is the span of this process; otherwise the position that the caller sent is passed on.
    pub trace: TraceContext,
    /// Whether `trace` is the position of a span, and not the beginning of a new trace.
    has_span: bool,
}

values::names! {
    /// What a span stands for (OpenTelemetry, "SpanKind").
    pub enum SpanKind {
        /// The handling of a request.
        Server = "server",
        /// A request to another system.
        Client = "client",
        /// The publishing of a message.
        Producer = "producer",
        /// The handling of a message.
        Consumer = "consumer",
    }
}

impl RequestContext {
    /// The context that the caller sent. Values that are missing or malformed are generated.
    pub fn continued(request_id: Option<&str>, traceparent: Option<&str>) -> Self {
        let trace = traceparent.and_then(TraceContext::parse);
        let has_span = trace.is_some();
        Self {
            request_id: request_id
                .filter(|id| is_request_id(id))
                .map_or_else(new_request_id, str::to_owned),
            trace: trace.unwrap_or_else(TraceContext::root),
            has_span,
        }
    }

    /// A new context, for work that no request caused, such as a sweep.
    pub fn fresh() -> Self {
        Self::continued(None, None)
    }

    /// The context that this code runs in, if any.
    pub fn current() -> Option<Self> {
        let context = CURRENT.try_with(Clone::clone).ok()?;
        Some(context.at_current_span())
    }

    /// The context that this code runs in, or a new one, which continues the trace of the current span.
    pub fn current_or_fresh() -> Self {
        Self::current().unwrap_or_else(|| Self::fresh().at_current_span())
    }

    /// Runs a future in this context and in a span that carries it.
    pub async fn scope<F: Future>(
        self,
        kind: SpanKind,
        name: &'static str,
        future: F,
    ) -> F::Output {
        let (context, span) = self.start(kind, name);
        CURRENT.scope(context, future.instrument(span)).await
    }

    /// Runs a function in this context and in a span that carries it.
    pub fn run<T>(self, kind: SpanKind, name: &'static str, work: impl FnOnce() -> T) -> T {
        let (context, span) = self.start(kind, name);
        CURRENT.sync_scope(context, || span.in_scope(work))
    }

    /// The context of a message that is published now, which becomes a span of its own.
    #[must_use]
    pub fn published(self, queue: &'static str) -> Self {
        if traces::is_exporting() {
            self.start(SpanKind::Producer, queue).0
        } else {
            self
        }
    }

    fn start(self, kind: SpanKind, name: &'static str) -> (Self, Span) {
        let is_exporting = traces::is_exporting();
        // Lines of any level have its fields, whatever `LOG` says.
        let span = tracing::error_span!(
            WORK,
            otel.name = name,
            otel.kind = is_exporting.then(|| kind.name()),
            request_id = %self.request_id,
            trace_id = (!is_exporting).then(|| display(self.trace.0.trace_id())),
        );
        if !is_exporting {
            return (self, span);
        }
        let parent = self.has_span.then(|| self.trace.0.clone());
        traces::set_parent(&span, parent);
        let context = self.at(&span);
        span.record("trace_id", display(context.trace.0.trace_id()));
        (context, span)
    }

    fn at_current_span(self) -> Self {
        if traces::is_exporting() {
            self.at(&Span::current())
        } else {
            self
        }
    }

    /// This context at the position of a span, if that is exported.
    fn at(mut self, span: &Span) -> Self {
        if let Some(position) = traces::position(span) {
            self.trace = TraceContext(position);
            self.has_span = true;
        }
        self
    }
}

/// 95 random bits in few characters: each decision stores the identifier three times.
fn new_request_id() -> String {
    Alphanumeric.sample_string(&mut rand::rng(), 16)
}

fn is_request_id(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=MAX_REQUEST_ID_LENGTH).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// A position in a distributed trace (W3C Trace Context, level 1). Its text is the value of the `traceparent` header.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("00-{}-{}-{:02x}", _0.trace_id(), _0.span_id(), _0.trace_flags())]
pub struct TraceContext(SpanContext);

impl TraceContext {
    fn root() -> Self {
        let trace = TraceId::from_bytes(rand::random());
        let span = SpanId::from_bytes(rand::random());
        Self::at(trace, span, TraceFlags::SAMPLED)
    }

    /// Parses a `traceparent` header; `None` if it is invalid.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let version = parts.next().filter(|v| v.len() == 2 && *v != "ff")?;
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        if version == "00" && parts.next().is_some() {
            return None;
        }
        let lower_case = !header.bytes().any(|b| b.is_ascii_uppercase());
        let context = Self::at(
            TraceId::from_bytes(decode(trace)?),
            SpanId::from_bytes(decode(span)?),
            TraceFlags::new(decode::<1>(flags)?[0]),
        );
        let valid = lower_case && decode::<1>(version).is_some() && context.0.is_valid();
        valid.then_some(context)
    }

    /// A position in another process.
    fn at(trace: TraceId, span: SpanId, flags: TraceFlags) -> Self {
        Self(SpanContext::new(trace, span, flags, true, TraceState::NONE))
    }

    /// The trace's 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        self.0.trace_id().to_string()
    }
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{RequestContext, SpanKind, TraceContext};

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_traceparent_is_passed_on() {
        let context = RequestContext::continued(Some("req-1.A_b"), Some(PARENT));
        assert_eq!(context.request_id, "req-1.A_b");
        assert_eq!(context.trace.to_string(), PARENT);
    }

    #[test]
    fn malformed_headers_are_replaced_by_generated_values() {
        let long = "x".repeat(129);
        for id in ["", "a b", "a\nb", "ä", long.as_str()] {
            assert_ne!(RequestContext::continued(Some(id), None).request_id, id);
        }
        for header in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert!(TraceContext::parse(header).is_none(), "{header}");
        }
    }

    #[tokio::test]
    async fn code_in_a_scope_finds_its_context() {
        assert!(RequestContext::current().is_none());
        let context = RequestContext::fresh();
        let found = context
            .clone()
            .scope(SpanKind::Server, "test", async {
                RequestContext::current()
            })
            .await;
        assert_eq!(found, Some(context));
    }
}
