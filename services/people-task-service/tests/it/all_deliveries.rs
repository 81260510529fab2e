//! What administrators do with the deliveries of all tasks.

use diesel::connection::SimpleConnection as _;
use people_task_service::MIGRATIONS;
use serde_json::{Value, json};
use testkit::{Reply, TestDatabase, eventually, lines};

use crate::fixture::{Fixture, User, next_page};

/// Decides a task with a webhook at each of these URLs.
async fn decide(app: &Fixture, by: &User, urls: &[&str]) {
    let task = app.create(by, json!({})).await;
    for url in urls {
        let _ = app.register(by, &task, url).await;
    }
    let _ = app.approve(by, &task).await.expect(200);
}

/// Finishes the deliveries to a host, as a worker does.
fn finish(app: &Fixture, host: &str, status: &str) {
    app.execute(&format!(
        "WITH finished AS (DELETE FROM deliveries WHERE host = '{host}' RETURNING *)
         INSERT INTO finished_deliveries
            (id, webhook_id, task_id, status, request_id, traceparent, created, attempt_log)
         SELECT id, webhook_id, task_id, '{status}', request_id, traceparent, created, attempt_log FROM finished"
    ));
    app.execute(&format!(
        "UPDATE webhooks SET status = '{status}' WHERE host = '{host}'"
    ));
}

async fn list(app: &Fixture, admin: &User, query: &str) -> Vec<Value> {
    let path = format!("/people-task/deliveries?{query}");
    let listed = app.get(admin, &path).await.expect(200).json;
    listed.as_array().unwrap().clone()
}

fn ids(deliveries: &[Value]) -> Vec<&str> {
    let ids = deliveries.iter().map(|d| d["id"].as_str().unwrap());
    ids.collect()
}

async fn post(app: &Fixture, by: &User, path: &str) -> Reply {
    let path = format!("/people-task/deliveries/{path}");
    app.http.post(&path).bearer(&by.token).send().await
}

async fn change_host(app: &Fixture, by: &User, what: &str, host: &str) -> Reply {
    let path = format!("/people-task/deliveries/{what}");
    let request = app.http.post(&path).bearer(&by.token);
    request.json(&json!({ "host": host })).send().await
}

const A: &str = "http://127.0.0.1:9/a";
const B: &str = "http://127.0.0.2:9/b";
const C: &str = "http://127.0.0.3:9/c";

#[tokio::test]
async fn deliveries_are_listed_by_status_and_host() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    decide(&app, &ada, &[A, A, B]).await;
    decide(&app, &ada, &[B, C]).await;
    finish(&app, "127.0.0.2", "fail");
    finish(&app, "127.0.0.3", "sent");

    let all = list(&app, &root, "").await;
    assert_eq!(all.len(), 5);
    let mut newest_first = ids(&all);
    newest_first.sort_unstable();
    newest_first.reverse();
    assert_eq!(ids(&all), newest_first);

    for (query, url, number) in [
        ("filter=status:pending", A, 2),
        ("filter=status:pending,host:127.0.0.1", A, 2),
        ("filter=status:pending,host:127.0.0.2", A, 0),
        ("filter=status:fail", B, 2),
        ("filter=status:fail&filter=host:127.0.0.2", B, 2),
        ("filter=status:fail,host:127.0.0.1", B, 0),
        ("filter=status:sent", C, 1),
    ] {
        let listed = list(&app, &root, query).await;
        assert_eq!(listed.len(), number, "{query}");
        assert!(listed.iter().all(|d| d["url"] == url), "{query}");
    }
    for wrong in ["filter=host:127.0.0.1", "filter=status:sent,host:127.0.0.3"] {
        let path = format!("/people-task/deliveries?{wrong}");
        let refused = app.get(&root, &path).await;
        refused.expect_problem(400, "validation-failed");
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    decide(&app, &ada, &[A; 5]).await;
    let filter = "filter=status:pending,host:127.0.0.1";
    let all = list(&app, &root, filter).await;
    let mut seen = Vec::new();
    let mut path = Some(format!("/people-task/deliveries?limit=2&{filter}"));
    while let Some(page) = path {
        let reply = app.get(&root, &page).await.expect(200);
        seen.extend(reply.json.as_array().unwrap().clone());
        path = next_page(&reply);
    }
    assert_eq!(seen.len(), 5);
    assert_eq!(seen, all);
}

#[tokio::test]
async fn only_administrators_may() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    decide(&app, &ada, &[A]).await;
    let id = list(&app, &app.admin(), "").await[0]["id"].clone();
    let id = id.as_str().unwrap();
    let refused = app.get(&ada, "/people-task/deliveries").await;
    refused.expect_problem(403, "insufficient-scope");
    let refused = post(&app, &ada, &format!("{id}/cancel")).await;
    refused.expect_problem(403, "insufficient-scope");
    for what in ["cancel", "redeliver"] {
        let refused = change_host(&app, &ada, what, "127.0.0.1").await;
        refused.expect_problem(403, "insufficient-scope");
    }
    assert_eq!(app.count("deliveries"), 1);
}

#[tokio::test]
async fn a_cancelled_delivery_has_failed_and_can_be_sent_again() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    decide(&app, &ada, &[A]).await;
    let id = list(&app, &root, "").await[0]["id"].clone();
    let id = id.as_str().unwrap();
    app.execute("UPDATE deliveries SET lease = 7");
    let cancelled = post(&app, &root, &format!("{id}/cancel")).await.expect(200);
    assert_eq!(cancelled.json["status"], "fail");
    assert_eq!(cancelled.json["nextAttempt"], Value::Null);
    let attempt = &cancelled.json["attempts"][0];
    assert_eq!(attempt["error"], "cancelled by an administrator");
    assert_eq!(attempt["statusCode"], Value::Null);
    assert!(attempt["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(app.count("webhooks WHERE status = 'fail'"), 1);
    // A result of an attempt that is under way finds nothing to change.
    assert_eq!(app.count("deliveries"), 0);
    let failed = list(&app, &root, "filter=status:fail,host:127.0.0.1").await;
    assert_eq!(ids(&failed), [id]);

    let again = post(&app, &root, &format!("{id}/cancel")).await;
    again.expect_problem(409, "delivery-ended");
    for unknown in ["x".to_owned(), "0".repeat(24)] {
        let missing = post(&app, &root, &format!("{unknown}/cancel")).await;
        missing.expect_problem(404, "not-found");
    }
    let audit = "/people-task/audit?filter=action:delivery-cancelled";
    let audit = app.get(&root, audit).await.expect(200).json;
    assert_eq!(audit.as_array().unwrap().len(), 1);
    assert_eq!(audit[0]["detail"], json!({ "deliveryId": id }));

    let _ = post(&app, &root, &format!("{id}/redeliver"))
        .await
        .expect(200);
    let due = "deliveries WHERE lease = 8 AND next_attempt <= now()";
    assert_eq!(app.count(due), 1);
}

#[tokio::test]
async fn deliveries_that_an_earlier_version_has_parked_stay_parked() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    decide(&app, &ada, &[A, A, B]).await;
    app.execute("UPDATE deliveries SET lost_claims = 2, lost_trials = 3");
    app.execute(
        r#"UPDATE deliveries SET attempt_log =
            '[{"error": null}, {"error": "parked: three workers ended while they sent this delivery; redeliver it to try again"}]'
        WHERE host = '127.0.0.1'"#,
    );
    app.execute("UPDATE deliveries SET has_options = true WHERE id = (SELECT id FROM deliveries WHERE host = '127.0.0.1' LIMIT 1)");
    app.execute(include_str!(
        "../../migrations/00000000000073_parked_deliveries/up.sql"
    ));
    let queues = app.get(&root, "/people-task/queues").await.expect(200).json;
    assert_eq!(queues["deliveries"]["parked"], 2);
}

#[tokio::test]
async fn deliveries_are_cancelled_although_no_worker_has_run_for_weeks() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    decide(&app, &ada, &[A, B]).await;
    app.execute(DROP_PARTITIONS);
    let cancelled = change_host(&app, &root, "cancel", "127.0.0.1").await;
    let _ = cancelled.expect(200);
    app.execute(DROP_PARTITIONS);
    let id = list(&app, &root, "").await[0]["id"].clone();
    let id = id.as_str().unwrap();
    let cancelled = post(&app, &root, &format!("{id}/cancel")).await.expect(200);
    assert_eq!(cancelled.json["status"], "fail");
}

const DROP_PARTITIONS: &str = "
DO $$ DECLARE partition regclass; BEGIN
    FOR partition IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'finished_deliveries'::regclass LOOP
        EXECUTE 'DROP TABLE ' || partition;
    END LOOP;
END $$";

#[tokio::test]
async fn the_deliveries_of_a_host_are_cancelled_and_sent_again() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    decide(&app, &ada, &[A, A, B]).await;
    decide(&app, &ada, &[A]).await;
    let cancelled = change_host(&app, &root, "cancel", "127.0.0.1").await;
    let expected = json!({"cancelled": 3, "remaining": 0});
    assert_eq!(cancelled.expect(200).json, expected);
    assert_eq!(app.count("webhooks WHERE status = 'fail'"), 3);
    let pending = list(&app, &root, "filter=status:pending").await;
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0]["url"], B);

    let redelivered = change_host(&app, &root, "redeliver", "127.0.0.1.").await;
    let expected = json!({"redelivered": 3, "remaining": 0});
    assert_eq!(redelivered.expect(200).json, expected);
    let due = "deliveries WHERE host = '127.0.0.1' AND next_attempt <= now() AND attempts = 0";
    assert_eq!(app.count(due), 3);
    assert_eq!(app.count("webhooks WHERE status = 'pending'"), 4);
    for action in ["delivery-cancelled", "delivery-redelivered"] {
        let path = format!("/people-task/audit?filter=action:{action}");
        let audit = app.get(&root, &path).await.expect(200).json;
        assert_eq!(audit.as_array().unwrap().len(), 3, "{action}");
    }
    let invalid = change_host(&app, &root, "cancel", "").await;
    invalid.expect_problem(400, "validation-failed");
}

/// How many deliveries of one host are pending, and how many have failed.
const BACKLOG: i64 = 3_000;

const PREPARE: &str = "
SET search_path = people_task;
CREATE TEMPORARY TABLE made AS
    SELECT substr(sha256(n::text::bytea), 1, 12) AS id, n FROM generate_series(1, 2 * {BACKLOG}) AS n;
INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title, description, public,
    approver_secret, requester_secret)
SELECT id, id, 'a@example.com', 'b@example.com', 'a@example.com', 'b@example.com', 't', 'd', false, sha256(id),
    sha256(sha256(id)) FROM made;
INSERT INTO task_states (task_id, status, decision_made, public, creator, created, approver_key, requester_key, title_key)
SELECT id, 'approved', now(), false, id, now(), 'b@example.com', 'a@example.com', 't' FROM made;
INSERT INTO webhooks (id, task_id, registered_by, url, host) SELECT id, id, id, 'http://127.0.0.9/', '127.0.0.9' FROM made;
INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
SELECT id, id, id, '127.0.0.9', 'r', 't' FROM made WHERE n <= {BACKLOG};
INSERT INTO finished_deliveries (id, webhook_id, task_id, status, request_id, traceparent, created, attempt_log)
SELECT id, id, id, 'fail', 'r', 't', now(), '[]' FROM made WHERE n > {BACKLOG};
ANALYZE;";

/// Connections report what they read when they end, at the latest.
pub(crate) async fn rows_read(database: &TestDatabase) -> i64 {
    eventually("the connections to end", async || {
        let sql = "SELECT pg_terminate_backend(pid)::text AS line FROM pg_stat_activity
            WHERE datname = current_database() AND usename = 'people_task_service'";
        lines(&mut database.admin(), sql).is_empty().then_some(())
    })
    .await;
    let sql = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::text AS line FROM pg_stat_user_tables
        WHERE relname ~ '^(finished_)?deliveries'";
    lines(&mut database.admin(), sql)[0].parse().unwrap()
}

#[tokio::test]
async fn a_backlog_is_read_and_changed_by_its_indexes() {
    let database = TestDatabase::people_task(MIGRATIONS);
    let prepare = PREPARE.replace("{BACKLOG}", &BACKLOG.to_string());
    database.admin().batch_execute(&prepare).unwrap();
    let app = Fixture::start_on(database, &[]).await;
    let root = app.admin();
    database_forgets(&app);
    for query in [
        "limit=20",
        "limit=20&filter=status:pending",
        "limit=20&filter=status:pending,host:127.0.0.9",
        "limit=20&filter=status:fail",
        "limit=20&filter=status:fail,host:127.0.0.9",
    ] {
        // Statements that are prepared have a generic plan.
        for _ in 0..2 {
            assert_eq!(list(&app, &root, query).await.len(), 20, "{query}");
        }
    }
    let cancelled = change_host(&app, &root, "cancel", "127.0.0.9").await;
    let expected = json!({"cancelled": 1_000, "remaining": BACKLOG - 1_000});
    assert_eq!(cancelled.expect(200).json, expected);
    let redelivered = change_host(&app, &root, "redeliver", "127.0.0.9").await;
    let expected = json!({"redelivered": 1_000, "remaining": BACKLOG});
    assert_eq!(redelivered.expect(200).json, expected);
    assert!(app.stop().await);
    let read = rows_read(&app.database).await;
    // Twice ten pages; what is changed is read to lock it, to change it, and by the key; and both counts.
    assert!((2_000..BACKLOG * 4 + 12_000).contains(&read), "{read}");
}

/// What this connection has read does not count.
pub(crate) fn database_forgets(app: &Fixture) {
    let mut admin = app.database.admin();
    admin
        .batch_execute("SELECT pg_stat_force_next_flush()")
        .unwrap();
    admin.batch_execute("SELECT pg_stat_reset()").unwrap();
}
