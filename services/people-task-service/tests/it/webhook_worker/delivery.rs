//! One delivery, from its row to the receiver and back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use testkit::eventually;
use tokio::sync::Notify;

use crate::fixture::redacted;
use crate::webhook_worker::fixture::{
    CannedResponse, Fixture, Receiver, STOP_TIMEOUT, message_of_lane,
};

#[tokio::test]
async fn a_url_is_called_as_registered_and_a_stored_one_with_its_credentials() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(204)),
    );
    let urls = [
        receiver.url("/a/../b?q='x'&r=%27|y&s=a%2Fb#part"),
        receiver.url("//c;d?e=[f]&g={h}"),
        format!("http://ada:s%20p@{}/i'j", receiver.address),
    ];
    let ids = fixture.decide(&urls);
    let worker = fixture.worker(&[]).await;
    for id in &ids {
        let _ = fixture.wait_for_status(id, "sent").await;
    }
    let calls = receiver.calls();
    let mut paths: Vec<_> = calls.iter().map(|call| call.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        ["//c;d?e=[f]&g={h}", "/a/../b?q='x'&r=%27|y&s=a%2Fb", "/i'j"]
    );
    for call in &calls {
        let expected = if call.path == "/i'j" {
            "Basic YWRhOnMgcA=="
        } else {
            ""
        };
        assert_eq!(call.header("authorization"), expected);
        assert_eq!(call.header("accept"), "*/*");
    }
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_decision_arrives_with_the_task_and_the_documented_headers() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(204)),
    );
    let url = receiver.url("/flows/1?correlationId=a%2Fb&correlationInPort=in");
    let ids = fixture.decide(&[url]);
    let worker = fixture.worker(&[]).await;
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!((row.webhook_status.as_str(), row.attempts), ("sent", 1));

    let calls = receiver.calls();
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert_eq!(
        call.path,
        "/flows/1?correlationId=a%2Fb&correlationInPort=in"
    );
    let body = call.json();
    insta::assert_json_snapshot!("webhook_body", redacted(&body));
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
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn a_webhook_registered_on_a_plugin_path_also_gets_the_task_id_and_times() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    fixture.decide_with(&[receiver.url("/")], None, true);
    let _worker = fixture.worker(&[]).await;
    let body = receiver.wait_for_calls(1).await[0].json();
    assert_eq!(body["taskId"], body["id"]);
    for time in ["created", "mtime", "decisionMade"] {
        assert!(body[time].is_string(), "{time}");
    }
    assert_eq!(body.as_object().unwrap().len(), 11);
}

#[tokio::test]
async fn an_attempt_is_recorded_with_the_start_of_its_response() {
    let long: Vec<u8> = [&b"a\0b\xff"[..], &[b'x'; 5_000]].concat();
    let response = CannedResponse {
        body: long,
        ..CannedResponse::status(200)
    };
    let (fixture, receiver) = (Fixture::new(), Receiver::start(move |_| response.clone()));
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[]).await;
    fixture.wait_for_status(&ids[0], "sent").await;
    let attempts = fixture.attempts(&ids[0]);
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
async fn repeated_messages_cause_one_call() {
    let slow = |_| CannedResponse::after(Duration::from_millis(300));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    let ids = fixture.decide(&[receiver.url("/")]);
    let workers = [fixture.worker(&[]).await, fixture.worker(&[]).await];
    let publisher = fixture.publisher().await;
    let message = fixture.message_for(&ids[0]);
    for _ in 0..20 {
        publisher.send(std::iter::repeat_n(message.clone(), 5));
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    publisher.send([message_of_lane("http://a.example:80 a1", "nonsense")]);
    fixture.wait_for_status(&ids[0], "sent").await;
    eventually("the invalid message to be set aside", async || {
        (publisher.dead_letters() > 0).then_some(())
    })
    .await;
    assert_eq!(receiver.calls().len(), 1);
    assert_eq!(fixture.attempts(&ids[0]).len(), 1);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
}

#[tokio::test]
async fn a_restarted_delivery_is_sent_again() {
    let metrics = telemetry::metrics_recorder();
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[]).await;
    fixture.wait_for_status(&ids[0], "sent").await;
    fixture.execute(
        "WITH finished AS (DELETE FROM finished_deliveries RETURNING *)
         INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent, created, attempt_log)
         SELECT id, webhook_id, task_id, '127.0.0.1', request_id, traceparent, created, attempt_log FROM finished",
    );
    let calls = receiver.wait_for_calls(2).await;
    fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    let numbers: Vec<_> = fixture.attempts(&ids[0]).iter().map(|a| a.number).collect();
    assert_eq!(numbers, [1, 2]);
    // Its age, from the decision, is not what the objective measures.
    eventually("both to be counted", async || {
        let rendered = metrics.render();
        let shows = |line: &str| rendered.lines().any(|shown| shown == line);
        shows("webhook_deliveries_total{outcome=\"sent\"} 2").then_some(())
    })
    .await;
    let rendered = metrics.render();
    let measured = "webhook_decision_to_delivery_seconds_count 1";
    assert!(rendered.lines().any(|line| line == measured), "{rendered}");
}

#[tokio::test]
async fn the_time_that_a_result_waits_to_be_recorded_is_no_part_of_the_objective() {
    let metrics = telemetry::metrics_recorder();
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let _worker = fixture.worker(&[]).await;
    let mut admin = fixture.database.admin();
    let lock = "BEGIN; LOCK TABLE people_task.finished_deliveries IN SHARE MODE";
    admin.batch_execute(lock).unwrap();
    let began = Instant::now();
    fixture.decide(&[receiver.url("/")]);
    eventually("the result to wait", async || {
        (fixture.waiting_statements("%), accepted AS (%") > 0).then_some(())
    })
    .await;
    let delivered = began.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(2)).await;
    admin.batch_execute("COMMIT").unwrap();
    let measured = eventually("the result to be counted", async || {
        let rendered = metrics.render();
        let mut lines = rendered.lines();
        let sum = "webhook_decision_to_delivery_seconds_sum ";
        let sum: f64 = lines.find_map(|line| line.strip_prefix(sum)?.parse().ok())?;
        (sum > 0.0).then_some(sum)
    })
    .await;
    assert!(measured <= delivered, "{measured} {delivered}");
}

#[tokio::test]
async fn deleting_a_task_during_its_delivery_affects_no_other() {
    let slow = |_| CannedResponse::after(Duration::from_millis(500));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    fixture.decide(&[receiver.url("/gone")]);
    let worker = fixture.worker(&[]).await;
    receiver.wait_for_calls(1).await;
    fixture.execute("DELETE FROM tasks");
    let ids = fixture.decide(&[receiver.url("/stays")]);
    fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(fixture.count("true"), 1);
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test]
async fn finished_deliveries_are_deleted_after_the_retention() {
    let metrics = telemetry::metrics_recorder();
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let old = fixture.decide(&[receiver.url("/")]);
    let mut owner =
        PgConnection::establish(fixture.database.people_task_owner_url().expose()).unwrap();
    owner
        .batch_execute(
            "SET timezone = 'UTC';
            SELECT create_finished_deliveries_partition(current_date - days) FROM unnest(ARRAY[29, 32]) AS days;
            WITH waiting AS (DELETE FROM deliveries RETURNING *)
            INSERT INTO finished_deliveries
                (id, webhook_id, task_id, status, request_id, traceparent, created, finished, attempt_log)
            SELECT id, webhook_id, task_id, 'sent', request_id, traceparent, created,
                now() - days * interval '1 day', attempt_log
            FROM waiting, unnest(ARRAY[29, 32]) AS days",
        )
        .unwrap();
    assert_eq!(fixture.count("true"), 2);
    let fresh = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[]).await;
    fixture.wait_for_status(&fresh[0], "sent").await;
    fixture.wait_for_count(2, "true").await;
    assert_eq!(fixture.row(&old[0]).status, "sent");
    let expected = "retention_deleted_total{table=\"finished_deliveries\"} 1";
    eventually("the partition to be counted", async || {
        let rendered = metrics.render();
        let is_counted = rendered.lines().any(|line| line == expected);
        is_counted.then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_newest_100_attempts_are_kept() {
    let failing = |_| CannedResponse::status(404);
    let (fixture, receiver) = (Fixture::new(), Receiver::start(failing));
    let ids = fixture.decide(&[receiver.url("/")]);
    fixture.execute(
        "UPDATE deliveries SET attempt_log = (
            SELECT jsonb_agg(jsonb_build_object('statusCode', n)) FROM generate_series(1, 100) AS n)",
    );
    let _worker = fixture.worker(&[("WEBHOOK_RETRY_SCHEDULE", "1h")]).await;
    receiver.wait_for_calls(1).await;
    let newest = eventually("the attempt to be recorded", async || {
        Some(fixture.attempts(&ids[0])).filter(|all| all[99].status_code == Some(404))
    })
    .await;
    assert_eq!((newest.len(), newest[0].status_code), (100, Some(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_is_cancelled_while_it_waits_for_a_place_is_not_sent() {
    let release = Arc::<Notify>::default();
    let released = Arc::clone(&release);
    let react = move |_, path: &str| match path {
        "/slow" => CannedResponse {
            release: Some(Arc::clone(&released)),
            ..CannedResponse::status(200)
        },
        _ => CannedResponse::status(200),
    };
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start_by_path([127, 0, 0, 1], react),
    );
    let elsewhere = Receiver::start_at([127, 0, 0, 2], |_| CannedResponse::status(200));
    let worker = fixture
        .worker(&[("WEBHOOK_MAX_IN_FLIGHT_PER_HOST", "1")])
        .await;
    fixture.decide(&vec![receiver.url("/slow"); 3]);
    receiver.wait_for_calls(1).await;
    fixture.decide(&[elsewhere.url("/")]);
    // It is loaded after those that wait for the place of the first.
    elsewhere.wait_for_calls(1).await;
    fixture.execute(
        "UPDATE deliveries SET lease = lease + 1, next_attempt = now() + interval '1 hour'
        WHERE host = '127.0.0.1'",
    );
    fixture.decide(&[receiver.url("/other")]);
    // What was loaded within the last second is not loaded again before it is sent.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    release.notify_one();
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!(calls[1].path, "/other");
    assert!(worker.stop(STOP_TIMEOUT).await);
    assert_eq!(receiver.calls().len(), 2);
}
