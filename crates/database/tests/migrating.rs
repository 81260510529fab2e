//! How schemas are migrated beside running processes, and how processes that may not migrate wait for it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use app_config::{Reader, Settings as _};
use database::{Database, DatabaseSettings, Error, migrate, prepare_schema};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use telemetry::LogSettings;
use testkit::{TestConnection, TestDatabase, eventually, lines};
use tokio::task::JoinHandle;
use values::Secret;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");
const LATER_MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/later_migrations");

/// The settings of a process that holds only the role of the service.
fn settings(test: &TestDatabase) -> DatabaseSettings {
    DatabaseSettings {
        url: test.users_url(),
        owner_url: None,
        pool_size: 1,
        timeout: Duration::from_secs(30),
    }
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

fn count(sql: &'static str) -> impl FnOnce(&mut PgConnection) -> Result<i64, Error> + Send {
    move |connection| {
        let count: Count = diesel::sql_query(sql).get_result(connection)?;
        Ok(count.count)
    }
}

#[tokio::test]
async fn a_migration_that_waits_for_a_lock_lets_other_statements_pass_and_succeeds_later() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test));
    let mut reader = test.admin();
    reader
        .batch_execute("BEGIN; SELECT count(*) FROM users.notes")
        .unwrap();
    let owner_url = test.users_owner_url();
    let migrating =
        tokio::spawn(async move { migrate(&owner_url, "users", LATER_MIGRATIONS).await });
    eventually("the migration to wait for the reader", || async {
        let waiting = "SELECT count(*) AS count FROM pg_locks
            WHERE NOT granted AND relation = 'users.notes'::regclass";
        let waiting = count(waiting)(&mut test.admin()).unwrap();
        (waiting > 0).then_some(())
    })
    .await;
    // This statement queues up behind the migration until that gives up.
    let notes = database.run(count("SELECT count(*) AS count FROM notes"));
    assert_eq!(notes.await.unwrap(), 0);
    reader.batch_execute("COMMIT").unwrap();
    migrating.await.unwrap().unwrap();
    let authors = count("SELECT count(author) AS count FROM notes");
    assert_eq!(database.run(authors).await.unwrap(), 0);
}

#[tokio::test]
async fn concurrent_replicas_migrate_once() {
    let test = TestDatabase::empty();
    let owner_url = test.users_owner_url();
    let migrations = (0..4).map(|_| migrate(&owner_url, "users", MIGRATIONS));
    for migrated in futures_util::future::join_all(migrations).await {
        migrated.unwrap();
    }
    let notes = count("SELECT count(*) AS count FROM notes");
    let database = Database::connect(&settings(&test));
    assert_eq!(database.run(notes).await.unwrap(), 0);
}

/// A connection that has the lock for migrations.
fn lock_holder(test: &TestDatabase) -> TestConnection {
    let mut holder = test.admin();
    holder
        .batch_execute("SELECT pg_advisory_lock(x'636f756e74657273'::bigint)")
        .unwrap();
    holder
}

#[tokio::test]
async fn a_process_whose_connection_is_lost_before_it_migrates_connects_again() {
    let test = TestDatabase::empty();
    let mut other = lock_holder(&test);
    let owner_url = test.users_owner_url();
    let migrating = tokio::spawn(async move { migrate(&owner_url, "users", MIGRATIONS).await });
    eventually("the process to wait for the lock", || async {
        let end = "SELECT count(pg_terminate_backend(pid)) AS count FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'";
        let ended = count(end)(&mut test.admin()).unwrap();
        (ended > 0).then_some(())
    })
    .await;
    other
        .batch_execute("SELECT pg_advisory_unlock_all()")
        .unwrap();
    migrating.await.unwrap().unwrap();
}

const OWNER_URL: &str = "COUNTERSIGN_TEST_OWNER_URL";

/// Runs the test of this name again, in a process that only migrates and logs.
fn start_migrating(test: &str, owner_url: &Secret) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([test, "--exact"])
        .env(OWNER_URL, owner_url.expose())
        .env("LOG", "info")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Migrates and logs, if this is such a process.
async fn is_migrating() -> bool {
    let Ok(url) = env::var(OWNER_URL) else {
        return false;
    };
    let mut reader = Reader::from_process().unwrap();
    let log = LogSettings::read(&mut reader).unwrap();
    let _log = telemetry::init("migrate", &log, None).unwrap();
    // Its log is the result.
    let _ = migrate(&Secret::new(url), "users", MIGRATIONS).await;
    true
}

fn log_of(process: Child) -> String {
    let output = process.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_process_that_waits_for_the_migrations_of_another_one_says_so() {
    if is_migrating().await {
        return;
    }
    let test = TestDatabase::empty();
    let other = lock_holder(&test);
    let name = "a_process_that_waits_for_the_migrations_of_another_one_says_so";
    let process = start_migrating(name, &test.users_owner_url());
    eventually("the process to be refused the lock", async || {
        let asked =
            "SELECT pid::text AS line FROM pg_stat_activity WHERE datname = current_database()
            AND state = 'idle' AND query LIKE 'SELECT pg_try_advisory_lock%'";
        lines(&mut test.admin(), asked).pop()
    })
    .await;
    drop(other);
    let log = log_of(process);
    let expected = "waiting for the migrations of another process";
    assert!(log.contains(expected), "{log}");
}

#[tokio::test]
async fn a_role_with_the_wrong_search_path_is_refused_with_a_hint() {
    let test = TestDatabase::users(MIGRATIONS);
    let wrong = migrate(&test.users_owner_url(), "people_task", MIGRATIONS).await;
    let message = wrong.unwrap_err().to_string();
    assert!(message.contains("bootstrap.sql"), "{message}");
}

/// A database of its own encoding or locale, which is dropped at the end.
struct Other(TestDatabase, String);

impl Other {
    fn create(options: &str) -> Self {
        let test = TestDatabase::empty();
        let name = format!("{}_other", name_of(&test));
        let create = format!("CREATE DATABASE {name} {options} TEMPLATE template0");
        test.admin().batch_execute(&create).unwrap();
        Self(test, name)
    }

    fn owner_url(&self) -> Secret {
        let url = self.0.users_owner_url();
        Secret::new(url.expose().replace(&name_of(&self.0), &self.1))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.1);
        let _ = self.0.admin().batch_execute(&drop);
    }
}

fn name_of(test: &TestDatabase) -> String {
    let url = test.users_owner_url();
    let (_, name) = url.expose().rsplit_once('/').unwrap();
    name.split('?').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_database_of_another_encoding_is_refused() {
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let options = format!("ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'");
        let encoded = Other::create(&options);
        let refused = migrate(&encoded.owner_url(), "users", MIGRATIONS).await;
        let message = refused.unwrap_err().to_string();
        let expected = format!("the database has the encoding {encoding} and must have UTF8");
        assert!(message.starts_with(&expected), "{message}");
    }
}

/// Postgres 14 has only the locales of its system.
fn has_locales_of_icu() -> bool {
    let version = "SELECT (current_setting('server_version_num')::int >= 150000)::text AS line";
    lines(&mut TestDatabase::empty().admin(), version) == ["true"]
}

#[tokio::test]
async fn a_database_in_which_capitals_are_unusual_is_refused() {
    if !has_locales_of_icu() {
        return;
    }
    let turkish = Other::create("LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C.UTF-8'");
    let refused = migrate(&turkish.owner_url(), "users", MIGRATIONS).await;
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("another letter than i of I"), "{message}");
}

#[tokio::test]
async fn a_process_warns_when_texts_are_ordered_otherwise_than_in_the_indexes() {
    if is_migrating().await || !has_locales_of_icu() {
        return;
    }
    let moved = Other::create("LOCALE_PROVIDER icu ICU_LOCALE 'und' LOCALE 'C.UTF-8'");
    let name = "a_process_warns_when_texts_are_ordered_otherwise_than_in_the_indexes";
    let warning = "run REINDEX DATABASE";
    let log = log_of(start_migrating(name, &moved.owner_url()));
    assert!(!log.contains(warning), "{log}");
    let update = format!(
        "UPDATE pg_database SET datcollversion = '0' WHERE datname = '{}'",
        moved.1
    );
    moved.0.admin().batch_execute(&update).unwrap();
    let log = log_of(start_migrating(name, &moved.owner_url()));
    assert!(log.contains(warning), "{log}");
}

#[tokio::test]
async fn a_process_waits_for_a_database_that_only_reads() {
    let test = TestDatabase::empty();
    let alter = |change: &str| {
        let mut admin = test.admin();
        let alter = format!("ALTER DATABASE {} {change}", name_of(&test));
        admin
            .batch_execute("SET default_transaction_read_only = off")
            .unwrap();
        admin.batch_execute(&alter).unwrap();
    };
    alter("SET default_transaction_read_only = on");
    let owner_url = test.users_owner_url();
    let mut migrating = tokio::spawn(async move { migrate(&owner_url, "users", MIGRATIONS).await });
    let soon = tokio::time::timeout(Duration::from_secs(1), &mut migrating).await;
    assert!(soon.is_err(), "{soon:?}");
    alter("RESET default_transaction_read_only");
    migrating.await.unwrap().unwrap();
}

type Preparation = JoinHandle<Result<(), database::MigrationError>>;

/// Starts to prepare the schema as the role of the service, and waits until that has looked for migrations twice. Each time,
/// its last statement has this text.
async fn preparing(
    test: &TestDatabase,
    migrations: EmbeddedMigrations,
    statement: &str,
) -> Preparation {
    let settings = settings(test);
    let preparing =
        tokio::spawn(async move { prepare_schema(&settings, "users", migrations).await });
    let looked = format!(
        "SELECT query_start::text AS line FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'users_service' AND state = 'idle'
            AND query LIKE '%{statement}%__diesel_schema_migrations%'"
    );
    let mut times = HashSet::new();
    eventually("the process to look for migrations twice", async || {
        times.extend(lines(&mut test.admin(), &looked));
        (times.len() > 1).then_some(())
    })
    .await;
    preparing
}

#[tokio::test]
async fn a_process_without_the_owners_url_waits_for_the_first_migrations() {
    let test = TestDatabase::empty();
    let preparing = preparing(&test, MIGRATIONS, "SELECT to_regclass").await;
    let owner_url = test.users_owner_url();
    migrate(&owner_url, "users", MIGRATIONS).await.unwrap();
    preparing.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_process_without_the_owners_url_waits_for_later_migrations() {
    let test = TestDatabase::users(MIGRATIONS);
    let preparing = preparing(&test, LATER_MIGRATIONS, "SELECT version").await;
    let owner_url = test.users_owner_url();
    migrate(&owner_url, "users", LATER_MIGRATIONS)
        .await
        .unwrap();
    preparing.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_schema_without_the_first_migration_but_with_earlier_ones_is_refused_and_left_as_it_is() {
    let test = TestDatabase::users(MIGRATIONS);
    let earlier = "UPDATE users.__diesel_schema_migrations SET version = '00000000000000'";
    test.admin().batch_execute(earlier).unwrap();
    let owner_url = test.users_owner_url();
    for refused in [
        migrate(&owner_url, "users", LATER_MIGRATIONS).await,
        prepare_schema(&settings(&test), "users", LATER_MIGRATIONS).await,
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("deploy/UPGRADING.md"), "{error}");
    }
    let applied = count("SELECT count(*) AS count FROM users.__diesel_schema_migrations");
    assert_eq!(applied(&mut test.admin()).unwrap(), 1);
}

#[tokio::test]
async fn a_process_runs_on_a_schema_of_a_later_version() {
    let test = TestDatabase::users(MIGRATIONS);
    let owner_url = test.users_owner_url();
    migrate(&owner_url, "users", LATER_MIGRATIONS)
        .await
        .unwrap();
    let prepared = prepare_schema(&settings(&test), "users", MIGRATIONS).await;
    prepared.unwrap();
}

#[tokio::test]
async fn a_process_with_the_owners_url_migrates() {
    let test = TestDatabase::empty();
    let settings = DatabaseSettings {
        owner_url: Some(test.users_owner_url()),
        ..settings(&test)
    };
    let prepared = prepare_schema(&settings, "users", MIGRATIONS).await;
    prepared.unwrap();
    let notes = count("SELECT count(*) AS count FROM notes");
    let database = Database::connect(&settings);
    assert_eq!(database.run(notes).await.unwrap(), 0);
}
