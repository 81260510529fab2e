//! The hosts of deliveries, as administrators see and pause them.

use diesel::connection::SimpleConnection as _;
use people_task_service::MIGRATIONS;
use serde_json::{Value, json};
use testkit::{Reply, TestDatabase, eventually};

use crate::fixture::{Fixture, User, next_page};

async fn change(app: &Fixture, by: &User, what: &str, body: &Value) -> Reply {
    let path = format!("/people-task/deliveries/{what}");
    app.http
        .post(&path)
        .bearer(&by.token)
        .json(body)
        .send()
        .await
}

async fn hosts(app: &Fixture, by: &User, query: &str) -> Vec<Value> {
    let path = format!("/people-task/deliveries/hosts{query}");
    let reply = app.get(by, &path).await.expect(200);
    reply.json.as_array().unwrap().clone()
}

fn names(hosts: &[Value]) -> Vec<&str> {
    hosts
        .iter()
        .map(|host| host["host"].as_str().unwrap())
        .collect()
}

/// Decides a task with webhooks at these hosts, of which the deliveries to some fail.
async fn decide(app: &Fixture, hosts: &[&str], failing: &str) {
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for host in hosts {
        let _ = app
            .register(&ada, &task, &format!("http://{host}:9/"))
            .await;
    }
    let _ = app.approve(&ada, &task).await.expect(200);
    app.execute(&format!(
        "WITH finished AS (DELETE FROM deliveries WHERE host = '{failing}' RETURNING *)
         INSERT INTO finished_deliveries
            (id, webhook_id, task_id, status, request_id, traceparent, created, attempt_log)
         SELECT id, webhook_id, task_id, 'fail', request_id, traceparent, created, attempt_log FROM finished"
    ));
}

#[tokio::test]
async fn hosts_are_listed_with_the_numbers_of_their_deliveries() {
    let app = Fixture::start().await;
    let root = app.admin();
    decide(
        &app,
        &["127.0.0.1", "127.0.0.1", "127.0.0.3", "127.0.0.2"],
        "127.0.0.3",
    )
    .await;
    app.execute("UPDATE deliveries SET attempts = 1 WHERE id = (SELECT id FROM deliveries WHERE host = '127.0.0.1' LIMIT 1)");
    let _ = change(&app, &root, "pause", &json!({"host": "z.example"}))
        .await
        .expect(200);

    let all = hosts(&app, &root, "").await;
    assert_eq!(
        names(&all),
        ["127.0.0.1", "127.0.0.2", "127.0.0.3", "z.example"]
    );
    let mut first = all[0].clone();
    assert!(first["nextAttempt"].take().is_string());
    assert_eq!(
        first,
        json!({"host": "127.0.0.1", "paused": null, "pending": 2, "retrying": 1, "failed": 0, "nextAttempt": null})
    );
    assert_eq!(
        (&all[2]["pending"], &all[2]["failed"]),
        (&json!(0), &json!(1))
    );
    assert!(all[3]["paused"].as_str().unwrap().ends_with('Z'));

    for (query, expected) in [
        ("?status=pending", vec!["127.0.0.1", "127.0.0.2"]),
        ("?status=fail", vec!["127.0.0.3"]),
        ("?status=paused", vec!["z.example"]),
        ("?host=127.0.0.2", vec!["127.0.0.2"]),
        ("?host=y.example", vec!["y.example"]),
        ("?after=127.0.0.2", vec!["127.0.0.3", "z.example"]),
    ] {
        assert_eq!(names(&hosts(&app, &root, query).await), expected, "{query}");
    }
    let mut seen = Vec::new();
    let mut path = Some("/people-task/deliveries/hosts?limit=3".to_owned());
    while let Some(page) = path {
        let reply = app.get(&root, &page).await.expect(200);
        seen.extend(reply.json.as_array().unwrap().clone());
        path = next_page(&reply);
    }
    assert_eq!(seen, all);
    for wrong in ["status=sent", "limit=0", "limit=201"] {
        let refused = app
            .get(&root, &format!("/people-task/deliveries/hosts?{wrong}"))
            .await;
        refused.expect_problem(400, "validation-failed");
    }
}

#[tokio::test]
async fn a_host_is_paused_and_resumed_once() {
    let app = Fixture::start().await;
    let root = app.admin();
    decide(&app, &["127.0.0.1", "127.0.0.2"], "").await;
    for _ in 0..2 {
        let paused = change(&app, &root, "pause", &json!({"host": "127.0.0.1."})).await;
        let paused = paused.expect(200).json;
        assert_eq!(
            (&paused["host"], &paused["pending"]),
            (&json!("127.0.0.1"), &json!(1))
        );
        assert!(paused["paused"].is_string());
    }
    let queues = app.get(&root, "/people-task/queues").await.expect(200).json;
    let deliveries = &queues["deliveries"];
    for (name, expected) in [
        ("pending", 2),
        ("due", 1),
        ("paused", 1),
        ("pausedHosts", 1),
        ("parked", 0),
    ] {
        assert_eq!(deliveries[name], expected, "{name}");
    }
    for _ in 0..2 {
        let resumed = change(&app, &root, "resume", &json!({"host": "127.0.0.1"})).await;
        assert_eq!(resumed.expect(200).json["paused"], Value::Null);
    }
    assert_eq!(app.count("paused_hosts"), 0);
    let audit = app
        .get(&root, "/people-task/audit?limit=2")
        .await
        .expect(200)
        .json;
    for (entry, action) in [
        (&audit[0], "deliveries-resumed"),
        (&audit[1], "deliveries-paused"),
    ] {
        assert_eq!(entry["action"], action);
        assert_eq!(entry["actor"], json!(root.id));
        assert_eq!(entry["subject"], Value::Null);
        assert_eq!(entry["detail"], json!({"host": "127.0.0.1"}));
    }
    for body in [
        json!({}),
        json!({"host": ""}),
        json!({"host": "x".repeat(254)}),
    ] {
        let refused = change(&app, &root, "pause", &body).await;
        refused.expect_problem(400, "validation-failed");
    }
}

#[tokio::test]
async fn hosts_that_an_earlier_version_paused_by_another_spelling_are_resumed() {
    let app = Fixture::start().await;
    let root = app.admin();
    app.execute(
        "INSERT INTO paused_hosts (host) VALUES
            ('b\u{fc}cher.example'), ('xn--bcher-kva.example'), ('0x7f.1'), ('z.example')",
    );
    for (host, left) in [("b\u{fc}cher.example", 2), ("127.0.0.1", 1)] {
        let resumed = change(&app, &root, "resume", &json!({"host": host})).await;
        assert_eq!(resumed.expect(200).json["paused"], Value::Null);
        assert_eq!(app.count("paused_hosts"), left, "{host}");
    }
}

#[tokio::test]
async fn a_thousand_hosts_may_be_paused() {
    let app = Fixture::start().await;
    let root = app.admin();
    app.execute(
        "INSERT INTO paused_hosts (host) SELECT n || '.example' FROM generate_series(1, 1000) AS n",
    );
    let refused = change(&app, &root, "pause", &json!({"host": "one-more.example"})).await;
    refused.expect_problem(409, "too-many-paused-hosts");
    let again = change(&app, &root, "pause", &json!({"host": "1.example"})).await;
    let _ = again.expect(200);
    assert_eq!(app.count("audit_log WHERE action = 'deliveries-paused'"), 0);
}

#[tokio::test]
async fn only_administrators_see_and_pause_hosts() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for path in ["/people-task/deliveries/hosts", "/people-task/queues"] {
        app.get(&ada, path)
            .await
            .expect_problem(403, "insufficient-scope");
    }
    for what in ["pause", "resume"] {
        let refused = change(&app, &ada, what, &json!({"host": "127.0.0.1"})).await;
        refused.expect_problem(403, "insufficient-scope");
    }
    assert_eq!(app.count("paused_hosts"), 0);
}

#[tokio::test]
async fn the_queue_is_shown_as_the_broker_has_it() {
    let app = Fixture::start_with_broker(&[]).await;
    let root = app.admin();
    decide(&app, &["127.0.0.1"], "").await;
    // Each worker has a queue of its own, and none runs.
    eventually("the broker to be connected", async || {
        let queues = app.get(&root, "/people-task/queues").await.expect(200).json;
        let expected = json!([
            {"name": "webhook.due-deliveries", "connected": true, "messages": 0, "deadLetters": 0}
        ]);
        (queues["queues"] == expected && queues["deliveries"]["pending"] == 1).then_some(())
    })
    .await;
}

const PREPARE: &str = "
SET search_path = people_task;
INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
SELECT substr(sha256(n::text::bytea), 1, 12), '\\x000000000000000000000001', '\\x000000000000000000000002',
    (n % 10) || '.example', 'r', 't' FROM generate_series(1, 30000) AS n;
INSERT INTO finished_deliveries (id, webhook_id, task_id, status, request_id, traceparent, created, attempt_log, host)
SELECT substr(sha256(n::text::bytea), 1, 12), '\\x000000000000000000000001', '\\x000000000000000000000002',
    'fail', 'r', 't', now(), '[]', (n % 10) || '.example' FROM generate_series(1, 30000) AS n;
ANALYZE;";

#[tokio::test]
async fn a_page_of_hosts_reads_at_most_a_thousand_deliveries_of_each() {
    let database = TestDatabase::people_task(MIGRATIONS);
    database.admin().batch_execute(PREPARE).unwrap();
    let app = Fixture::start_on(database, &[]).await;
    let root = app.admin();
    crate::all_deliveries::database_forgets(&app);
    let listed = hosts(&app, &root, "?limit=3").await;
    assert_eq!(names(&listed), ["0.example", "1.example", "2.example"]);
    assert_eq!(
        (&listed[0]["pending"], &listed[0]["failed"]),
        (&json!(1_000), &json!(1_000))
    );
    assert!(app.stop().await);
    let read = crate::all_deliveries::rows_read(&app.database).await;
    // Without the limit it would be 60,000.
    assert!((8_000..20_000).contains(&read), "{read}");
}
