//! What the errors of a server are called, whatever its language. The messages of these tests' server are German.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use database::{Connection, Database, DatabaseSettings, Error, PoolOptions, StatementLimits};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::Text;
use diesel::{PgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use testkit::{TestDatabase, eventually};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");

const LIMITS: StatementLimits = StatementLimits {
    statement: Some(Duration::from_millis(1_500)),
    lock: Duration::from_millis(1_500),
};

fn german_database() -> TestDatabase {
    let test = TestDatabase::users(MIGRATIONS);
    test.translate_messages();
    test
}

fn connect(test: &TestDatabase, limits: StatementLimits) -> Database {
    let settings = DatabaseSettings {
        url: test.users_url(),
        owner_url: None,
        pool_size: 2,
        timeout: Duration::from_millis(300),
    };
    let on_connect = "";
    Database::connect_with(&settings, PoolOptions { limits, on_connect })
}

fn run(sql: &'static str) -> impl FnOnce(&mut Connection) -> Result<(), Error> + Send + 'static {
    move |connection| {
        diesel::sql_query(sql).execute(connection)?;
        Ok(())
    }
}

#[tokio::test]
async fn other_errors_are_failed_statements_with_a_translated_message() {
    let test = german_database();
    let failed = connect(&test, LIMITS).run(run("SELECT 1 / 0")).await;
    let Err(Error::Statement(cause)) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(cause.to_string(), "Division durch Null");
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_contended() {
    let test = german_database();
    let database = connect(
        &test,
        StatementLimits {
            statement: Some(Duration::from_millis(200)),
            ..LIMITS
        },
    );
    let ended = database.run(run("SELECT pg_sleep(60)")).await;
    assert!(matches!(ended, Err(Error::Contended(_))), "{ended:?}");
    database.run(run("SELECT 1")).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_waits_too_long_for_a_lock_is_contended() {
    let test = german_database();
    let database = connect(
        &test,
        StatementLimits {
            lock: Duration::from_millis(200),
            ..LIMITS
        },
    );
    let mut holder = test.admin();
    diesel::sql_query("SELECT pg_advisory_lock(1)")
        .execute(&mut holder)
        .unwrap();
    let ended = database.run(run("SELECT pg_advisory_lock(1)")).await;
    assert!(matches!(ended, Err(Error::Contended(_))), "{ended:?}");
}

#[tokio::test]
async fn one_of_two_deadlocked_transactions_is_contended() {
    let test = german_database();
    // The limits are far away, so the deadlock is not taken for a timeout.
    let database = connect(&test, StatementLimits::WORKER);
    let both = Arc::new(Barrier::new(2));
    let crossing = [(1, 2), (2, 1)].map(|(first, second)| {
        let (database, both) = (database.clone(), Arc::clone(&both));
        let lock = |connection: &mut PgConnection, key: i32| {
            diesel::sql_query(format!("SELECT pg_advisory_xact_lock({key})")).execute(connection)
        };
        let work = move |connection: &mut PgConnection| {
            lock(connection, first)?;
            both.wait();
            lock(connection, second)?;
            Ok::<_, Error>(())
        };
        tokio::spawn(async move { database.transaction(work).await })
    });
    let ended = futures_util::future::join_all(crossing).await;
    let failed: Vec<Error> = ended
        .into_iter()
        .filter_map(|ended| ended.unwrap().err())
        .collect();
    assert!(
        matches!(failed.as_slice(), [Error::Contended(_)]),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_connection_that_an_administrator_ends_is_unavailable() {
    let test = german_database();
    let database = connect(&test, StatementLimits::WORKER);
    let sleeping = {
        let database = database.clone();
        tokio::spawn(async move { database.run(run("SELECT pg_sleep(60)")).await })
    };
    eventually("the statement to be ended", || async {
        terminate(&mut test.admin(), "SELECT pg_sleep(60)").then_some(())
    })
    .await;
    let ended = sleeping.await.unwrap();
    assert!(matches!(ended, Err(Error::Unavailable(_))), "{ended:?}");
    database.run(run("SELECT 1")).await.unwrap();
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_unavailable() {
    let test = german_database();
    test.limit_connections(0);
    let refused = connect(&test, LIMITS).run(run("SELECT 1")).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_is_no_longer_the_primary_is_unavailable() {
    let test = german_database();
    let write = |connection: &mut PgConnection| {
        connection.batch_execute("SET default_transaction_read_only = on")?;
        run("INSERT INTO notes VALUES (1, 'x')")(connection)
    };
    let database = connect(&test, LIMITS);
    let refused = database.run(write).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    // The connection leads to a standby, and others may lead to the new primary.
    let write = run("INSERT INTO notes VALUES (1, 'x')");
    database.run(write).await.unwrap();
}

/// Ends the connection that runs a statement, if there is one.
fn terminate(admin: &mut PgConnection, statement: &str) -> bool {
    let ended = diesel::sql_query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1 AND datname = current_database()",
    )
    .bind::<Text, _>(statement)
    .execute(admin);
    ended.unwrap() > 0
}
