use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::eventually;

use crate::decide::wait_for_lock;
use crate::due_dates::{PLUGIN, register, worker, worker_with};
use crate::fixture::{Fixture, Task, User, next_page};
use crate::webhook_worker::fixture::{CannedResponse, Receiver, STOP_TIMEOUT};

/// A decided task with a number of webhooks.
async fn decided(app: &Fixture, by: &User, webhooks: usize) -> Task {
    let task = app.create(by, json!({})).await;
    for _ in 0..webhooks {
        let _ = app.register(by, &task, "http://127.0.0.1:9/hook?x=1").await;
    }
    let _ = app.approve(by, &task).await.expect(200);
    task
}

async fn list(app: &Fixture, by: &User, task: &Task) -> Value {
    let path = format!("{}/deliveries", task.path);
    app.get(by, &path).await.expect(200).json
}

fn finish_sql(status: &str) -> String {
    format!(
        "WITH finished AS (DELETE FROM people_task.deliveries RETURNING *)
         INSERT INTO people_task.finished_deliveries
            (id, webhook_id, task_id, status, request_id, traceparent, created, attempt_log)
         SELECT id, webhook_id, task_id, '{status}', request_id, traceparent, created, attempt_log FROM finished"
    )
}

/// Finishes all deliveries, as a worker does.
fn finish(app: &Fixture, status: &str) {
    app.execute(&finish_sql(status));
    app.execute(&format!("UPDATE webhooks SET status = '{status}'"));
}

const FIELDS: [&str; 8] = [
    "attempts",
    "created",
    "id",
    "nextAttempt",
    "status",
    "taskStatus",
    "url",
    "webhookId",
];

#[tokio::test]
async fn a_pending_task_has_no_deliveries() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    assert_eq!(list(&app, &ada, &task).await, json!([]));
}

#[tokio::test]
async fn a_delivery_lists_its_attempts_and_the_next_one() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = decided(&app, &ada, 1).await;
    let pending = list(&app, &ada, &task).await;
    let fields: Vec<_> = pending[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, FIELDS);
    assert_eq!(pending[0]["status"], "pending");
    assert_eq!(pending[0]["taskStatus"], "approved");
    assert_eq!(pending[0]["url"], "http://127.0.0.1:9/hook?x=1");
    assert_eq!(pending[0]["attempts"], json!([]));
    assert!(pending[0]["nextAttempt"].is_string());
    app.execute(
        r#"UPDATE deliveries SET attempt_log = '[
            {"at": "2026-01-01T00:00:01.000Z", "durationMs": 42, "statusCode": null,
             "error": "connection refused", "response": null},
            {"at": "2026-01-01T00:00:02.000Z", "durationMs": 43, "statusCode": 503,
             "error": null, "response": "busy"}]'"#,
    );
    finish(&app, "fail");
    let failed = list(&app, &ada, &task).await;
    assert_eq!(failed[0]["status"], "fail");
    assert_eq!(failed[0]["nextAttempt"], Value::Null);
    assert_eq!(
        failed[0]["attempts"],
        json!([
            {"at": "2026-01-01T00:00:01.000Z", "durationMs": 42, "statusCode": null,
             "error": "connection refused", "response": null},
            {"at": "2026-01-01T00:00:02.000Z", "durationMs": 43, "statusCode": 503,
             "error": null, "response": "busy"},
        ])
    );
}

#[tokio::test]
async fn deliveries_are_paged() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = decided(&app, &ada, 5).await;
    let all = list(&app, &ada, &task).await;
    let mut seen = Vec::new();
    let mut path = Some(format!("{}/deliveries?limit=2", task.path));
    while let Some(page) = path {
        let reply = app.get(&ada, &page).await.expect(200);
        seen.extend(reply.json.as_array().unwrap().clone());
        path = next_page(&reply);
    }
    assert_eq!(Value::Array(seen), all);
    let reply = app
        .get(&ada, &format!("{}/deliveries?limit=0", task.path))
        .await;
    reply.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn redeliver_makes_a_finished_delivery_due_again() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for status in ["fail", "sent", "pending"] {
        let task = decided(&app, &ada, 1).await;
        let id = list(&app, &ada, &task).await[0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        app.execute(&format!(
            "UPDATE deliveries SET attempts = 9, lease = 9, lost_claims = 3, lost_trials = 3,
                next_attempt = now() + interval '1 hour' WHERE encode(id, 'hex') = '{id}'"
        ));
        if status != "pending" {
            finish(&app, status);
        }
        let path = format!("/people-task/deliveries/{id}/redeliver");
        let reply = app
            .http
            .post(&path)
            .bearer(&ada.token)
            .send()
            .await
            .expect(200);
        assert_eq!(reply.fields(), FIELDS);
        assert_eq!(reply.json["id"], id.as_str());
        assert_eq!(reply.json["status"], "pending");
        assert!(reply.json["nextAttempt"].is_string());
        let due = format!(
            "deliveries WHERE encode(id, 'hex') = '{id}' AND next_attempt <= now()
             AND attempts = 0 AND lost_claims = 0 AND lost_trials = 0 AND host = '127.0.0.1'"
        );
        assert_eq!(app.count(&due), 1, "{status}");
        let webhooks = app.get(&ada, &format!("{}/webhooks", task.path)).await;
        assert_eq!(webhooks.json[0]["status"], "pending");
    }
}

#[tokio::test]
async fn a_delivery_that_is_being_sent_is_not_sent_a_second_time() {
    let slow = |_| CannedResponse::after(Duration::from_secs(5));
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, Receiver::start(slow));
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let url = json!({"url": receiver.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, url).await.expect(200);
    let _ = app.approve(&ada, &task).await.expect(200);
    let worker = worker(&app).await;
    receiver.wait_for_calls(1).await;
    let id = list(&app, &ada, &task).await[0]["id"].clone();
    let path = format!("/people-task/deliveries/{}/redeliver", id.as_str().unwrap());
    let reply = app.http.post(&path).bearer(&ada.token).send().await;
    assert_eq!(reply.expect(200).json["status"], "pending");
    eventually("the delivery to be sent", async || {
        (list(&app, &ada, &task).await[0]["status"] == "sent").then_some(())
    })
    .await;
    assert!(worker.stop(STOP_TIMEOUT).await);
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_failed_attempt_that_was_under_way_neither_ends_nor_delays_a_redelivery() {
    let after_repair = |before| match before {
        0..3 => CannedResponse {
            status: 404,
            ..CannedResponse::after(Duration::from_secs(2))
        },
        _ => CannedResponse::status(200),
    };
    let (app, receiver) = (
        Fixture::start_with_broker(&[]).await,
        Receiver::start(after_repair),
    );
    let ada = app.user("ada@example.com");
    let mut paths = Vec::new();
    // Two would wait for an hour after the attempt, and the last one would have failed.
    for attempts in [0, 1, 2] {
        let task = app.create(&ada, json!({})).await;
        let _ = app.register(&ada, &task, &receiver.url("/")).await;
        let _ = app.approve(&ada, &task).await.expect(200);
        app.execute(&format!(
            "UPDATE deliveries SET attempts = {attempts} WHERE encode(task_id, 'hex') = '{}'",
            task.id
        ));
        let id = list(&app, &ada, &task).await[0]["id"].clone();
        let id = id.as_str().unwrap();
        paths.push(format!("/people-task/deliveries/{id}/redeliver"));
    }
    let worker = worker_with(&app, &[("WEBHOOK_RETRY_SCHEDULE", "1h,1h")]).await;
    receiver.wait_for_calls(3).await;
    for path in paths {
        let reply = app.http.post(&path).bearer(&ada.token).send().await;
        assert_eq!(reply.expect(200).json["status"], "pending");
    }
    eventually("all to be sent", async || {
        (app.count("finished_deliveries WHERE status = 'sent'") == 3).then_some(())
    })
    .await;
    assert!(worker.stop(STOP_TIMEOUT).await);
    assert_eq!(receiver.calls().len(), 6);
    let logged = "finished_deliveries WHERE jsonb_array_length(attempt_log) = 2";
    assert_eq!(app.count(logged), 3);
}

#[tokio::test]
async fn a_delivery_that_ends_in_the_moment_of_its_redelivery_is_restarted() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = decided(&app, &ada, 1).await;
    let id = list(&app, &ada, &task).await[0]["id"].clone();
    let mut ending = app.database.admin();
    ending.batch_execute("BEGIN").unwrap();
    ending.batch_execute(&finish_sql("fail")).unwrap();
    let path = format!("/people-task/deliveries/{}/redeliver", id.as_str().unwrap());
    let redelivery = app.http.post(&path).bearer(&ada.token).send();
    let end = async {
        wait_for_lock(&app).await;
        ending.batch_execute("COMMIT").unwrap();
    };
    let (reply, ()) = futures_util::future::join(redelivery, end).await;
    assert_eq!(reply.expect(200).json["status"], "pending");
}

#[tokio::test]
async fn an_unknown_delivery_is_not_found() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for id in ["x".to_owned(), "0".repeat(24)] {
        let path = format!("/people-task/deliveries/{id}/redeliver");
        let reply = app.http.post(&path).bearer(&ada.token).send().await;
        reply.expect_problem(404, "not-found");
    }
}
