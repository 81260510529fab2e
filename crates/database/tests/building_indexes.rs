//! How migrations outside of transactions build indexes while rows are written, and what a failed build leaves behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::process::Command;

use database::{MigrationError, migrate};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Text};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use testkit::{TestConnection, TestDatabase, eventually};
use values::Secret;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");
const INDEX_MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/index_migrations");

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

fn count(connection: &mut PgConnection, sql: &str) -> i64 {
    let count: Count = diesel::sql_query(sql).get_result(connection).unwrap();
    count.count
}

/// The indexes of the table, each with `valid` or `invalid`.
fn indexes(test: &TestDatabase) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Index {
        #[diesel(sql_type = Text)]
        index: String,
    }
    let sql = "SELECT relname || CASE WHEN indisvalid THEN ' valid' ELSE ' invalid' END AS index
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'users.notes'::regclass ORDER BY 1";
    let indexes: Vec<Index> = diesel::sql_query(sql).load(&mut test.admin()).unwrap();
    indexes.into_iter().map(|one| one.index).collect()
}

async fn build_index(test: &TestDatabase) -> Result<(), MigrationError> {
    migrate(&test.users_owner_url(), "users", INDEX_MIGRATIONS).await
}

/// A database with two notes of the same text, which the unique index refuses.
fn with_duplicates() -> TestDatabase {
    let test = TestDatabase::users(MIGRATIONS);
    let insert = "INSERT INTO users.notes (id, text) VALUES (1, 'a'), (2, 'a')";
    test.admin().batch_execute(insert).unwrap();
    test
}

/// A connection in whose transaction a note was written.
fn writer(test: &TestDatabase) -> TestConnection {
    let mut writer = test.admin();
    writer
        .batch_execute("BEGIN; INSERT INTO users.notes (id, text) VALUES (1, 'a')")
        .unwrap();
    writer
}

async fn wait_for_builds(test: &TestDatabase, number: i64) {
    eventually("the builds that wait for the writer", || async {
        let waiting = "SELECT count(*) AS count FROM pg_stat_progress_create_index
            WHERE datname = current_database() AND phase LIKE 'waiting for writers%'";
        (count(&mut test.admin(), waiting) == number).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_index_is_built_while_rows_are_written_and_replicas_wait_for_it() {
    let test = TestDatabase::users(MIGRATIONS);
    let mut writer = writer(&test);
    let owner_url = test.users_owner_url();
    let building =
        tokio::spawn(async move { migrate(&owner_url, "users", INDEX_MIGRATIONS).await });
    wait_for_builds(&test, 1).await;
    // The build must not wait for a replica that waits for the build.
    let owner_url = test.users_owner_url();
    let replica = tokio::spawn(async move { migrate(&owner_url, "users", INDEX_MIGRATIONS).await });
    eventually("the replica to wait for the build", || async {
        let waiting = "SELECT count(*) AS count FROM pg_stat_activity
            WHERE datname = current_database() AND usename = 'users_owner'
                AND query LIKE '%advisory_lock%'";
        (count(&mut test.admin(), waiting) > 0).then_some(())
    })
    .await;
    let insert = "INSERT INTO users.notes (id, text) VALUES (2, 'b')";
    test.admin().batch_execute(insert).unwrap();
    assert!(!building.is_finished() && !replica.is_finished());
    writer.batch_execute("COMMIT").unwrap();
    building.await.unwrap().unwrap();
    replica.await.unwrap().unwrap();
    assert_eq!(indexes(&test), ["notes_by_text valid", "notes_pkey valid"]);
}

#[tokio::test]
async fn a_build_ends_on_the_server_when_its_process_is_killed() {
    const OWNER_URL: &str = "COUNTERSIGN_TEST_OWNER_URL";
    if let Ok(url) = env::var(OWNER_URL) {
        // This is the process.
        migrate(&Secret::new(url), "users", INDEX_MIGRATIONS)
            .await
            .unwrap();
        return;
    }
    let test = TestDatabase::users(MIGRATIONS);
    let _writer = writer(&test);
    let name = "a_build_ends_on_the_server_when_its_process_is_killed";
    let mut process = Command::new(env::current_exe().unwrap())
        .args([name, "--exact"])
        .env(OWNER_URL, test.users_owner_url().expose())
        .spawn()
        .unwrap();
    wait_for_builds(&test, 1).await;
    process.kill().unwrap();
    process.wait().unwrap();
    wait_for_builds(&test, 0).await;
}

#[tokio::test]
async fn a_build_that_fails_leaves_no_index_and_succeeds_later() {
    let test = with_duplicates();
    let failed = build_index(&test).await;
    assert!(matches!(failed, Err(MigrationError::Migration(_))));
    assert_eq!(indexes(&test), ["notes_pkey valid"]);
    test.admin()
        .batch_execute("DELETE FROM users.notes WHERE id = 2")
        .unwrap();
    build_index(&test).await.unwrap();
    assert_eq!(indexes(&test), ["notes_by_text valid", "notes_pkey valid"]);
}

#[tokio::test]
async fn an_invalid_index_of_a_process_that_was_killed_is_built_again() {
    let test = with_duplicates();
    // What is left when a process ends during the build.
    let build = "CREATE UNIQUE INDEX CONCURRENTLY notes_by_text ON users.notes (text)";
    assert!(test.admin().batch_execute(build).is_err());
    assert_eq!(
        indexes(&test),
        ["notes_by_text invalid", "notes_pkey valid"]
    );
    test.admin()
        .batch_execute("DELETE FROM users.notes WHERE id = 2")
        .unwrap();
    build_index(&test).await.unwrap();
    assert_eq!(indexes(&test), ["notes_by_text valid", "notes_pkey valid"]);
}

#[tokio::test]
async fn an_index_that_was_built_before_its_migration_was_recorded_stays() {
    let test = TestDatabase::users(MIGRATIONS);
    let build = "CREATE UNIQUE INDEX notes_by_text ON users.notes (text)";
    test.admin().batch_execute(build).unwrap();
    build_index(&test).await.unwrap();
    assert_eq!(indexes(&test), ["notes_by_text valid", "notes_pkey valid"]);
}
