//! Metrics and logs of the worker.
//!
//! A URL may contain a receiver's credentials, so logs name the delivery and never the URL.

use chrono::Utc;
use database::Database;
use std::time::Duration;
use telemetry::RequestContext;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use crate::deliveries::TestResult;
use crate::deliveries::backlog_store::{Backlog, load_backlog};
use crate::deliveries::worker::attempt::AttemptResult;
use crate::deliveries::worker::ownership_store::Taken;
use crate::deliveries::worker::results_store::End;
use crate::deliveries::worker::schedule::RetryDecision;
use crate::deliveries::worker::suspects_store::Trial;

/// How often the backlog is read.
const INTERVAL: Duration = Duration::from_secs(5);

pub(super) fn attempt_recorded(result: &AttemptResult) {
    let outcome = match result.decision {
        RetryDecision::Sent => "sent",
        RetryDecision::Retry(_) => "retry",
        RetryDecision::Fail => "fail",
        RetryDecision::Postpone(pause) => return not_called(result, "postponed", pause),
        RetryDecision::Suspend(pause) => return not_called(result, "suspended", pause),
    };
    metrics::counter!("webhook_attempts_total", "outcome" => outcome).increment(1);
    metrics::histogram!("webhook_attempt_duration_seconds").record(result.duration.as_secs_f64());
    if let RetryDecision::Sent | RetryDecision::Fail = result.decision {
        metrics::counter!("webhook_deliveries_total", "outcome" => outcome).increment(1);
    }
    if result.decision == RetryDecision::Sent {
        let since = (Utc::now() - result.lease.created).to_std();
        metrics::histogram!("webhook_decision_to_delivery_seconds")
            .record(since.unwrap_or_default().as_secs_f64());
    }
    tracing::info!(
        request_id = %result.lease.context.request_id,
        trace_id = %result.lease.context.trace.trace_id(),
        delivery.id = %result.lease.delivery,
        outcome,
        status_code = result.attempt.status_code,
        error = result.attempt.error,
        duration_ms = result.attempt.duration_ms,
        "a webhook was called"
    );
}

fn not_called(result: &AttemptResult, outcome: &'static str, pause: Duration) {
    metrics::counter!("webhook_attempts_total", "outcome" => outcome).increment(1);
    tracing::debug!(
        request_id = %result.lease.context.request_id,
        delivery.id = %result.lease.delivery,
        outcome,
        error = result.attempt.error,
        pause_ms = pause.as_millis(),
        "a webhook was not called"
    );
}

pub(super) fn webhook_tested(id: DeliveryId, context: &RequestContext, result: &TestResult) {
    let outcome = if result.success { "success" } else { "failure" };
    metrics::counter!("webhook_tests_total", "outcome" => outcome).increment(1);
    tracing::info!(
        request_id = %context.request_id,
        delivery.id = %id,
        outcome,
        status_code = result.status_code,
        error = result.error,
        duration_ms = result.duration_ms,
        "a webhook was tried"
    );
}

/// How many webhooks have headers that another key than the first one sealed.
pub(super) fn headers_of_earlier_keys(webhooks: i64) {
    let webhooks = u32::try_from(webhooks).unwrap_or(u32::MAX);
    metrics::gauge!("webhook_headers_of_earlier_keys").set(webhooks);
}

/// Deliveries of due dates that have passed were added.
pub(super) fn due_dates_passed(deliveries: usize) {
    tracing::info!(deliveries, "due dates have passed");
    metrics::counter!("webhook_due_dates_total").increment(deliveries as u64);
}

/// The result of an attempt was dropped, because its row changed or no longer exists.
pub(super) fn attempt_lost(result: &AttemptResult) {
    metrics::counter!("webhook_attempts_total", "outcome" => "lost").increment(1);
    tracing::info!(
        request_id = %result.lease.context.request_id,
        delivery.id = %result.lease.delivery,
        "a webhook was called, but its delivery was deleted or taken over meanwhile"
    );
}

/// The database refused the end of a delivery, which is recorded again without its texts.
pub(super) fn refused(end: &End, error: &database::Error) {
    let lease = end.lease();
    tracing::error!(
        request_id = %lease.context.request_id,
        delivery.id = %lease.delivery,
        error = ?error,
        "the database refused a result; it is recorded again without its texts"
    );
}

/// Workers that were silent for too long were deleted.
pub(super) fn workers_died(workers: usize) {
    if workers > 0 {
        tracing::warn!(workers, "took silent workers for dead");
    }
}

pub(super) fn shards_taken(taken: &[Taken]) {
    let orphaned = taken.iter().filter(|shard| shard.orphaned).count();
    if !taken.is_empty() {
        tracing::info!(shards = taken.len(), orphaned, "took shards of hosts");
    }
    metrics::counter!("webhook_shards_orphaned_total").increment(orphaned as u64);
}

/// Trials were looked at whose worker ended.
pub(super) fn lost_trials(trial: &Trial) {
    if trial.lost > 0 {
        tracing::warn!(
            deliveries = trial.lost,
            "workers ended while they tried deliveries"
        );
    }
    if trial.parked > 0 {
        tracing::error!(
            deliveries = trial.parked,
            "parked deliveries that end workers; they are pending until they are redelivered"
        );
    }
}

/// The number of attempts in flight, and of lanes whose circuit is open.
pub(super) fn under_way(attempts: usize, open_circuits: usize) {
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
    metrics::gauge!("webhook_attempts_in_flight").set(number(attempts));
    metrics::gauge!("webhook_circuits_open").set(number(open_circuits));
}

/// Keeps the gauges of the backlog up to date until it is cancelled.
pub(super) async fn watch_backlog(database: Database, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        match database.run(load_backlog).await {
            Ok(backlog) => set_gauges(&backlog),
            Err(error) => tracing::debug!(error = ?error, "the backlog could not be read"),
        }
        shutdown.run_until_cancelled(sleep(INTERVAL)).await;
    }
}

/// Gauges are floating-point numbers, and these stay far below 2^52.
fn set_gauges(backlog: &Backlog) {
    metrics::gauge!("webhook_deliveries_pending").set(backlog.pending as f64);
    metrics::gauge!("webhook_deliveries_due").set(backlog.due as f64);
    metrics::gauge!("webhook_deliveries_parked").set(backlog.parked as f64);
    metrics::gauge!("webhook_deliveries_paused").set(backlog.paused as f64);
    metrics::gauge!("webhook_hosts_paused").set(backlog.paused_hosts as f64);
    metrics::gauge!("webhook_deliveries_oldest_due_seconds").set(backlog.oldest_due_seconds);
}
