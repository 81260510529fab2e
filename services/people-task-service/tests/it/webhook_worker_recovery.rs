//! Crashes, stops and outages lose nothing and send nothing twice at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Data;
use outbound::{Resolve, Resolved};
use people_task_service::run_webhook_worker;
use service_runtime::Running;
use testkit::eventually;
use tokio::runtime::Runtime;

use crate::webhook_worker_stage::{GRACE, Reaction, Receiver, Stage};

/// A worker in a runtime of its own, which can be taken away from under it.
async fn worker_that_can_crash(stage: &Stage) -> Runtime {
    let mut settings = stage.settings(&[("WEBHOOK_TIMEOUT", "1s")]);
    settings.lease_margin = Duration::from_millis(1_500);
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
async fn another_worker_takes_over_when_one_crashes_in_the_middle() {
    // The first call never gets its answer.
    let react = |before| match before {
        0 => Reaction::after(Duration::from_secs(30)),
        _ => Reaction::status(200),
    };
    let (stage, receiver) = (Stage::new(), Receiver::start(react));
    let ids = stage.decide(&[receiver.url("/")]);
    let crashing = worker_that_can_crash(&stage).await;
    receiver.receives(1).await;
    assert!(stage.row(&ids[0]).leased);
    crashing.shutdown_background();
    let crashed = Instant::now();
    let _other = stage.worker(&[]).await;
    let calls = receiver.receives(2).await;
    // Not before the lease of 3.5 s ends: the dead worker's request might still be under way.
    assert!(calls[1].at - calls[0].at >= Duration::from_millis(3_300));
    assert!(crashed.elapsed() < Duration::from_secs(10));
    let row = stage.reaches(&ids[0], "sent").await;
    assert_eq!(row.attempts, 1);
}

#[tokio::test]
async fn deliveries_that_wait_for_a_crashed_workers_host_are_found_again() {
    let slow = |_| Reaction::after(Duration::from_millis(200));
    let (stage, receiver) = (Stage::new(), Receiver::start(slow));
    stage.decide(&vec![receiver.url("/"); 300]);
    stage.execute("UPDATE deliveries SET next_attempt = now() - interval '10 s'");
    let crashing = worker_that_can_crash(&stage).await;
    eventually("deliveries to be parked", async || {
        (stage.count("parked") > 100).then_some(())
    })
    .await;
    crashing.shutdown_background();
    let _other = stage
        .worker(&[("WEBHOOK_MAX_IN_FLIGHT_PER_HOST", "64")])
        .await;
    stage.reach(300, "status = 'sent'").await;
    assert_eq!(stage.count("attempts = 1"), 300);
}

#[tokio::test]
async fn a_worker_that_stops_finishes_what_it_sends_and_begins_nothing() {
    let slow = |_| Reaction::after(Duration::from_millis(500));
    let (stage, receiver) = (Stage::new(), Receiver::start(slow));
    stage.decide(&vec![receiver.url("/"); 50]);
    let worker = stage.worker(&[]).await;
    receiver.receives(16).await;
    assert!(worker.stop(GRACE).await);
    let sent = receiver.calls().len();
    assert!(sent < 50);
    assert_eq!(stage.count("status = 'sent'"), i64::try_from(sent).unwrap());
    assert_eq!(stage.count("lease_until > now()"), 0);
    let _other = stage.worker(&[]).await;
    stage.reach(50, "status = 'sent'").await;
    assert_eq!(receiver.calls().len(), 50);
}

#[tokio::test]
async fn a_broker_that_is_away_delays_deliveries_but_stops_none() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let worker = stage.worker(&[]).await;
    eventually("the worker to be ready", async || {
        is_ready(&worker).await.then_some(())
    })
    .await;
    stage.broker.set_reachable(false);
    eventually("the loss to be noticed", async || {
        // The broker lists a young connection only after a while.
        stage.broker.cut_connections();
        (!is_ready(&worker).await).then_some(())
    })
    .await;
    let ids = stage.decide(&[receiver.url("/")]);
    stage.reaches(&ids[0], "sent").await;
    stage.broker.set_reachable(true);
    eventually("the worker to be ready again", async || {
        is_ready(&worker).await.then_some(())
    })
    .await;
    let ids = stage.decide(&[receiver.url("/")]);
    stage.reaches(&ids[0], "sent").await;
    assert_eq!(receiver.calls().len(), 2);
    assert!(worker.stop(GRACE).await);
}

#[tokio::test]
async fn a_database_that_was_away_loses_nothing() {
    let slow = |_| Reaction::after(Duration::from_millis(100));
    let (stage, receiver) = (Stage::new(), Receiver::start(slow));
    stage.decide(&vec![receiver.url("/"); 200]);
    let worker = stage.worker(&[("DATABASE_TIMEOUT", "500ms")]).await;
    receiver.receives(20).await;
    stage.database.set_reachable(false);
    eventually("the loss to be noticed", async || {
        (!is_ready(&worker).await).then_some(())
    })
    .await;
    stage.database.set_reachable(true);
    stage.reach(200, "status = 'sent'").await;
    // Results that were kept meanwhile are written, so nothing was sent twice but for a claim whose
    // commit nobody heard of.
    let calls = receiver.calls().len();
    assert!((200..=216).contains(&calls), "{calls}");
    assert!(worker.stop(GRACE).await);
}

/// A resolver that stands for any fault of ours on the way to a receiver.
struct Panics;

#[expect(clippy::panic, reason = "it is what the test is about")]
impl Resolve for Panics {
    fn resolve(&self, host: &str) -> Resolved {
        panic!("{host} is poison")
    }
}

#[tokio::test]
async fn a_delivery_whose_attempts_panic_ends_in_fail_with_a_reason() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let poison = stage.decide(&["http://poison.example.com/"]);
    let healthy = stage.decide(&[receiver.url("/")]);
    let mut settings = stage.settings(&[]);
    settings.resolver = Arc::new(Panics);
    let worker = run_webhook_worker(settings).await.unwrap();
    let row = stage.reaches(&poison[0], "fail").await;
    assert_eq!((row.attempts, row.webhook_status.as_str()), (3, "fail"));
    for attempt in stage.attempts(&poison[0]) {
        let error = attempt.error.unwrap();
        assert!(error.contains("a fault of ours"), "{error}");
    }
    stage.reaches(&healthy[0], "sent").await;
    assert!(worker.stop(GRACE).await);
}

#[tokio::test]
async fn a_delivery_that_takes_every_worker_down_is_given_up_with_a_reason() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let ids = stage.decide(&[receiver.url("/"), receiver.url("/")]);
    // Twenty workers have claimed it, and none was heard of again.
    stage.execute(&format!(
        "UPDATE deliveries SET unanswered = 20, lease = 20, lease_until = now() - interval '1 s'
         WHERE encode(id, 'hex') = '{}'",
        ids[0]
    ));
    let worker = stage.worker(&[]).await;
    let row = stage.reaches(&ids[0], "fail").await;
    assert_eq!((row.attempts, row.webhook_status.as_str()), (0, "fail"));
    let attempts = stage.attempts(&ids[0]);
    assert_eq!(attempts.len(), 1);
    let error = attempts[0].error.as_deref().unwrap();
    assert!(error.contains("given up"), "{error}");
    stage.reaches(&ids[1], "sent").await;
    assert_eq!(receiver.calls().len(), 1);
    assert!(worker.stop(GRACE).await);
}
