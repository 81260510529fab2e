//! Rows that are deleted when they are old.

use diesel::connection::SimpleConnection as _;
use people_task_service::MIGRATIONS;
use testkit::{TestDatabase, eventually};

use crate::fixture::Fixture;

/// Two rows of each table: one that was kept for long enough, and one that is still needed.
const ROWS: &str = "SET search_path = people_task;
    INSERT INTO erased_users (pseudonym, incarnation, erased)
    SELECT substring(sha256(n::text::bytea) FOR 12), '', now() - n * interval '1 hour'
    FROM unnest(ARRAY[365 * 24 + 23, 365 * 24 + 25]) AS n;
    INSERT INTO webhook_tests (id, webhook_id, requested_by, requested, request_id, traceparent)
    SELECT substring(sha256(n::text::bytea) FOR 12), substring(sha256('w') FOR 12), substring(sha256('u') FOR 12),
        now() - n * interval '1 minute', 'r', 't' FROM unnest(ARRAY[50, 70]) AS n;
    INSERT INTO task_mails (id, task_id, kind, recipient, due_at, next_attempt)
    SELECT substring(sha256(n::text::bytea) FOR 12), substring(sha256('t') FOR 12), 'asked', sha256('r'), at, at
    FROM unnest(ARRAY[47, 49]) AS n, LATERAL (SELECT now() - n * interval '1 hour' AS at) AS due;
    INSERT INTO mail_counts (hour, counted, mails)
    SELECT now() - n * interval '1 minute', sha256('r'), 1 FROM unnest(ARRAY[50, 70]) AS n";

#[tokio::test]
async fn old_rows_are_deleted() {
    let database = TestDatabase::people_task(MIGRATIONS);
    database.admin().batch_execute(ROWS).unwrap();
    let app = Fixture::start_on(database, &[]).await;
    let needed = [
        "erased_users WHERE erased > now() - interval '366 days'",
        "webhook_tests WHERE requested > now() - interval '1 hour'",
        "task_mails WHERE next_attempt > now() - interval '48 hours'",
        "mail_counts WHERE hour > now() - interval '1 hour'",
    ];
    for needed in needed {
        let (table, _) = needed.split_once(' ').unwrap();
        eventually(table, async || (app.count(table) == 1).then_some(())).await;
        assert_eq!(app.count(needed), 1, "{table}");
    }
}
