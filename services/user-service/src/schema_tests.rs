use testkit::{
    TestDatabase, assert_allowed_texts, assert_migrations_can_be_undone, assert_schema_matches,
};
use values::Names;

use crate::MIGRATIONS;
use crate::code_limits::store::LimitScope;
use crate::credentials::CredentialKind;
use crate::deletions::store::DeletionStatus;
use crate::notifications::{Channel, Kind, Notice};

const SCHEMA: &str = "users";

#[test]
fn schema_rs_has_the_tables_and_columns_of_the_database() {
    assert_schema_matches(
        &TestDatabase::users(MIGRATIONS),
        SCHEMA,
        include_str!("schema.rs"),
        &[
            ("audit_log", "its statements are in the crate audit-log"),
            (
                "deletions.epoch_transaction",
                "0.2.0 writes it; the next release drops it",
            ),
            ("deleted_users", "its statements are raw SQL"),
            ("sign_in_names", "its statements are raw SQL"),
            ("user_segments", "its statements are raw SQL"),
        ],
    );
}

fn names<N: Names>() -> Vec<&'static str> {
    N::ALL.iter().map(|value| value.name()).collect()
}

#[test]
fn the_constraints_of_columns_allow_the_values_of_the_enums() {
    let database = TestDatabase::users(MIGRATIONS);
    for (column, values) in [
        (
            "notifications.kind",
            [names::<Kind>(), names::<Notice>()].concat(),
        ),
        ("notifications.channel", names::<Channel>()),
        ("codes.purpose", names::<Kind>()),
        ("code_requests.counted", names::<LimitScope>()),
        ("credentials.kind", names::<CredentialKind>()),
        ("deletions.status", names::<DeletionStatus>()),
    ] {
        assert_allowed_texts(&database, SCHEMA, column, values);
    }
}

#[test]
fn migrations_can_be_undone_one_by_one() {
    let database = TestDatabase::empty();
    assert_migrations_can_be_undone(&database.users_owner_url(), MIGRATIONS);
}
