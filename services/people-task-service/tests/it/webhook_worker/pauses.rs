//! Deliveries to a paused host wait, whatever the number of workers, and lose nothing.

use std::collections::HashSet;
use std::time::Duration;

use people_task_service::run_webhook_worker;
use testkit::eventually;
use tokio::time::sleep;

use crate::webhook_worker::fixture::{CannedResponse, Fixture, Receiver, STOP_TIMEOUT};

const PAUSED: [u8; 4] = [127, 0, 1, 1];

fn pause(fixture: &Fixture) {
    fixture.execute("INSERT INTO paused_hosts (host) VALUES ('127.0.1.1')");
}

fn resume(fixture: &Fixture) {
    fixture.execute("DELETE FROM paused_hosts");
}

/// Waits until a worker has sent a delivery to another host that it found by a message, and one that it found by a scan.
async fn others_are_sent(fixture: &Fixture, other: &Receiver) {
    let publisher = fixture.publisher().await;
    let url = other.url("/");
    let known = fixture.decide(&[&url]);
    publisher.send([fixture.message_for(&known[0])]);
    fixture.wait_for_status(&known[0], "sent").await;
    let scanned = fixture.decide(&[&url]);
    fixture.wait_for_status(&scanned[0], "sent").await;
}

#[tokio::test]
async fn nothing_is_sent_to_a_paused_host_until_it_is_resumed() {
    let ok = |_| CannedResponse::status(200);
    let (fixture, other) = (Fixture::new(), Receiver::start(ok));
    let receiver = Receiver::start_at(PAUSED, ok);
    pause(&fixture);
    let url = receiver.url("/");
    let ids = fixture.decide(&[&url, &url]);
    let publisher = fixture.publisher().await;
    publisher.send(ids.iter().map(|id| fixture.message_for(id)));
    let workers = [fixture.worker(&[]).await, fixture.worker(&[]).await];
    others_are_sent(&fixture, &other).await;
    assert_eq!(receiver.calls().len(), 0);
    for id in &ids {
        let row = fixture.row(id);
        assert_eq!((row.status.as_str(), row.attempts), ("pending", 0));
    }
    resume(&fixture);
    for id in &ids {
        let row = fixture.wait_for_status(id, "sent").await;
        assert_eq!(row.attempts, 1);
    }
    assert_eq!(receiver.calls().len(), 2);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_busy_with_a_host_stop_when_it_is_paused() {
    let slow = |_| CannedResponse::after(Duration::from_millis(20));
    let (fixture, other) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let receiver = Receiver::start_at(PAUSED, slow);
    fixture.decide(&vec![receiver.url("/"); 4_000]);
    let limit = [("WEBHOOK_MAX_IN_FLIGHT_PER_HOST", "4")];
    let workers = [fixture.worker(&limit).await, fixture.worker(&limit).await];
    receiver.wait_for_calls(50).await;
    pause(&fixture);
    // A scan that finds another delivery knows of the pause.
    others_are_sent(&fixture, &other).await;
    // The other worker's scan knows of it at its own time.
    let calls = eventually("a second without a call", async || {
        let before = receiver.calls().len();
        sleep(Duration::from_secs(1)).await;
        (receiver.calls().len() == before).then_some(before)
    })
    .await;
    fixture
        .wait_for_count(i64::try_from(calls).unwrap() + 2, "status = 'sent'")
        .await;
    others_are_sent(&fixture, &other).await;
    assert_eq!(receiver.calls().len(), calls);
    assert!(calls < 4_000);

    fixture.execute(
        "DELETE FROM deliveries WHERE id <> ALL(ARRAY(SELECT id FROM deliveries LIMIT 100))",
    );
    resume(&fixture);
    receiver.wait_for_calls(calls + 100).await;
    // Each was sent once.
    let seen: HashSet<_> = receiver
        .calls()
        .iter()
        .map(|call| call.header("webhook-id").to_owned())
        .collect();
    assert_eq!(seen.len(), calls + 100);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
}

#[tokio::test]
async fn a_pause_between_attempts_counts_as_none() {
    let react = |before| CannedResponse::status(if before == 0 { 500 } else { 200 });
    let (fixture, other) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let receiver = Receiver::start_at(PAUSED, react);
    let worker = fixture.worker(&[("WEBHOOK_RETRY_SCHEDULE", "1h")]).await;
    let ids = fixture.decide(&[receiver.url("/")]);
    fixture.wait_for_attempts(&ids[0], 1).await;
    pause(&fixture);
    fixture.execute("UPDATE deliveries SET next_attempt = now()");
    others_are_sent(&fixture, &other).await;
    assert_eq!(fixture.row(&ids[0]).attempts, 1);
    resume(&fixture);
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(row.attempts, 2);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_suspected_delivery_to_a_paused_host_is_not_tried() {
    let ok = |_| CannedResponse::status(200);
    let (fixture, other) = (Fixture::new(), Receiver::start(ok));
    let receiver = Receiver::start_at(PAUSED, ok);
    let paused = fixture.decide(&[receiver.url("/")]);
    let tried = fixture.decide(&[other.url("/"), other.url("/")]);
    fixture.execute("UPDATE deliveries SET lost_claims = 2");
    pause(&fixture);
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::ZERO;
    let worker = run_webhook_worker(settings).await.unwrap();
    for id in &tried {
        fixture.wait_for_status(id, "sent").await;
    }
    let row = fixture.row(&paused[0]);
    assert_eq!((row.status.as_str(), row.attempts), ("pending", 0));
    resume(&fixture);
    fixture.wait_for_status(&paused[0], "sent").await;
    assert!(worker.stop(STOP_TIMEOUT).await);
}
