//! Holds the code's view of the tables against the migrated database.

use testkit::{TestDatabase, assert_schema_matches};

use crate::MIGRATIONS;

#[test]
fn schema_rs_has_the_tables_and_columns_of_the_database() {
    assert_schema_matches(
        &TestDatabase::people_task(MIGRATIONS),
        "people_task",
        include_str!("schema.rs"),
        &[("audit_log", "its statements are in the crate audit-log")],
    );
}
