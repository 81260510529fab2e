//! Erasures of users with many tasks, and at the same time.

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};

use crate::erasure::service_token;
use crate::fixture::{Fixture, User};

/// The tables with rows of a task.
const TABLES: [&str; 5] = [
    "tasks",
    "task_states",
    "webhooks",
    "deliveries",
    "finished_deliveries",
];

/// Calls the internal endpoint once.
async fn erase(app: &Fixture, user: &User, emails: &[&str]) -> Value {
    let request = app.http.post(&format!("/internal/users/{}/erase", user.id));
    let request = request.bearer(&service_token(app));
    let reply = request
        .json(&json!({"emails": emails, "incarnation": testkit::INCARNATION}))
        .send()
        .await;
    reply.expect(200).json
}

/// What a call responds that deleted this many tasks.
pub(crate) fn deleted(tasks: usize, more: bool) -> Value {
    deleted_of_both([tasks, 0], more)
}

/// What a call responds that deleted this many tasks, and webhooks of other tasks.
pub(crate) fn deleted_of_both([tasks, webhooks]: [usize; 2], more: bool) -> Value {
    json!({"deleted": tasks + webhooks, "deletedTasks": tasks, "more": more, "blocked": false})
}

/// Inserts tasks of a user, each with this many webhooks that have a waiting delivery and a finished one.
fn insert_tasks(app: &Fixture, [creator, requester]: [&User; 2], [tasks, webhooks]: [u32; 2]) {
    let (creator, email) = (&creator.id, &requester.email);
    app.execute(&format!(
        "WITH made AS (
            INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title,
                description, public, approver_secret, requester_secret)
            SELECT substring(sha256(('{creator}' || n)::bytea) FOR 12), decode('{creator}', 'hex'),
                '{email}', '{email}', 'y@example.com', 'y@example.com', 't', '',
                false, sha256(('a{creator}' || n)::bytea), sha256(('r{creator}' || n)::bytea)
            FROM generate_series(1, {tasks}) AS n
            RETURNING id
        ), hooks AS (
            INSERT INTO webhooks (id, task_id, registered_by, url, host)
            SELECT substring(sha256(made.id || n::text::bytea) FOR 12), made.id, decode('{creator}', 'hex'), 'http://x', 'x'
            FROM made, generate_series(1, {webhooks}) AS n
            RETURNING id, task_id
        ), finished AS (
            INSERT INTO finished_deliveries (id, webhook_id, task_id, status, request_id, traceparent, created, attempt_log)
            SELECT id, id, task_id, 'sent', 'r', 't', now(), '[]' FROM hooks
        )
        INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
        SELECT id, id, task_id, 'x', 'r', 't' FROM hooks"
    ));
    app.add_states();
}

#[tokio::test]
async fn many_tasks_are_erased_in_batches() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    insert_tasks(&app, [&me, &me], [10_100, 0]);
    let mut left = 10_100;
    while left > 0 {
        let reply = erase(&app, &me, &["me@example.com"]).await;
        let number = reply["deleted"].as_i64().unwrap();
        // A call ends after a time, but not within a batch.
        assert!(number >= left.min(5_000), "{number} of {left}");
        left -= number;
        let expected = json!({
            "deleted": number, "deletedTasks": number, "more": left > 0, "blocked": false,
        });
        assert_eq!(reply, expected);
        assert_eq!(app.count("tasks"), left);
    }
}

#[tokio::test]
async fn a_full_batch_leaves_out_tasks_that_another_transaction_holds() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    insert_tasks(&app, [&me, &me], [5_000, 0]);
    let mut holder = app.database.admin();
    let hold = "BEGIN; SELECT FROM people_task.task_states LIMIT 1 FOR UPDATE";
    holder.batch_execute(hold).unwrap();
    assert_eq!(erase(&app, &me, &[]).await, deleted(4_999, true));
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(erase(&app, &me, &[]).await, deleted(1, false));
}

#[tokio::test]
async fn batches_of_tasks_with_many_webhooks_are_smaller() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    insert_tasks(&app, [&me, &me], [260, 20]);
    for expected in [deleted(250, true), deleted(10, false)] {
        assert_eq!(erase(&app, &me, &[]).await, expected);
    }
    for table in TABLES {
        assert_eq!(app.count(table), 0, "{table}");
    }
}

#[tokio::test]
async fn an_erasure_does_not_wait_for_rows_that_another_transaction_holds() {
    let blocked = json!({"deleted": 0, "deletedTasks": 0, "more": true, "blocked": true});
    for (held, of_other_user, expected, rest) in [
        ("task_states", false, 2, 1),
        ("webhooks", false, 2, 1),
        ("deliveries", false, 2, 1),
        ("task_states", true, 4, 2),
        ("webhooks", true, 5, 1),
        ("deliveries", true, 5, 1),
    ] {
        let app = Fixture::start().await;
        let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
        let creator = if of_other_user { &other } else { &me };
        let of_kind = |number, more| {
            let numbers = if of_other_user {
                [0, number]
            } else {
                [number, 0]
            };
            deleted_of_both(numbers, more)
        };
        insert_tasks(&app, [creator, creator], [3, 2]);
        app.execute(&format!(
            "UPDATE webhooks SET registered_by = decode('{}', 'hex')",
            me.id
        ));
        let mut holder = app.database.admin();
        let hold = format!("BEGIN; SELECT FROM people_task.{held} LIMIT 1 FOR UPDATE");
        holder.batch_execute(&hold).unwrap();
        let first = erase(&app, &me, &[]).await;
        assert_eq!(first, of_kind(expected, true), "{held}");
        assert_eq!(erase(&app, &me, &[]).await, blocked, "{held}");
        holder.batch_execute("COMMIT").unwrap();
        assert_eq!(erase(&app, &me, &[]).await, of_kind(rest, false), "{held}");
    }
}

#[tokio::test]
async fn two_users_who_requested_tasks_of_each_other_are_erased_at_the_same_time() {
    let app = Fixture::start().await;
    let (ada, bob) = (app.user("ada@example.com"), app.user("bob@example.com"));
    insert_tasks(&app, [&ada, &bob], [300, 2]);
    insert_tasks(&app, [&bob, &ada], [300, 2]);
    // Each registered some webhooks for tasks of the other one.
    app.execute(&format!(
        "UPDATE webhooks SET registered_by = CASE WHEN registered_by = decode('{ada}', 'hex')
            THEN decode('{bob}', 'hex') ELSE decode('{ada}', 'hex') END
         WHERE get_byte(id, 11) % 2 = 0",
        ada = ada.id,
        bob = bob.id
    ));
    let erase_all = async |user: &User| {
        while erase(&app, user, &[&user.email]).await["more"] == true {}
    };
    tokio::join!(erase_all(&ada), erase_all(&bob));
    for table in TABLES {
        assert_eq!(app.count(table), 0, "{table}");
    }
}
