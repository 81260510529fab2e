//! What the errors of a server are called, whatever its language. The messages of these tests' server are German.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use database::{Connection, Database, DatabaseSettings, Error, StatementLimits};
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::sql_types::{Integer, Text};
use diesel::{IntoSql as _, PgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use testkit::{TestDatabase, eventually};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");

const LIMITS: StatementLimits = StatementLimits {
    statement: Some(Duration::from_secs(30)),
    lock: Duration::from_secs(30),
};

fn german_database() -> TestDatabase {
    let test = TestDatabase::users(MIGRATIONS);
    // The server's messages to new connections are German then.
    test.alter("SET lc_messages = 'C.UTF-8'");
    test
}

fn settings(test: &TestDatabase) -> DatabaseSettings {
    DatabaseSettings {
        url: test.users_url(),
        owner_url: None,
        pool_size: 2,
        timeout: Duration::from_secs(30),
    }
}

fn connect(test: &TestDatabase, limits: StatementLimits) -> Database {
    let on_connect = "";
    Database::connect_with(&settings(test), limits, on_connect)
}

fn run(sql: &'static str) -> impl FnOnce(&mut Connection) -> Result<(), Error> + Send + 'static {
    move |connection| {
        diesel::sql_query(sql).execute(connection)?;
        Ok(())
    }
}

fn run_text(sql: String) -> impl FnOnce(&mut Connection) -> Result<(), Error> + Send + 'static {
    move |connection| Ok(connection.batch_execute(&sql)?)
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
            statement: Some(Duration::from_secs(1)),
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
    let ended = sleeping.await.unwrap().unwrap_err();
    assert!(ended.is_outage() && !ended.wrote_nothing(), "{ended:?}");
    database.run(run("SELECT 1")).await.unwrap();
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_unavailable() {
    let test = german_database();
    test.alter("CONNECTION LIMIT 0");
    let settings = DatabaseSettings {
        timeout: Duration::from_millis(300),
        ..settings(&test)
    };
    let database = Database::connect(&settings);
    let refused = database.run(run("SELECT 1")).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(refused.wrote_nothing());
}

#[tokio::test]
async fn a_server_that_is_no_longer_the_primary_is_unavailable() {
    let test = german_database();
    let write = |connection: &mut PgConnection| {
        connection.batch_execute("SET default_transaction_read_only = on")?;
        run("INSERT INTO notes VALUES (1, 'x')")(connection)
    };
    let database = connect(&test, LIMITS);
    let refused = database.run(write).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert!(refused.wrote_nothing());
    // The connection leads to a standby, and others may lead to the new primary.
    let write = run("INSERT INTO notes VALUES (1, 'x')");
    database.run(write).await.unwrap();
}

#[tokio::test]
async fn a_database_that_only_reads_fails_its_check_until_it_accepts_changes() {
    let test = german_database();
    let set_read_only = |value: &str| {
        let set = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}', current_database()); END $$"
        );
        let mut admin = test.admin();
        let writable = "SET default_transaction_read_only = off";
        admin.batch_execute(writable).unwrap();
        admin.batch_execute(&set).unwrap();
    };
    set_read_only("on");
    let database = connect(&test, LIMITS);
    // Both connections of the pool are opened.
    let both = [(); 2].map(|()| database.run(run("SELECT pg_sleep(0.2)")));
    for done in futures_util::future::join_all(both).await {
        done.unwrap();
    }
    let reason = database.check().await.unwrap_err();
    assert!(reason.starts_with("the database is read-only"), "{reason}");
    set_read_only("off");
    assert_eq!(database.check().await, Ok(()));
}

/// Lets every change of the notes fail as if the disk were full.
fn fill_disk(test: &TestDatabase, message: &str) {
    let trigger = format!(
        "CREATE FUNCTION users.disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = '{message}', HINT = 'Prüfen Sie den freien Festplattenplatz.';
        END $$;
        CREATE TRIGGER disk_is_full BEFORE INSERT ON users.notes EXECUTE FUNCTION users.disk_is_full();"
    );
    test.admin().batch_execute(&trigger).unwrap();
}

#[tokio::test]
async fn a_full_disk_makes_the_database_unavailable_until_there_is_space() {
    let insert = || run("INSERT INTO notes VALUES (1, 'x')");
    for message in [
        "konnte Datei »base/16384/2619« nicht erweitern: Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
        "could not extend file \"pg_tblspc/24577/PG_15_202209061/16384/24591\": No space left on device",
    ] {
        let test = german_database();
        let database = connect(&test, LIMITS);
        fill_disk(&test, message);
        let refused = database.run(insert()).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        assert_eq!(
            database.check().await,
            Err("the disk of the database is full")
        );
        let space = "DROP TRIGGER disk_is_full ON users.notes";
        test.admin().batch_execute(space).unwrap();
        database.run(insert()).await.unwrap();
        // Without another failure.
        eventually("the check to pass", || async {
            database.check().await.ok()
        })
        .await;
    }
}

#[tokio::test]
async fn statements_that_lack_another_resource_are_unavailable_and_the_database_is_not() {
    let test = german_database();
    let database = connect(&test, LIMITS);
    for message in [
        "Größe der temporären Datei überschreitet temp_file_limit (1000kB)",
        "out of memory",
    ] {
        let raise = format!("DO $$ BEGIN RAISE EXCEPTION '{message}'; END $$");
        let refused = database.run(run_text(raise)).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        assert_eq!(database.check().await, Ok(()));
    }
    let message = "der Wert base/x ist falsch";
    let raise = format!("DO $$ BEGIN RAISE EXCEPTION '{message}'; END $$");
    let failed = database.run(run_text(raise)).await;
    assert!(matches!(failed, Err(Error::Statement(_))), "{failed:?}");
}

#[tokio::test]
async fn transactions_see_what_others_commit_whatever_isolation_the_database_has() {
    let test = german_database();
    test.alter("SET default_transaction_isolation = 'repeatable read'");
    let show = |connection: &mut PgConnection| {
        let isolation: String = sql::<Text>("SHOW transaction_isolation").get_result(connection)?;
        Ok::<_, Error>(isolation)
    };
    let shown = connect(&test, LIMITS).transaction(show).await;
    assert_eq!(shown.unwrap(), "read committed");
}

#[tokio::test]
async fn a_pooler_in_transaction_mode_is_named() {
    let test = german_database();
    let database = connect(&test, LIMITS);
    let deallocate = |connection: &mut PgConnection| {
        let read = || diesel::select(1.into_sql::<Integer>());
        read().get_result::<i32>(connection)?;
        connection.batch_execute("DEALLOCATE ALL")?;
        read().get_result::<i32>(connection)?;
        Ok::<_, Error>(())
    };
    let failed = database.run(deallocate).await;
    assert!(matches!(failed, Err(Error::Pooled(_))), "{failed:?}");
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
