//! What a worker does from time to time, beside the dispatcher.

use std::sync::Arc;
use std::time::Duration;

use database::{Connection, Database, Error};
use telemetry::RequestContext;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::deliveries::backlog_store::load_backlog;
use crate::deliveries::test_store;
use crate::deliveries::worker::call::Sender;
use crate::deliveries::worker::due_store::{self, DueRow};
use crate::deliveries::worker::periodic_store::{self as store, SealedRow};
use crate::deliveries::worker::schedule::RetryDecision;
use crate::deliveries::{DueDelivery, TestResult};
use crate::header_keys::HeaderKeys;
use crate::tasks::Occasion;
use crate::turns::Turns;
use crate::webhook_options::WebhookOptions;

const BACKLOG_PAUSE: Duration = Duration::from_secs(5);
/// How often partitions are created and dropped, and how soon after a failure.
const PARTITIONS_PAUSE: Duration = Duration::from_secs(3_600);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How often due dates are looked at. Looking at none takes one step in an index.
const DUE_DATES_PAUSE: Duration = Duration::from_secs(1);
/// How many webhooks whose due date has passed one transaction handles at most.
const DUE_DATES: usize = 200;
/// How often webhooks are looked for whose headers an earlier key sealed, and how many one round handles, each in a
/// transaction of its own. There is a pause also after a round that sealed some: two workers with the same keys in
/// different orders undo each other's work.
const SEALED_PAUSE: Duration = Duration::from_secs(30);
const PAUSE_BETWEEN_ROUNDS: Duration = Duration::from_millis(100);
const SEALED: i64 = 200;
/// How often calls that try webhooks are looked for, and how many a worker takes at a time. Looking at none takes one step
/// in an index.
const TESTS_PAUSE: Duration = Duration::from_millis(300);
const TESTS: i64 = 16;

/// Keeps the gauges of the backlog up to date until it is cancelled.
pub(super) async fn watch_backlog(database: Database, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        match database.run(load_backlog).await {
            // Gauges are floating-point numbers, and these stay far below 2^52.
            Ok(backlog) => {
                metrics::gauge!("webhook_deliveries_pending").set(backlog.pending as f64);
                metrics::gauge!("webhook_deliveries_due").set(backlog.due as f64);
                metrics::gauge!("webhook_deliveries_parked").set(backlog.parked as f64);
                metrics::gauge!("webhook_deliveries_paused").set(backlog.paused as f64);
                metrics::gauge!("webhook_hosts_paused").set(backlog.paused_hosts as f64);
                metrics::gauge!("webhook_deliveries_oldest_due_seconds")
                    .set(backlog.oldest_due_seconds);
            }
            Err(error) => error.warn("the backlog could not be read"),
        }
        shutdown.run_until_cancelled(sleep(BACKLOG_PAUSE)).await;
    }
}

/// Keeps the partitions of `finished_deliveries` until it is cancelled: those of the next two weeks exist, and those
/// whose deliveries have all been finished for longer than `keep` are dropped.
pub(super) async fn maintain_partitions(
    database: Database,
    keep: Duration,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        let mut pause = PARTITIONS_PAUSE;
        if let Err(error) = maintain_once(&database, keep).await {
            error.warn("the partitions of deliveries could not be maintained");
            pause = PAUSE_AFTER_FAILURE;
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}

/// Each partition is dropped in a transaction of its own, which holds its locks for a moment only.
async fn maintain_once(database: &Database, keep: Duration) -> Result<(), Error> {
    database.run(store::create_partitions).await?;
    let drop_partition = move |connection: &mut Connection| store::drop_partition(connection, keep);
    let dropped = metrics::counter!("retention_deleted_total", "table" => "finished_deliveries");
    while database.run(drop_partition).await? {
        dropped.increment(1);
        tracing::info!("dropped a partition of old deliveries");
    }
    Ok(())
}

/// Adds deliveries of the event `due` for dates that passed while their task is pending, and tells the dispatcher about them,
/// until it is cancelled. Those who registered the webhooks take turns.
///
/// `due_dates` has a row for each webhook that waits for such a date, so webhooks and tasks that wait for none cost
/// nothing. The row is deleted by the transaction that inserts the delivery, and that is the only one that may.
pub(super) async fn watch_due_dates(
    database: Database,
    due: mpsc::Sender<Vec<DueDelivery>>,
    shutdown: CancellationToken,
) {
    let turns = Turns::new(store::TURNS);
    let mut apart = 0;
    while !shutdown.is_cancelled() {
        let creators = if apart > 0 { 1 } else { DUE_DATES };
        let more = handle_due_dates(&database, &turns, creators, &due).await;
        let more = more.inspect_err(|error| error.warn("due dates could not be looked at"));
        // If one creator's rows made it fail, those of the others are handled apart from them.
        let has_failed = more.is_err() && creators > 1;
        apart = if has_failed {
            DUE_DATES
        } else {
            apart.saturating_sub(1)
        };
        if !more.unwrap_or_default() {
            shutdown.run_until_cancelled(sleep(DUE_DATES_PAUSE)).await;
        }
    }
}

/// Handles a batch of webhooks of at most that many creators whose due date has passed, and returns whether there may be more.
async fn handle_due_dates(
    database: &Database,
    turns: &Turns,
    creators: usize,
    due: &mpsc::Sender<Vec<DueDelivery>>,
) -> Result<bool, Error> {
    if !database.run(store::has_passed).await? {
        return Ok(false);
    }
    let contexts: Vec<_> = (0..DUE_DATES).map(|_| RequestContext::fresh()).collect();
    let turns = turns.clone();
    let handle = move |connection: &mut Connection| {
        let turn = turns.begin(connection, creators)?;
        // It may have passed over many creators whose due dates are still to come.
        let searches_on = turn.others && turn.creators.is_empty();
        let handled = store::handle_passed(connection, &turn.creators, &contexts)?;
        Ok::<_, Error>((searches_on || !handled.is_empty(), handled))
    };
    let (more, handled) = database.transaction(handle).await?;
    let deliveries: Vec<_> = handled.into_iter().flatten().collect();
    if !deliveries.is_empty() {
        tracing::info!(deliveries = deliveries.len(), "due dates have passed");
        metrics::counter!("webhook_due_dates_total").increment(deliveries.len() as u64);
        // If the dispatcher has ended, another worker finds them.
        let _ = due.send(deliveries).await;
    }
    Ok(more)
}

/// Seals headers of webhooks again that an earlier key sealed, so that operators can remove that key, until it is cancelled.
pub(super) async fn reseal_headers(
    database: Database,
    keys: HeaderKeys,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        let resealed = reseal_round(&database, &keys)
            .await
            .unwrap_or_else(|error| {
                error.warn("headers could not be sealed again");
                0
            });
        let mut pause = SEALED_PAUSE;
        if resealed > 0 {
            tracing::info!(
                webhooks = resealed,
                "sealed headers again with the first key"
            );
            pause = PAUSE_BETWEEN_ROUNDS;
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}

/// Handles a batch, reports how many are left, and returns how many it sealed again.
async fn reseal_round(database: &Database, keys: &HeaderKeys) -> Result<usize, Error> {
    let mut ids = keys.ids().into_iter();
    let Some(current) = ids.next() else {
        return Ok(0);
    };
    let earlier: Vec<_> = ids.collect();
    let mut resealed = 0;
    if !earlier.is_empty() {
        let load =
            move |connection: &mut Connection| store::load_sealed_by(connection, &earlier, SEALED);
        for row in database.run(load).await? {
            let keys = keys.clone();
            let reseal = move |connection: &mut Connection| reseal(connection, &keys, &row);
            resealed += usize::from(database.run(reseal).await?);
        }
    }
    let count = move |connection: &mut Connection| store::count_of_others(connection, &current);
    let others = u32::try_from(database.run(count).await?).unwrap_or(u32::MAX);
    metrics::gauge!("webhook_headers_of_earlier_keys").set(others);
    Ok(resealed)
}

fn reseal(connection: &mut Connection, keys: &HeaderKeys, row: &SealedRow) -> Result<bool, Error> {
    let reseal = || {
        let mut options = WebhookOptions::parse(&row.options)?;
        let opened = keys.open(row.id, options.headers.as_ref()?)?;
        options.headers = Some(keys.seal(row.id, &opened)?);
        Some(options)
    };
    let Some(options) = reseal() else {
        return Ok(false);
    };
    let key = options.header_key().unwrap_or_default();
    store::replace(connection, row, &options.to_text(), key)
}

/// Makes the calls that try webhooks, until it is cancelled, and waits for their ends. The service inserts them and waits
/// for the result. They are few, so they have no part in the scheduling of deliveries, and each is made at most once.
pub(super) async fn make_test_calls(
    database: Database,
    sender: Arc<Sender>,
    shutdown: CancellationToken,
) {
    let calls = TaskTracker::new();
    while !shutdown.is_cancelled() {
        match database.run(take_tests).await {
            Ok(rows) => {
                for row in rows.into_iter().map(Box::new) {
                    calls.spawn(make_test_call(database.clone(), Arc::clone(&sender), row));
                }
            }
            Err(error) => error.warn("calls that try webhooks could not be looked for"),
        }
        shutdown.run_until_cancelled(sleep(TESTS_PAUSE)).await;
    }
    calls.close();
    let _ = timeout(test_store::RESULT_WITHIN, calls.wait()).await;
}

fn take_tests(connection: &mut Connection) -> Result<Vec<DueRow>, Error> {
    let taken = test_store::take(connection, TESTS)?;
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    Ok(due_store::load(connection, due_store::TESTS, &taken)?)
}

async fn make_test_call(database: Database, sender: Arc<Sender>, row: Box<DueRow>) {
    let id = row.delivery_id;
    let result = sender
        .attempt(row, None, Occasion::Test, CancellationToken::new())
        .await;
    let (decision, attempt) = (result.decision, result.attempt);
    let has_no_right = matches!(decision, RetryDecision::Suspend(_));
    let no_right = "the user who registered the webhook has no right to the task now";
    let tested = TestResult {
        success: decision == RetryDecision::Sent,
        at: attempt.at.to_string(),
        duration_ms: attempt.duration_ms,
        status_code: attempt.status_code,
        error: has_no_right.then(|| no_right.to_owned()).or(attempt.error),
    };
    let outcome = if tested.success { "success" } else { "failure" };
    metrics::counter!("webhook_tests_total", "outcome" => outcome).increment(1);
    tracing::info!(
        request_id = %result.lease.context.request_id,
        delivery.id = %id,
        outcome,
        status_code = tested.status_code,
        error = tested.error,
        duration_ms = tested.duration_ms,
        "a webhook was tried"
    );
    let record = move |connection: &mut Connection| test_store::record(connection, id, &tested);
    if let Err(error) = database.run(record).await {
        error.warn("the result of a call that tried a webhook could not be recorded");
    }
}
