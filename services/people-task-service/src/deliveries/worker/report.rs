//! What the worker counts and logs.
//!
//! A url may carry a receiver's credentials, so logs name the delivery and never the url.

use chrono::Utc;
use database::Database;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::attempt::Finished;
use crate::deliveries::worker::backlog;
use crate::deliveries::worker::schedule::Verdict;

/// How often the backlog is looked at.
const PAUSE: Duration = Duration::from_secs(5);
/// A backlog is counted up to here; beyond it, its size makes no difference to anybody's alarm.
const COUNTED: i64 = 100_000;

/// An attempt's result was written.
pub(super) fn written(result: &Finished) {
    let outcome = match result.verdict {
        Verdict::Sent => "sent",
        Verdict::Retry(_) => "retry",
        Verdict::Fail => "fail",
    };
    metrics::counter!("webhook_attempts_total", "outcome" => outcome).increment(1);
    metrics::histogram!("webhook_attempt_duration_seconds").record(result.duration.as_secs_f64());
    if let Verdict::Sent | Verdict::Fail = result.verdict {
        metrics::counter!("webhook_deliveries_total", "outcome" => outcome).increment(1);
    }
    if result.verdict == Verdict::Sent {
        let since = (Utc::now() - result.held.decided).to_std();
        metrics::histogram!("webhook_decision_to_delivery_seconds")
            .record(since.unwrap_or_default().as_secs_f64());
    }
    log(result, outcome);
}

fn log(result: &Finished, outcome: &'static str) {
    tracing::info!(
        request_id = %result.held.context.request_id,
        trace_id = %result.held.context.trace.trace_id(),
        delivery.id = %result.held.delivery,
        outcome,
        status_code = result.status_code,
        error = result.error,
        duration_ms = result.duration.as_millis(),
        "a webhook was called"
    );
}

/// An attempt's result has no row to go to.
pub(super) fn lost(result: &Finished) {
    metrics::counter!("webhook_attempts_total", "outcome" => "lost").increment(1);
    tracing::info!(
        request_id = %result.held.context.request_id,
        delivery.id = %result.held.delivery,
        "a webhook was called, but its delivery was deleted or taken over meanwhile"
    );
}

/// Deliveries were given up because their attempts never end.
pub(super) fn given_up(deliveries: usize) {
    if deliveries > 0 {
        let count = u64::try_from(deliveries).unwrap_or(u64::MAX);
        metrics::counter!("webhook_deliveries_total", "outcome" => "fail").increment(count);
        tracing::error!(
            deliveries,
            "deliveries were given up: no attempt of theirs ever ended"
        );
    }
}

/// How many attempts are under way.
pub(super) fn in_flight(attempts: usize) {
    metrics::gauge!("webhook_attempts_in_flight").set(u32::try_from(attempts).unwrap_or(u32::MAX));
}

/// Keeps the gauges of the backlog up to date until it is cancelled.
pub(super) async fn watch_backlog(database: Database, shutdown: CancellationToken) {
    loop {
        let look = |connection: &mut _| -> Result<_, database::Error> {
            Ok(backlog::backlog(connection, COUNTED)?)
        };
        match database.run(look).await {
            Ok(backlog) => show(&backlog),
            Err(error) => tracing::debug!(error = ?error, "the backlog cannot be read"),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "gauges are floating-point numbers, and these stay far below 2^52"
)]
fn show(backlog: &backlog::Backlog) {
    metrics::gauge!("webhook_deliveries_pending").set(backlog.pending as f64);
    metrics::gauge!("webhook_deliveries_due").set(backlog.due as f64);
    metrics::gauge!("webhook_deliveries_oldest_due_seconds").set(backlog.oldest as f64 / 1000.0);
}
