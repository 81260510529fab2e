//! Holds the code's view of the tables against the migrated database.

use testkit::{
    TestDatabase, assert_allowed_texts, assert_migrations_can_be_undone, assert_schema_matches,
};
use values::Names as _;

use crate::MIGRATIONS;
use crate::status::{DeliveryStatus, TaskStatus};

const SCHEMA: &str = "people_task";

#[test]
fn schema_rs_has_the_tables_and_columns_of_the_database() {
    assert_schema_matches(
        &TestDatabase::people_task(MIGRATIONS),
        SCHEMA,
        include_str!("schema.rs"),
        &[
            ("audit_log", "its statements are in the crate audit-log"),
            (
                "tasks.has_random_secrets",
                "0.2.0 reads it; the next release drops it",
            ),
            (
                "delivery_workers.sends_due",
                "replaced by `protocol`; the next release drops it",
            ),
            ("changed_users", "its statements are raw SQL"),
            ("delivery_shards", "its statements are raw SQL"),
            ("delivery_workers", "its statements are raw SQL"),
            ("due_dates", "its statements are raw SQL"),
            ("erased_users", "its statements are raw SQL"),
            ("finished_deliveries", "its statements are raw SQL"),
            ("idempotency_keys", "its statements are raw SQL"),
            ("mail_counts", "its statements are raw SQL"),
            ("mail_opt_outs", "its statements are raw SQL"),
            ("mailed_tasks", "its statements are raw SQL"),
            ("paused_hosts", "its statements are raw SQL"),
            ("stored_bytes", "its statements are raw SQL"),
            ("task_mails", "its statements are raw SQL"),
            ("task_states", "its statements are raw SQL"),
            ("webhook_tests", "its statements are raw SQL"),
        ],
    );
}

#[test]
fn the_constraints_of_status_columns_allow_the_variants_of_the_enums() {
    let database = TestDatabase::people_task(MIGRATIONS);
    let tasks = TaskStatus::ALL.iter().map(|status| status.name());
    assert_allowed_texts(&database, SCHEMA, "task_states.status", tasks);
    let all = DeliveryStatus::ALL.iter().map(|status| status.name());
    assert_allowed_texts(&database, SCHEMA, "webhooks.status", all.clone());
    let finished = all.filter(|status| *status != "pending");
    assert_allowed_texts(&database, SCHEMA, "finished_deliveries.status", finished);
}

#[test]
fn migrations_can_be_undone_one_by_one() {
    let database = TestDatabase::empty();
    assert_migrations_can_be_undone(&database.people_task_owner_url(), MIGRATIONS);
}
