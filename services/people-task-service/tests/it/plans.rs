//! What statements read when Postgres takes the table of waiting deliveries, or that of waiting mails, for empty.
//!
//! A connection keeps the plan of a statement until the tables are analysed again. After a quiet hour `deliveries` is
//! empty, and it may have many rows when the plan is used.

use diesel::PgConnection;
use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use people_task_service::MIGRATIONS;
use serde_json::json;
use testkit::{TestDatabase, eventually, lines};

use crate::fixture::Fixture;
use crate::mail_turns::{UNLIMITED, ask, claim_at_most, flood, requesters};
use crate::mails::start;
use crate::webhook_worker::fixture::{
    CannedResponse, Fixture as WorkerFixture, Receiver, STOP_TIMEOUT,
};

/// How many tasks there are, each with a webhook and a waiting delivery.
const TASKS: i64 = 3_000;

/// Inserts tasks, and makes the statistics of `deliveries` those of an empty table.
const PREPARE: &str = "
SET search_path = people_task;
CREATE TEMPORARY TABLE made AS
    SELECT substr(sha256(n::text::bytea), 1, 12) AS id FROM generate_series(1, {TASKS}) AS n;
INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title, description, public,
    approver_secret, requester_secret)
SELECT id, id, 'a@example.com', 'b@example.com', 'a@example.com', 'b@example.com', 't', 'd', false, sha256(id),
    sha256(sha256(id)) FROM made;
INSERT INTO task_states (task_id, status, decision_made, public, creator, created, approver_key, requester_key, title_key)
SELECT id, 'approved', now(), false, id, now(), 'b@example.com', 'a@example.com', 't' FROM made;
INSERT INTO webhooks (id, task_id, registered_by, url, host) SELECT id, id, id, 'http://127.0.0.9/', '127.0.0.9' FROM made;
INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent, next_attempt)
SELECT id, id, id, '127.0.0.9', 'r', 't', now() + interval '1 hour' FROM made;
ALTER TABLE deliveries SET (autovacuum_enabled = false);
UPDATE pg_class SET relpages = 1, reltuples = 0 WHERE oid IN (
    SELECT 'deliveries'::regclass UNION SELECT indexrelid FROM pg_index WHERE indrelid = 'deliveries'::regclass);";

fn prepare(database: &TestDatabase) {
    let mut admin = database.admin();
    admin
        .batch_execute(&PREPARE.replace("{TASKS}", &TASKS.to_string()))
        .unwrap();
    forget_reads(&mut admin);
}

/// Lets what was read until now, and by this connection, not count.
fn forget_reads(admin: &mut PgConnection) {
    admin
        .batch_execute("SELECT pg_stat_force_next_flush()")
        .unwrap();
    admin.batch_execute("SELECT pg_stat_reset()").unwrap();
}

/// How many waiting deliveries were read by their keys. The other indexes are those by which all of them are looked
/// through from time to time.
async fn deliveries_read(database: &TestDatabase) -> i64 {
    entries_read(
        database,
        "indexrelname IN ('deliveries_pkey', 'deliveries_by_task')",
    )
    .await
}

/// How many entries of some indexes were read.
///
/// Connections report what they read when they end, at the latest.
async fn entries_read(database: &TestDatabase, indexes: &str) -> i64 {
    let connections = "FROM pg_stat_activity WHERE datname = current_database() AND usename = 'people_task_service'";
    eventually("the connections to end", async || {
        let ended = number(
            database,
            &format!("count(pg_terminate_backend(pid)) {connections}"),
        );
        (ended == 0).then_some(())
    })
    .await;
    let read = format!("sum(idx_tup_read) FROM pg_stat_user_indexes WHERE {indexes}");
    number(database, &read)
}

fn number(database: &TestDatabase, selected: &str) -> i64 {
    let sql =
        format!("WITH one (number) AS (SELECT {selected}) SELECT number::text AS line FROM one");
    lines(&mut database.admin(), &sql)[0].parse().unwrap()
}

#[tokio::test]
async fn decisions_and_registrations_read_only_their_own_rows() {
    let database = TestDatabase::people_task(MIGRATIONS);
    prepare(&database);
    let app = Fixture::start_on(database, &[]).await;
    let ada = app.user("ada@example.com");
    let decide = async || {
        let task = app.create(&ada, json!({"approver": ada.email})).await;
        let webhook = app.register(&ada, &task, "http://127.0.0.9/").await;
        let _ = app.approve(&ada, &task).await.expect(200);
        let path = format!("/people-task/webhooks/{webhook}");
        let _ = app.get(&ada, &path).await.expect(200);
    };
    let _ = join_all((0..20).map(|_| decide())).await;
    assert!(app.stop().await);
    let read = deliveries_read(&app.database).await;
    assert!((20..TASKS).contains(&read), "{read}");
}

#[tokio::test]
async fn a_worker_reads_only_the_deliveries_that_it_makes() {
    let fixture = WorkerFixture::new();
    let receiver = Receiver::start(|_| CannedResponse::status(200));
    let failing_receiver = Receiver::start_at([127, 0, 0, 2], |_| CannedResponse::status(500));
    prepare(&fixture.database);
    let worker = fixture.worker(&[]).await;
    fixture.decide(&vec![receiver.url("/"); 40]);
    fixture.decide(&vec![failing_receiver.url("/"); 2]);
    eventually("all attempts", async || {
        (receiver.calls().len() == 40 && failing_receiver.calls().len() == 6).then_some(())
    })
    .await;
    assert!(worker.stop(STOP_TIMEOUT).await);
    let read = deliveries_read(&fixture.database).await;
    assert!((42..TASKS).contains(&read), "{read}");
}

/// Makes the statistics of `task_mails` those of an empty table.
const FORGET_MAILS: &str = "
SET search_path = people_task;
ALTER TABLE task_mails SET (autovacuum_enabled = false);
UPDATE pg_class SET relpages = 1, reltuples = 0 WHERE oid IN (
    SELECT 'task_mails'::regclass UNION SELECT indexrelid FROM pg_index WHERE indrelid = 'task_mails'::regclass);";

#[tokio::test]
async fn a_claim_of_mails_reads_few_of_a_hundred_thousand_of_one_creator() {
    const MAILS: u32 = 100_000;
    let (app, ada) = start(&UNLIMITED).await;
    app.database.admin().batch_execute(FORGET_MAILS).unwrap();
    flood(&app, &ada, MAILS).await;
    let bob = app.user("bob@example.com");
    forget_reads(&mut app.database.admin());
    for _ in 0..10 {
        ask(&app, &bob, "grace@example.com").await;
        let claimed = requesters(&claim_at_most(&app, 16).await);
        assert_eq!(claimed.len(), 16);
        assert!(claimed.contains(&bob.email), "{claimed:?}");
    }
    assert!(app.stop().await);
    let read = entries_read(&app.database, "relname = 'task_mails'").await;
    // Each of two rounds looks at the 256 oldest.
    assert!((160..20_000).contains(&read), "{read}");
    // Nothing reads the table without an index.
    let scanned = "sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'task_mails'";
    assert_eq!(number(&app.database, scanned), 0);
}
