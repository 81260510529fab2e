use std::fmt;
use std::future::Future;

use tracing::{Instrument as _, Span};

const MAX_REQUEST_ID_LENGTH: usize = 128;

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// The identity of one request, from the caller through services, queue and workers to receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// The caller's `X-Request-Id`, or a generated one.
    pub request_id: String,
    /// The span of this process in the caller's trace, or in a new trace.
    pub trace: TraceContext,
}

impl RequestContext {
    /// The context that the caller sent. Values that are missing or malformed are generated.
    #[must_use]
    pub fn continued(request_id: Option<&str>, traceparent: Option<&str>) -> Self {
        Self {
            request_id: request_id.filter(|id| is_request_id(id)).map_or_else(
                || Hex(rand::random::<[u8; 16]>()).to_string(),
                str::to_owned,
            ),
            trace: traceparent
                .and_then(TraceContext::parse)
                .map_or_else(TraceContext::new, |parent| parent.child()),
        }
    }

    /// A new context, for work that no request caused, such as a sweep.
    #[must_use]
    pub fn fresh() -> Self {
        Self::continued(None, None)
    }

    /// The context that this code runs in, if any.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// The context that this code runs in, or a new one.
    #[must_use]
    pub fn current_or_fresh() -> Self {
        Self::current().unwrap_or_else(Self::fresh)
    }

    /// Runs a future in this context and in a span that carries it.
    pub async fn scope<F: Future>(self, name: &'static str, future: F) -> F::Output {
        let span = self.span(name);
        CURRENT.scope(self, future.instrument(span)).await
    }

    /// Runs a function in this context and in a span that carries it.
    pub fn run<T>(self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let span = self.span(name);
        CURRENT.sync_scope(self, || span.in_scope(work))
    }

    fn span(&self, name: &'static str) -> Span {
        tracing::info_span!(
            "work",
            otel.name = name,
            request_id = %self.request_id,
            trace_id = %Hex(self.trace.trace_id),
        )
    }
}

fn is_request_id(text: &str) -> bool {
    (1..=MAX_REQUEST_ID_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// A position in a distributed trace (W3C Trace Context, level 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
}

impl TraceContext {
    /// The root of a new, sampled trace.
    #[must_use]
    pub fn new() -> Self {
        Self {
            trace_id: rand::random(),
            span_id: rand::random(),
            flags: 1,
        }
    }

    /// Parses a `traceparent` header; `None` if it is invalid.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let version = parts.next().filter(|v| v.len() == 2 && *v != "ff")?;
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        if version == "00" && parts.next().is_some() {
            return None;
        }
        let lower_case = !header.bytes().any(|b| b.is_ascii_uppercase());
        let context = Self {
            trace_id: decode(trace)?,
            span_id: decode(span)?,
            flags: decode::<1>(flags)?[0],
        };
        let valid = lower_case
            && decode::<1>(version).is_some()
            && context.trace_id != [0; 16]
            && context.span_id != [0; 8];
        valid.then_some(context)
    }

    /// A new span of the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            span_id: rand::random(),
            ..*self
        }
    }

    /// The trace's 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        Hex(self.trace_id).to_string()
    }
}

impl Default for TraceContext {
    fn default() -> Self {
        Self::new()
    }
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

impl fmt::Display for TraceContext {
    /// The value of the `traceparent` header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (Hex(self.trace_id), Hex(self.span_id));
        write!(f, "00-{trace}-{span}-{:02x}", self.flags)
    }
}

/// Shows at most 16 bytes as hexadecimal digits, without memory of their own: every request has three of these.
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 32];
        let digits = digits.get_mut(..2 * N).ok_or(fmt::Error)?;
        hex::encode_to_slice(self.0, digits).map_err(|_| fmt::Error)?;
        f.write_str(str::from_utf8(digits).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestContext, TraceContext};

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_traceparent_keeps_its_trace_and_gets_a_new_span() {
        let context = RequestContext::continued(Some("req-1.A_b"), Some(PARENT));
        assert_eq!(context.request_id, "req-1.A_b");
        let header = context.trace.to_string();
        assert!(header.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
        assert!(header.ends_with("-01"));
        assert_ne!(header, PARENT);
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
            .scope("test", async { RequestContext::current() })
            .await;
        assert_eq!(found, Some(context));
    }
}
