//! Records the ends of deliveries in batches, beside sending, with their metrics and logs. A URL may contain a receiver's
//! credentials, so logs name the delivery and never the URL.

use std::sync::Arc;
use std::time::Duration;

use database::{Connection, Database, Error};
use tokio::sync::mpsc;
use values::DeliveryId;

use crate::deliveries::worker::attempt::AttemptResult;
use crate::deliveries::worker::periodic_store::create_partitions;
use crate::deliveries::worker::results_store::{self as store, Recorded};
use crate::deliveries::worker::schedule::RetryDecision;

const BATCH: usize = 512;
/// How long a batch is gathered. No caller waits for a result, and what a crash leaves unrecorded is sent again.
const GATHERING: Duration = Duration::from_millis(20);
/// The pause after a failure and before locked rows are tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// The lanes and deliveries whose ends are recorded.
pub(super) type Settled = Vec<(Arc<str>, DeliveryId)>;
type Sender = mpsc::UnboundedSender<Settled>;

/// Records ends until every sender of them is gone and everything is recorded.
pub(super) async fn run(
    database: Database,
    mut ends: mpsc::UnboundedReceiver<AttemptResult>,
    settled: Sender,
) {
    let mut batch = Vec::new();
    loop {
        if batch.is_empty() && ends.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        if batch.len() < BATCH {
            tokio::time::sleep(GATHERING).await;
        }
        while batch.len() < BATCH
            && let Ok(end) = ends.try_recv()
        {
            batch.push(end);
        }
        batch = record(&database, &settled, batch).await;
        if !batch.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Records a batch, and returns what has to be recorded again. If the database refuses a batch, each end is recorded
/// alone, so that one of them does not hold up the others. Partitions are created first: after a jump of the clock there
/// may be none for today.
async fn record(
    database: &Database,
    settled: &Sender,
    batch: Vec<AttemptResult>,
) -> Vec<AttemptResult> {
    let (batch, error) = match record_together(database, settled, batch).await {
        Ok(locked) => return locked,
        Err(failed) => failed,
    };
    error.warn("results could not be recorded; they are recorded later");
    if !matches!(error, Error::Statement(_)) {
        return batch;
    }
    if let Err(error) = database.run(create_partitions).await {
        error.warn("the partitions of deliveries could not be created");
    }
    let (number, mut left) = (batch.len(), Vec::new());
    for end in batch {
        let alone = record_together(database, settled, vec![end]).await;
        left.extend(alone.unwrap_or_else(|(refused, _)| refused));
    }
    if left.len() < number {
        // Others were accepted, so the reason may be in the end itself.
        for end in &left {
            let delivery = &end.lease.delivery;
            tracing::warn!(delivery.id = %delivery, "a result could not be recorded; it is recorded again");
        }
    }
    left
}

/// Reports what was recorded or lost, and returns what met a locked row.
fn settle(settled: &Sender, batch: Vec<AttemptResult>, found: &Recorded) -> Vec<AttemptResult> {
    let (mut locked, mut ended) = (Vec::new(), Vec::new());
    for end in batch {
        let (delivery, lane) = (end.lease.delivery, Arc::clone(&end.lease.lane));
        match (found.get(&delivery), end.decision) {
            (Some(Some(false)), _) => {
                locked.push(end);
                continue;
            }
            (Some(Some(true)), _) => report_recorded(&end),
            (Some(None), _) | (None, RetryDecision::NotSent) => {}
            (None, _) => report_lost(&end),
        }
        ended.push((lane, delivery));
    }
    // The dispatcher may have stopped.
    let _ = settled.send(ended);
    locked
}

/// Records a batch, and returns the ends whose rows were locked, or the whole batch.
async fn record_together(
    database: &Database,
    settled: &Sender,
    batch: Vec<AttemptResult>,
) -> Result<Vec<AttemptResult>, (Vec<AttemptResult>, Error)> {
    let shared = Arc::new(batch);
    let ends = Arc::clone(&shared);
    let record = move |connection: &mut Connection| store::record_ends(connection, &ends);
    let found = database.run(record).await;
    let batch = Arc::into_inner(shared).unwrap_or_default();
    match found {
        Ok(found) => Ok(settle(settled, batch, &found)),
        Err(error) => Err((batch, error)),
    }
}

fn report_recorded(result: &AttemptResult) {
    let outcome = match result.decision {
        RetryDecision::Sent => "sent",
        RetryDecision::Retry(_) => "retry",
        RetryDecision::Fail => "fail",
        RetryDecision::Postpone(pause) => return report_not_called(result, "postponed", pause),
        RetryDecision::Suspend(pause) => return report_not_called(result, "suspended", pause),
        RetryDecision::NotSent => return,
    };
    metrics::counter!("webhook_attempts_total", "outcome" => outcome).increment(1);
    metrics::histogram!("webhook_attempt_duration_seconds").record(result.duration.as_secs_f64());
    if let RetryDecision::Sent | RetryDecision::Fail = result.decision {
        metrics::counter!("webhook_deliveries_total", "outcome" => outcome).increment(1);
    }
    // One that was started again by hand says nothing about how fast decisions arrive.
    if result.decision == RetryDecision::Sent && !result.lease.is_restarted {
        metrics::histogram!("webhook_decision_to_delivery_seconds")
            .record(result.age_at_response().as_secs_f64());
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

fn report_not_called(result: &AttemptResult, outcome: &'static str, pause: Duration) {
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

fn report_lost(result: &AttemptResult) {
    metrics::counter!("webhook_attempts_total", "outcome" => "lost").increment(1);
    tracing::info!(
        request_id = %result.lease.context.request_id,
        delivery.id = %result.lease.delivery,
        "a webhook was called, but its delivery was deleted or taken over meanwhile"
    );
}
