use serde_json::{Value, json};

use crate::fixture::{Fixture, Task, User, next_page};

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
        "INSERT INTO delivery_attempts
         SELECT id, n, timestamptz '2026-01-01' + n * interval '1 second', 41 + n,
            CASE n WHEN 2 THEN 503 END, CASE n WHEN 1 THEN 'connection refused' END,
            CASE n WHEN 2 THEN 'busy' END
         FROM deliveries, generate_series(1, 2) AS n;",
    );
    app.execute("UPDATE deliveries SET status = 'fail', finished = now(), attempts = 2");
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
async fn a_delivery_lists_its_newest_100_attempts() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = decided(&app, &ada, 2).await;
    app.execute(
        "INSERT INTO delivery_attempts (delivery_id, number, at, duration_ms)
         SELECT id, n, now(), n FROM deliveries, generate_series(1, 150) AS n;",
    );
    let deliveries = list(&app, &ada, &task).await;
    assert_eq!(deliveries.as_array().unwrap().len(), 2);
    for delivery in deliveries.as_array().unwrap() {
        let attempts = delivery["attempts"].as_array().unwrap();
        let numbers = attempts
            .iter()
            .map(|attempt| attempt["durationMs"].as_i64());
        assert!(numbers.eq((51..=150).map(Some)));
    }
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
            "UPDATE deliveries SET status = '{status}', attempts = 9, lease = 9,
                finished = CASE WHEN '{status}' = 'pending' THEN NULL ELSE now() END,
                next_attempt = now() + interval '1 hour', republish_at = now() + interval '1 hour'
             WHERE encode(id, 'hex') = '{id}'"
        ));
        app.execute(&format!("UPDATE webhooks SET status = '{status}'"));
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
            "deliveries WHERE encode(id, 'hex') = '{id}' AND status = 'pending'
             AND next_attempt <= now() AND finished IS NULL AND lease_until IS NULL
             AND republish_at < now() + interval '10 seconds' AND attempts = 0 AND lease = 10"
        );
        assert_eq!(app.count(&due), 1, "{status}");
        let webhooks = app.get(&ada, &format!("{}/webhooks", task.path)).await;
        assert_eq!(webhooks.json[0]["status"], "pending");
    }
}

#[tokio::test]
async fn a_delivery_in_flight_is_not_restarted() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = decided(&app, &ada, 1).await;
    let id = list(&app, &ada, &task).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    app.execute("UPDATE deliveries SET lease_until = now() + interval '1 minute', lease = 1");
    let path = format!("/people-task/deliveries/{id}/redeliver");
    let reply = app
        .http
        .post(&path)
        .bearer(&ada.token)
        .send()
        .await
        .expect(200);
    assert_eq!(reply.json["status"], "pending");
    assert_eq!(
        app.count("deliveries WHERE lease_until > now() AND lease = 1"),
        1
    );
    // An expired lease does not count.
    app.execute("UPDATE deliveries SET lease_until = now() - interval '1 minute'");
    let _ = app
        .http
        .post(&path)
        .bearer(&ada.token)
        .send()
        .await
        .expect(200);
    assert_eq!(app.count("deliveries WHERE lease_until IS NULL"), 1);
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
