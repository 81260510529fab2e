//! Calls of other systems, measured and traced alike.

use std::future::Future;
use std::time::Instant;

use tracing::Instrument as _;

use crate::traces::{call_span, set_attribute, set_failed};

/// How a call of another system ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// It responded with this status.
    Status(u16),
    /// It did what it was asked, by a protocol without HTTP statuses.
    Success,
    /// It did not respond, or not with what it should.
    Failure,
}

impl CallOutcome {
    /// The outcome of a call whose response is a status.
    pub fn of<T, E>(result: &Result<T, E>, status: impl FnOnce(&T) -> u16) -> Self {
        let status = result.as_ref().map(status);
        status.map_or(Self::Failure, Self::Status)
    }

    fn label(self) -> &'static str {
        match self {
            Self::Status(400..500) => "client-error",
            Self::Status(500..) => "server-error",
            Self::Status(_) | Self::Success => "success",
            Self::Failure => "no-response",
        }
    }
}

/// Waits for a call of another system, records it in `outbound_request_duration_seconds`, and makes it a span of the current
/// trace. The call must take its trace context when it is polled, so that the other system continues this span.
pub async fn outgoing<T>(
    destination: &'static str,
    call: impl Future<Output = T>,
    outcome: impl FnOnce(&T) -> CallOutcome,
) -> T {
    let started = Instant::now();
    let span = call_span(destination);
    let result = call.instrument(span.clone()).await;
    let outcome = outcome(&result);
    metrics::histogram!(
        "outbound_request_duration_seconds",
        "destination" => destination,
        "outcome" => outcome.label(),
    )
    .record(started.elapsed().as_secs_f64());
    match outcome {
        CallOutcome::Status(status) => {
            set_attribute(&span, "http.response.status_code", i64::from(status));
        }
        CallOutcome::Success => {}
        CallOutcome::Failure => set_failed(&span, "no response"),
    }
    result
}

#[cfg(test)]
mod tests {
    use super::CallOutcome;

    #[test]
    fn statuses_are_labelled_by_their_class() {
        for (status, label) in [
            (200, "success"),
            (302, "success"),
            (404, "client-error"),
            (499, "client-error"),
            (500, "server-error"),
            (999, "server-error"),
        ] {
            assert_eq!(CallOutcome::Status(status).label(), label, "{status}");
        }
        assert_eq!(CallOutcome::Success.label(), "success");
        assert_eq!(CallOutcome::Failure.label(), "no-response");
    }
}
