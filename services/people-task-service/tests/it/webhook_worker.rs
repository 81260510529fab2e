//! One delivery, from the row to the receiver and back.

use std::time::Duration;

use serde_json::json;
use testkit::eventually;

use crate::webhook_worker_stage::{GRACE, Reaction, Receiver, Stage, wake_up};

#[tokio::test]
async fn a_decision_arrives_with_the_task_and_the_documented_headers() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(204)));
    let url = receiver.url("/flows/1?correlationId=a%2Fb&correlationInPort=in");
    let ids = stage.decide(&[url]);
    let worker = stage.worker(&[]).await;
    let row = stage.reaches(&ids[0], "sent").await;
    assert_eq!(
        (row.webhook_status.as_str(), row.attempts, row.leased),
        ("sent", 1, false)
    );

    let calls = receiver.calls();
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert_eq!(
        call.path,
        "/flows/1?correlationId=a%2Fb&correlationInPort=in"
    );
    let body = call.json();
    let expected = json!({
        "id": body["id"],
        "approver": "grace@example.com",
        "requester": "Ada@example.com",
        "title": "Buy a second printer",
        "description": "The first one jams.",
        "decisionBy": "2030-01-31 09:30:00",
        "status": "approved",
    });
    assert_eq!(body, expected);
    assert_eq!(body["id"].as_str().unwrap().len(), 24);
    assert_eq!(call.header("content-type"), "application/json");
    assert_eq!(
        call.header("user-agent"),
        concat!("countersign/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(call.header("webhook-id"), ids[0]);
    assert_eq!(call.header("x-request-id"), "request-1");
    assert!(
        call.header("traceparent")
            .starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-")
    );
    assert!(worker.stop(GRACE).await);
}

#[tokio::test]
async fn a_webhook_of_the_newer_paths_also_gets_the_task_id() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    stage.decide_with(&[receiver.url("/")], None, true);
    let _worker = stage.worker(&[]).await;
    let body = receiver.receives(1).await[0].json();
    assert_eq!(body["taskId"], body["id"]);
    assert_eq!(body.as_object().unwrap().len(), 8);
}

#[tokio::test]
async fn an_attempt_is_recorded_with_the_beginning_of_its_answer() {
    let long: Vec<u8> = [&b"a\0b\xff"[..], &[b'x'; 5_000]].concat();
    let answer = Reaction {
        body: long,
        ..Reaction::status(200)
    };
    let (stage, receiver) = (Stage::new(), Receiver::start(move |_| answer.clone()));
    let ids = stage.decide(&[receiver.url("/")]);
    let _worker = stage.worker(&[]).await;
    stage.reaches(&ids[0], "sent").await;
    let attempts = stage.attempts(&ids[0]);
    assert_eq!(attempts.len(), 1);
    assert_eq!(
        (attempts[0].number, attempts[0].status_code),
        (1, Some(200))
    );
    assert_eq!(attempts[0].error, None);
    let response = attempts[0].response.as_deref().unwrap();
    assert!(response.starts_with("ab\u{fffd}xxx"));
    assert_eq!(response.chars().count(), 1_023);
}

#[tokio::test]
async fn messages_that_come_again_send_nothing_again() {
    let slow = |_| Reaction::after(Duration::from_millis(300));
    let (stage, receiver) = (Stage::new(), Receiver::start(slow));
    let ids = stage.decide(&[receiver.url("/")]);
    let workers = [stage.worker(&[]).await, stage.worker(&[]).await];
    let publisher = stage.publisher().await;
    for _ in 0..20 {
        publisher.send((0..5).map(|_| wake_up(&ids[0])));
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    publisher.send([wake_up("nonsense")]);
    stage.reaches(&ids[0], "sent").await;
    eventually("the queue to be empty", async || {
        (publisher.depth() == 0).then_some(())
    })
    .await;
    assert_eq!(receiver.calls().len(), 1);
    assert_eq!(stage.attempts(&ids[0]).len(), 1);
    for worker in workers {
        assert!(worker.stop(GRACE).await);
    }
}

#[tokio::test]
async fn a_delivery_that_is_started_again_is_sent_again() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let ids = stage.decide(&[receiver.url("/")]);
    let _worker = stage.worker(&[]).await;
    stage.reaches(&ids[0], "sent").await;
    stage.execute(
        "UPDATE deliveries SET status = 'pending', finished = NULL, attempts = 0,
            next_attempt = now(), wake_at = now()",
    );
    let calls = receiver.receives(2).await;
    stage.reaches(&ids[0], "sent").await;
    assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    let numbers: Vec<_> = stage.attempts(&ids[0]).iter().map(|a| a.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test]
async fn a_task_that_is_deleted_meanwhile_disturbs_nobody() {
    let slow = |_| Reaction::after(Duration::from_millis(500));
    let (stage, receiver) = (Stage::new(), Receiver::start(slow));
    stage.decide(&[receiver.url("/gone")]);
    let worker = stage.worker(&[]).await;
    receiver.receives(1).await;
    stage.execute("DELETE FROM tasks");
    let ids = stage.decide(&[receiver.url("/stays")]);
    stage.reaches(&ids[0], "sent").await;
    assert_eq!(stage.count("true"), 1);
    assert!(worker.stop(GRACE).await);
}

#[tokio::test]
async fn finished_deliveries_are_deleted_after_their_time() {
    let (stage, receiver) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let old = stage.decide(&vec![receiver.url("/"); 1_500]);
    stage.execute("UPDATE deliveries SET status = 'sent', finished = now() - interval '31 days'");
    let fresh = stage.decide(&[receiver.url("/")]);
    stage.execute(&format!(
        "INSERT INTO delivery_attempts (delivery_id, number, at, duration_ms) VALUES ('\\x{}', 1, now(), 1)",
        old[0]
    ));
    let _worker = stage.worker(&[]).await;
    stage.reach(1, "true").await;
    stage.reaches(&fresh[0], "sent").await;
    assert!(stage.attempts(&old[0]).is_empty());
}
