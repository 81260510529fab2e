//! The guarantees of the bridge when the database is slow, busy or unavailable.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use database::{BatchLimits, Batches, Database, DatabaseSettings, Error, ServicePools, prepared};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::Text;
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use testkit::{TestDatabase, eventually};
use tokio::task::JoinHandle;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");

fn settings(test: &TestDatabase, pool_size: u32) -> DatabaseSettings {
    DatabaseSettings {
        url: test.users_url(),
        owner_url: Some(test.users_owner_url()),
        pool_size,
        timeout: Duration::from_secs(30),
    }
}

/// For tests that wait until the timeout has passed.
fn impatient_settings(test: &TestDatabase, pool_size: u32) -> DatabaseSettings {
    DatabaseSettings {
        timeout: Duration::from_secs(3),
        ..settings(test, pool_size)
    }
}

fn insert(id: i64) -> impl FnOnce(&mut PgConnection) -> Result<(), Error> + Send + 'static {
    move |connection| {
        let sql = format!("INSERT INTO notes VALUES ({id}, 'x')");
        diesel::sql_query(sql).execute(connection)?;
        Ok(())
    }
}

#[tokio::test]
async fn an_error_rolls_back_the_transaction() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 2));
    let failed: Result<(), Error> = database
        .transaction(|connection| {
            insert(1)(connection)?;
            insert(1)(connection)
        })
        .await;
    assert!(matches!(failed, Err(Error::Statement(_))));
    database.run(insert(1)).await.unwrap();
}

#[tokio::test]
async fn a_connection_whose_prepared_statements_no_longer_run_is_replaced() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 1));
    let read = |connection: &mut PgConnection| {
        prepared("SELECT * FROM notes").execute(connection)?;
        Ok::<_, Error>(())
    };
    database.run(read).await.unwrap();
    let change = "ALTER TABLE users.notes ALTER COLUMN id TYPE text";
    test.admin().batch_execute(change).unwrap();
    // The only connection has prepared the statement for the former type.
    let failed = database.run(read).await;
    assert!(matches!(failed, Err(Error::Statement(_))), "{failed:?}");
    database.run(read).await.unwrap();
}

#[tokio::test]
async fn a_nested_transaction_that_fails_rolls_back_alone() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 1));
    let work = |connection: &mut PgConnection| {
        insert(1)(connection)?;
        let nested: Result<(), Error> = database::transaction(connection, |connection| {
            insert(2)(connection)?;
            insert(1)(connection)
        });
        assert_eq!(
            nested.unwrap_err().violated_constraint(),
            Some("notes_pkey")
        );
        Ok::<_, Error>(())
    };
    database.transaction(work).await.unwrap();
    assert!(database.run(insert(1)).await.is_err());
    database.run(insert(2)).await.unwrap();
}

/// The end of a closure.
type Ending = JoinHandle<Result<(), Error>>;

/// Closures that hold the connections of a pool.
struct Busy {
    /// Each closure ends when its sender is dropped, also that of a test that fails.
    closures: Vec<(mpsc::Sender<()>, Ending)>,
}

impl Busy {
    async fn start(database: &Database, connections: usize) -> Self {
        let running = Arc::new(AtomicUsize::new(0));
        let closure = |_| {
            let (database, running) = (database.clone(), Arc::clone(&running));
            let (release, released) = mpsc::channel::<()>();
            let work = move |_: &mut PgConnection| {
                running.fetch_add(1, Ordering::SeqCst);
                let _ended = released.recv();
                Ok::<_, Error>(())
            };
            let closure = tokio::spawn(async move { database.run(work).await });
            (release, closure)
        };
        let closures = (0..connections).map(closure).collect();
        eventually("the connections to be in use", || async {
            (running.load(Ordering::SeqCst) == connections).then_some(())
        })
        .await;
        Self { closures }
    }

    async fn end(self) {
        for (release, closure) in self.closures {
            drop(release);
            closure.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn closures_beyond_the_number_of_connections_are_refused_after_the_timeout() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&impatient_settings(&test, 2));
    let busy = Busy::start(&database, 2).await;
    assert!(matches!(database.run(insert(1)).await, Err(Error::Busy)));
    busy.end().await;
    database.run(insert(1)).await.unwrap();
}

#[tokio::test]
async fn each_wait_for_a_connection_is_measured_once_also_if_it_ends_without_one() {
    let metrics = telemetry::metrics_recorder();
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&impatient_settings(&test, 1));
    let batches: Batches<(), (), Error> =
        Batches::new(database.clone(), BatchLimits::SERVICE, |_, requests, _| {
            Ok(requests.iter().map(|()| Some(Ok(()))).collect())
        });
    let busy = Busy::start(&database, 1).await;
    let refused = tokio::join!(database.run(insert(1)), batches.run(()));
    assert!(matches!(refused, (Err(Error::Busy), Err(Error::Busy))));
    let measured = metrics.render();
    assert!(
        measured.contains("database_wait_seconds_count 3\n"),
        "{measured}"
    );
    busy.end().await;
    batches.run(()).await.unwrap();
    let measured = metrics.render();
    assert!(
        measured.contains("database_wait_seconds_count 4\n"),
        "{measured}"
    );
}

#[tokio::test]
async fn a_quarter_of_the_connections_of_a_service_is_for_lists() {
    let test = TestDatabase::users(MIGRATIONS);
    let settings = impatient_settings(&test, 8);
    let ServicePools { database, lists } = ServicePools::connect(&settings, "");
    let slow_lists = Busy::start(&lists, 2).await;
    let others = Busy::start(&database, 6).await;
    let refused = tokio::join!(lists.run(insert(1)), database.run(insert(1)));
    assert!(matches!(refused, (Err(Error::Busy), Err(Error::Busy))));
    slow_lists.end().await;
    lists.run(insert(1)).await.unwrap();
    others.end().await;
}

#[tokio::test]
async fn a_panic_is_an_error_and_returns_the_connection_to_the_pool() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 1));
    let panicked: Result<(), Error> = database.run(|_| panic!("a bug")).await;
    assert!(matches!(panicked, Err(Error::Panicked)));
    database.run(insert(1)).await.unwrap();
}

#[tokio::test]
async fn an_unreachable_database_is_unavailable_until_it_is_reachable_again() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&impatient_settings(&test, 2));
    database.run(insert(1)).await.unwrap();
    test.set_reachable(false);
    // The connection is lost first.
    let failed = database.run(insert(2)).await.unwrap_err();
    assert!(failed.is_outage(), "{failed:?}");
    assert_eq!(
        database.check().await,
        Err("the database cannot be reached")
    );
    test.set_reachable(true);
    eventually("the database to be usable again", || async {
        database.check().await.ok()
    })
    .await;
    database.run(insert(2)).await.unwrap();
}

fn lock(key: i64) -> impl FnOnce(&mut PgConnection) -> Result<(), Error> + Send + 'static {
    move |connection| {
        let sql = format!("SELECT pg_advisory_xact_lock({key})");
        diesel::sql_query(sql).execute(connection)?;
        Ok(())
    }
}

#[tokio::test]
async fn a_hanging_transaction_is_ended_and_releases_its_locks() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 2));
    let (holds, is_held) = tokio::sync::oneshot::channel();
    let (resume, hang) = mpsc::channel::<()>();
    let hanging = {
        let database = database.clone();
        tokio::spawn(async move {
            let work = move |connection: &mut PgConnection| {
                lock(1)(connection)?;
                holds.send(()).unwrap();
                hang.recv().unwrap();
                insert(1)(connection)
            };
            database.transaction(work).await
        })
    };
    is_held.await.unwrap();
    database.transaction(lock(1)).await.unwrap();
    resume.send(()).unwrap();
    let ended = hanging.await.unwrap().unwrap_err();
    assert!(ended.is_outage() && !ended.wrote_nothing(), "{ended:?}");
    // Nothing that the hanging transaction wrote was committed.
    database.run(insert(1)).await.unwrap();
}

#[derive(QueryableByName)]
struct LastStatement {
    #[diesel(sql_type = Text)]
    query: String,
}

#[tokio::test]
async fn a_connection_that_responded_to_a_closure_that_failed_is_not_checked() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 1));
    // The first failure is the closure's own, the second one Postgres reports.
    const TWICE: &str = "INSERT INTO notes VALUES (1, 'x'), (1, 'x')";
    let own_failure = |connection: &mut PgConnection| {
        diesel::sql_query("SELECT 'found'").execute(connection)?;
        Err::<(), _>(Error::Busy)
    };
    let reported_failure = |connection: &mut PgConnection| {
        diesel::sql_query(TWICE).execute(connection)?;
        Ok::<_, Error>(())
    };
    let last_statement = || {
        let sql = "SELECT query FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let last: LastStatement = diesel::sql_query(sql)
            .get_result(&mut test.admin())
            .unwrap();
        last.query
    };
    // A connection that was idle for a second is checked, so a slow machine may need several attempts.
    eventually("the connection to be used without a check", || async {
        database.run(own_failure).await.unwrap_err();
        database.run(|_| Ok::<_, Error>(())).await.unwrap();
        (last_statement() == "SELECT 'found'").then_some(())
    })
    .await;
    eventually("the connection to be used without a check", || async {
        database.run(reported_failure).await.unwrap_err();
        database.run(|_| Ok::<_, Error>(())).await.unwrap();
        (last_statement() == TWICE).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_service_role_cannot_see_the_other_schema() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&DatabaseSettings {
        url: test.people_task_url(),
        ..settings(&test, 1)
    });
    let read = |connection: &mut PgConnection| {
        diesel::sql_query("SELECT * FROM users.notes").execute(connection)?;
        Ok::<_, Error>(())
    };
    assert!(matches!(database.run(read).await, Err(Error::Statement(_))));
}
