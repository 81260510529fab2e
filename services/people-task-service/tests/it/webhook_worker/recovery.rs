//! Crashes, stops and outages lose no delivery and never send one twice at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Data;
use diesel::connection::SimpleConnection as _;
use outbound::{Resolve, Resolved};
use people_task_service::run_webhook_worker;
use server::Running;
use testkit::eventually;
use tokio::runtime::Runtime;

use crate::webhook_worker::fixture::{CannedResponse, Fixture, Receiver, STOP_TIMEOUT};
use crate::webhook_worker::proxy::Proxy;

/// A worker in its own runtime, which the test can shut down to simulate a crash.
async fn worker_that_can_crash(fixture: &Fixture) -> Runtime {
    let settings = fixture.settings(&[]);
    let start = move || {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(run_webhook_worker(settings)).unwrap();
        runtime
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

async fn is_ready(worker: &Running) -> bool {
    http_kit::readyz(Data::new(worker.health.clone()))
        .await
        .status()
        == 200
}

#[tokio::test]
async fn another_worker_takes_over_after_a_crash() {
    // The first call gets no response.
    let react = |before| match before {
        0 => CannedResponse::after(Duration::from_secs(30)),
        _ => CannedResponse::status(200),
    };
    let (fixture, receiver) = (Fixture::new(), Receiver::start(react));
    let ids = fixture.decide(&[receiver.url("/")]);
    let crashing = worker_that_can_crash(&fixture).await;
    receiver.wait_for_calls(1).await;
    crashing.shutdown_background();
    let crashed = Instant::now();
    let _other = fixture.worker(&[]).await;
    let calls = receiver.wait_for_calls(2).await;
    // Not before the crashed worker has been silent for two seconds: it might still be alive.
    let since = calls[1].at - crashed;
    assert!(since >= Duration::from_millis(1_500), "{since:?}");
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(row.attempts, 1);
}

#[tokio::test]
async fn another_worker_takes_over_although_the_clock_of_the_database_was_set_back() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let crashing = worker_that_can_crash(&fixture).await;
    eventually("the worker to own shards", async || {
        (fixture.count_rows("delivery_shards WHERE worker_id IS NOT NULL") == 64).then_some(())
    })
    .await;
    crashing.shutdown_background();
    fixture.execute("UPDATE delivery_workers SET beat = beat + interval '1 hour'");
    fixture.decide(&[receiver.url("/")]);
    let _other = fixture.worker(&[]).await;
    receiver.wait_for_calls(1).await;
}

#[tokio::test]
async fn what_a_crashed_worker_has_loaded_in_advance_is_sent() {
    let slow = |_| CannedResponse::after(Duration::from_millis(20));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    fixture.decide(&vec![receiver.url("/"); 300]);
    let crashing = worker_that_can_crash(&fixture).await;
    receiver.wait_for_calls(20).await;
    crashing.shutdown_background();
    let _other = fixture.worker(&[]).await;
    fixture.wait_for_count(300, "status = 'sent'").await;
    assert_eq!(fixture.count("attempts = 1"), 300);
    assert_eq!(fixture.workers(), 1);
}

#[tokio::test]
async fn a_stopping_worker_finishes_its_attempts_and_starts_no_others() {
    let slow = |_| CannedResponse::after(Duration::from_millis(700));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    fixture.decide(&vec![receiver.url("/"); 100]);
    let worker = fixture.worker(&[]).await;
    receiver.wait_for_calls(16).await;
    assert!(worker.stop(STOP_TIMEOUT).await);
    let sent = receiver.calls().len();
    assert!(sent < 100);
    assert_eq!(
        fixture.count("status = 'sent'"),
        i64::try_from(sent).unwrap()
    );
    assert_eq!(
        fixture.count_rows("delivery_shards WHERE worker_id IS NOT NULL"),
        0
    );
    let _other = fixture.worker(&[]).await;
    fixture.wait_for_count(100, "status = 'sent'").await;
    assert_eq!(receiver.calls().len(), 100);
}

fn silent(hosts: u8) -> Vec<Receiver> {
    let hang = |_| CannedResponse::after(Duration::from_secs(3_600));
    let receivers = (1..=hosts).map(|host| Receiver::start_at([127, 0, 2, host], hang));
    receivers.collect()
}

fn urls(receivers: &[Receiver]) -> Vec<String> {
    receivers.iter().map(|receiver| receiver.url("/")).collect()
}

#[tokio::test]
async fn another_worker_takes_over_from_a_stopping_one_whatever_hangs() {
    let (fixture, silent) = (Fixture::new(), silent(1));
    let stopping = fixture.worker(&[("WEBHOOK_TIMEOUT", "60s")]).await;
    fixture.decide(&urls(&silent));
    silent[0].wait_for_calls(1).await;
    let _other = fixture.worker(&[]).await;
    let stopping = tokio::spawn(async move { stopping.stop(STOP_TIMEOUT).await });
    // They are of as many shards as possible, so the stopping worker had some of them.
    let others: Vec<_> = (1..=16)
        .map(|host| Receiver::start_at([127, 0, 3, host], |_| CannedResponse::status(200)))
        .collect();
    fixture.decide(&urls(&others));
    fixture.wait_for_count(16, "status = 'sent'").await;
    assert!(stopping.await.unwrap());
    assert_eq!(fixture.count("attempt_log::text LIKE '%ended early%'"), 1);
    silent[0].wait_for_calls(2).await;
}

#[tokio::test]
async fn a_stopping_worker_ends_slow_requests_while_a_load_hangs() {
    let (fixture, silent) = (Fixture::new(), silent(2));
    let worker = fixture.worker(&[("WEBHOOK_TIMEOUT", "60s")]).await;
    fixture.decide(&urls(&silent[..1]));
    silent[0].wait_for_calls(1).await;
    let mut admin = fixture.database.admin();
    admin
        .batch_execute("BEGIN; LOCK TABLE people_task.changed_users")
        .unwrap();
    fixture.decide(&urls(&silent[1..]));
    let hanging = || fixture.waiting_statements("%WITH due AS MATERIALIZED%");
    eventually("a load to hang", async || (hanging() > 0).then_some(())).await;
    let stopping = tokio::spawn(async move { worker.stop(STOP_TIMEOUT).await });
    fixture
        .wait_for_count(1, "attempt_log::text LIKE '%ended early%'")
        .await;
    assert!(hanging() > 0);
    admin.batch_execute("COMMIT").unwrap();
    assert!(stopping.await.unwrap());
}

#[tokio::test]
async fn a_worker_that_joins_gets_its_shards_whatever_hangs() {
    let (fixture, silent) = (Fixture::new(), silent(250));
    let _first = fixture.worker(&[("WEBHOOK_TIMEOUT", "60s")]).await;
    fixture.decide(&urls(&silent));
    eventually("every host to hang", async || {
        let called = silent.iter().filter(|host| !host.calls().is_empty());
        (called.count() == silent.len()).then_some(())
    })
    .await;
    let _second = fixture.worker(&[]).await;
    let of_newest = "delivery_shards WHERE worker_id = (SELECT max(id) FROM delivery_workers)";
    eventually("the second worker to have half of the shards", async || {
        (fixture.count_rows(of_newest) == 32).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_delivery_whose_result_a_crash_of_the_database_has_undone_is_made_again() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let worker = fixture.worker(&[]).await;
    let ids = fixture.decide(&[receiver.url("/")]);
    fixture.wait_for_status(&ids[0], "sent").await;
    // As the database is after the crash: the result that the worker recorded is not there.
    fixture.execute(
        "WITH undone AS (DELETE FROM finished_deliveries RETURNING *)
         INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
         SELECT id, webhook_id, task_id, '127.0.0.1', request_id, traceparent FROM undone",
    );
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!((row.attempts, row.webhook_status.as_str()), (1, "sent"));
    assert_eq!(receiver.calls().len(), 2);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn without_the_broker_deliveries_are_slower_but_not_lost() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let worker = fixture.worker(&[]).await;
    eventually("the worker to be ready", async || {
        is_ready(&worker).await.then_some(())
    })
    .await;
    fixture.broker.set_reachable(false);
    eventually("the loss to be noticed", async || {
        // The broker lists a new connection with a delay.
        fixture.broker.cut_connections();
        (!is_ready(&worker).await).then_some(())
    })
    .await;
    let ids = fixture.decide(&[receiver.url("/")]);
    fixture.wait_for_status(&ids[0], "sent").await;
    fixture.broker.set_reachable(true);
    eventually("the worker to be ready again", async || {
        is_ready(&worker).await.then_some(())
    })
    .await;
    let ids = fixture.decide(&[receiver.url("/")]);
    fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(receiver.calls().len(), 2);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn an_outage_of_the_database_loses_no_delivery() {
    let slow = |_| CannedResponse::after(Duration::from_millis(100));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    fixture.decide(&vec![receiver.url("/"); 200]);
    let worker = fixture.worker(&[("DATABASE_TIMEOUT", "500ms")]).await;
    receiver.wait_for_calls(20).await;
    fixture.database.set_reachable(false);
    eventually("the loss to be noticed", async || {
        (!is_ready(&worker).await).then_some(())
    })
    .await;
    fixture.database.set_reachable(true);
    fixture.wait_for_count(200, "status = 'sent'").await;
    // Results are kept and recorded later, and no other worker could take over.
    assert_eq!(receiver.calls().len(), 200);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn results_whose_commit_gets_no_reply_are_recorded_once() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let proxy = Proxy::start(&fixture.database.people_task_url()).await;
    let url = proxy.url(&fixture.database.people_task_url());
    // The only connection has prepared the statement when it has recorded a result.
    let settings = [("DATABASE_URL", url.expose()), ("DATABASE_POOL_SIZE", "2")];
    let worker = fixture.worker(&settings).await;
    fixture.decide(&vec![receiver.url("/"); 3]);
    fixture.wait_for_count(3, "status = 'sent'").await;
    // Recording a result changes the finished deliveries, and so waits for this lock; beats do not.
    let mut admin = fixture.database.admin();
    let lock = "BEGIN; LOCK TABLE people_task.finished_deliveries IN SHARE MODE";
    admin.batch_execute(lock).unwrap();
    fixture.decide(&vec![receiver.url("/"); 3]);
    eventually("a result to wait", async || {
        (fixture.waiting_statements("%), accepted AS (%") > 0).then_some(())
    })
    .await;
    proxy.cut().await;
    admin.batch_execute("COMMIT").unwrap();
    proxy.reopen();
    fixture.wait_for_count(6, "status = 'sent'").await;
    assert_eq!(fixture.count("attempts = 1"), 6);
    assert_eq!(receiver.calls().len(), 6);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

/// A resolver that panics, as any bug in an attempt might.
struct Panics;

#[expect(clippy::panic, reason = "it is what the test is about")]
impl Resolve for Panics {
    fn resolve(&self, host: &str) -> Resolved {
        panic!("{host} is poison")
    }
}

#[tokio::test]
async fn after_a_jump_of_the_clock_results_are_recorded_with_their_texts() {
    let react = |_| CannedResponse::status(200);
    let (fixture, receiver) = (Fixture::new(), Receiver::start(react));
    let _worker = fixture.worker(&[]).await;
    // The worker creates partitions when it starts, and then every hour.
    let first = fixture.decide(&[receiver.url("/")]);
    fixture.wait_for_status(&first[0], "sent").await;
    let drop_all = "DO $$ DECLARE part regclass; BEGIN
        FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'people_task.finished_deliveries'::regclass LOOP
            EXECUTE format('DROP TABLE %s', part);
        END LOOP;
    END $$";
    let mut admin = fixture.database.admin();
    admin.batch_execute(drop_all).unwrap();
    let ids = fixture.decide(&[receiver.url("/")]);
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(row.attempts, 1);
    assert_eq!(fixture.attempts(&ids[0])[0].error, None);
    assert_eq!(receiver.calls().len(), 2);
}

#[tokio::test]
async fn a_delivery_whose_attempts_panic_fails_with_a_reason() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let poison = fixture.decide(&["http://poison.example.com/"]);
    let healthy = fixture.decide(&[receiver.url("/")]);
    let mut settings = fixture.settings(&[]);
    settings.resolver = Some(Arc::new(Panics));
    let worker = run_webhook_worker(settings).await.unwrap();
    let row = fixture.wait_for_status(&poison[0], "fail").await;
    assert_eq!((row.attempts, row.webhook_status.as_str()), (3, "fail"));
    for attempt in fixture.attempts(&poison[0]) {
        let error = attempt.error.unwrap();
        assert!(error.contains("internal error"), "{error}");
    }
    fixture.wait_for_status(&healthy[0], "sent").await;
    assert!(worker.stop(STOP_TIMEOUT).await);
}

/// Lets workers have ended while they tried a delivery.
fn ended(fixture: &Fixture, id: &str, trials: u32) {
    fixture.execute(&format!(
        "UPDATE deliveries SET lost_claims = 2, lost_trials = {trials}, on_trial = {trials} > 0
         WHERE encode(id, 'hex') = '{id}'"
    ));
}

/// Lets a worker have died that owned all shards.
fn worker_died(fixture: &Fixture) {
    fixture.execute("UPDATE delivery_shards SET worker_id = 0");
}

#[tokio::test]
async fn deliveries_are_marked_after_a_worker_died_and_suspected_after_the_next_one() {
    let react = |before| match before {
        0 => CannedResponse::after(Duration::from_secs(30)),
        _ => CannedResponse::status(200),
    };
    let (fixture, receiver) = (Fixture::new(), Receiver::start(react));
    let ids = fixture.decide(&[receiver.url("/")]);
    worker_died(&fixture);
    let crashing = worker_that_can_crash(&fixture).await;
    receiver.wait_for_calls(1).await;
    assert_eq!(fixture.suspected(), 1);
    crashing.shutdown_background();
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::from_secs(2);
    let started = Instant::now();
    let worker = run_webhook_worker(settings).await.unwrap();
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert!(started.elapsed() >= Duration::from_secs(2));
    assert_eq!(row.attempts, 1);
    // What is created after the worker has taken over is not marked.
    let slow = Receiver::start(|_| CannedResponse::after(Duration::from_secs(1)));
    fixture.decide(&[slow.url("/")]);
    slow.wait_for_calls(1).await;
    assert_eq!(fixture.suspected(), 0);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_stopping_worker_leaves_no_mark() {
    let slow = |_| CannedResponse::after(Duration::from_millis(500));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    fixture.decide(&vec![receiver.url("/"); 50]);
    worker_died(&fixture);
    let worker = fixture.worker(&[]).await;
    receiver.wait_for_calls(4).await;
    assert!(fixture.suspected() >= 4);
    assert!(worker.stop(STOP_TIMEOUT).await);
    assert!(fixture.count("status = 'pending'") > 0);
    assert_eq!(fixture.suspected(), 0);
}

#[tokio::test]
async fn a_delivery_whose_workers_ended_is_tried_apart_from_others_and_counts_no_attempt() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let ids = fixture.decide(&[receiver.url("/"), receiver.url("/")]);
    ended(&fixture, &ids[0], 2);
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::from_secs(2);
    let started = Instant::now();
    let worker = run_webhook_worker(settings).await.unwrap();
    fixture.wait_for_status(&ids[1], "sent").await;
    assert_eq!(fixture.row(&ids[0]).status, "pending");
    // It waits longer with each worker that ended.
    eventually("the lost trial to be noticed", async || {
        (fixture.row(&ids[0]).next_in_ms > 4_000).then_some(())
    })
    .await;
    fixture.execute("UPDATE deliveries SET next_attempt = now()");
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(row.attempts, 1);
    assert!(started.elapsed() >= Duration::from_secs(2));
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_suspect_that_another_transaction_holds_does_not_delay_the_trials_of_others() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let ids = fixture.decide(&[receiver.url("/"), receiver.url("/")]);
    fixture.execute("UPDATE deliveries SET lost_claims = 2");
    // Its turn is first.
    let first = format!("WHERE encode(id, 'hex') = '{}'", ids[0]);
    let wait = "next_attempt = next_attempt - interval '1 second'";
    fixture.execute(&format!("UPDATE deliveries SET {wait} {first}"));
    let mut holder = fixture.database.admin();
    let hold = format!("BEGIN; SELECT FROM people_task.deliveries {first} FOR UPDATE");
    holder.batch_execute(&hold).unwrap();
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::ZERO;
    let worker = run_webhook_worker(settings).await.unwrap();
    fixture.wait_for_status(&ids[1], "sent").await;
    holder.batch_execute("ROLLBACK").unwrap();
    fixture.wait_for_status(&ids[0], "sent").await;
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_failed_trial_clears_the_suspicion() {
    let react = |before| CannedResponse::status(if before == 0 { 500 } else { 200 });
    let (fixture, receiver) = (Fixture::new(), Receiver::start(react));
    let ids = fixture.decide(&[receiver.url("/")]);
    ended(&fixture, &ids[0], 0);
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::ZERO;
    let worker = run_webhook_worker(settings).await.unwrap();
    fixture.wait_for_attempts(&ids[0], 1).await;
    assert_eq!(fixture.suspected(), 0);
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(row.attempts, 2);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_delivery_that_ends_workers_is_parked_with_a_reason_and_never_fails() {
    let metrics = telemetry::metrics_recorder();
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let ids = fixture.decide(&[receiver.url("/"), receiver.url("/")]);
    ended(&fixture, &ids[0], 5);
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::ZERO;
    let worker = run_webhook_worker(settings).await.unwrap();
    eventually("the delivery to be parked", async || {
        (!fixture.attempts(&ids[0]).is_empty()).then_some(())
    })
    .await;
    fixture.execute("UPDATE deliveries SET next_attempt = now()");
    fixture.wait_for_status(&ids[1], "sent").await;
    let more = fixture.decide(&[receiver.url("/")]);
    fixture.wait_for_status(&more[0], "sent").await;
    assert_eq!(receiver.calls().len(), 2);
    let row = fixture.row(&ids[0]);
    assert_eq!(
        (row.status.as_str(), row.webhook_status.as_str()),
        ("pending", "pending")
    );
    let attempts = fixture.attempts(&ids[0]);
    let error = attempts[0].error.as_deref().unwrap();
    assert!(error.starts_with("parked: "), "{error}");
    eventually("the gauges to show it apart from what is due", async || {
        let rendered = metrics.render();
        let shows = |line: &str| rendered.lines().any(|shown| shown == line);
        let is_apart = shows("webhook_deliveries_parked 1")
            && shows("webhook_deliveries_due 0")
            && shows("webhook_deliveries_oldest_due_seconds 0");
        is_apart.then_some(())
    })
    .await;
    assert!(worker.stop(STOP_TIMEOUT).await);
}
