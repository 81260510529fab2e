//! The guarantees of the bridge when the database is slow, busy or unavailable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use database::{Database, DatabaseSettings, Error, migrate};
use diesel::{PgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use testkit::{TestDatabase, eventually};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");

fn settings(test: &TestDatabase, pool_size: u32) -> DatabaseSettings {
    DatabaseSettings {
        url: test.users_url(),
        owner_url: Some(test.users_owner_url()),
        pool_size,
        timeout: Duration::from_millis(300),
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

#[tokio::test]
async fn closures_beyond_the_number_of_connections_are_refused_after_the_timeout() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 2));
    let running = Arc::new(AtomicUsize::new(0));
    let release = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..2)
        .map(|_| {
            let (database, running, release) =
                (database.clone(), Arc::clone(&running), Arc::clone(&release));
            tokio::spawn(async move {
                let work = move |_: &mut PgConnection| {
                    running.fetch_add(1, Ordering::SeqCst);
                    while !release.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    Ok::<_, Error>(())
                };
                database.run(work).await
            })
        })
        .collect();
    eventually("both connections to be in use", || async {
        (running.load(Ordering::SeqCst) == 2).then_some(())
    })
    .await;
    assert!(matches!(database.run(insert(1)).await, Err(Error::Busy)));
    release.store(true, Ordering::SeqCst);
    for task in busy {
        task.await.unwrap().unwrap();
    }
    database.run(insert(1)).await.unwrap();
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
    let database = Database::connect(&settings(&test, 2));
    database.run(insert(1)).await.unwrap();
    test.set_reachable(false);
    assert!(matches!(
        database.run(insert(2)).await,
        Err(Error::Unavailable(_))
    ));
    assert!(!database.is_usable().await);
    test.set_reachable(true);
    eventually("the database to be usable again", || async {
        database.is_usable().await.then_some(())
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
    let (resume, hang) = std::sync::mpsc::channel::<()>();
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
    assert!(matches!(hanging.await.unwrap(), Err(Error::Unavailable(_))));
    // Nothing that the hanging transaction wrote was committed.
    database.run(insert(1)).await.unwrap();
}

#[tokio::test]
async fn one_of_two_deadlocked_transactions_fails_as_contended() {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&settings(&test, 2));
    let both = Arc::new(std::sync::Barrier::new(2));
    let crossing = [(1, 2), (2, 1)].map(|(first, second)| {
        let (database, both) = (database.clone(), Arc::clone(&both));
        tokio::spawn(async move {
            let work = move |connection: &mut PgConnection| {
                lock(first)(connection)?;
                both.wait();
                lock(second)(connection)
            };
            database.transaction(work).await
        })
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
async fn concurrent_replicas_migrate_once() {
    let test = TestDatabase::people_task(MIGRATIONS);
    let settings = settings(&test, 1);
    let migrations = (0..4).map(|_| migrate(&settings, "users", MIGRATIONS));
    for migrated in futures_util::future::join_all(migrations).await {
        migrated.unwrap();
    }
    let database = Database::connect(&settings);
    database.run(insert(1)).await.unwrap();
}

#[tokio::test]
async fn a_role_with_the_wrong_search_path_is_refused_with_a_hint() {
    let test = TestDatabase::users(MIGRATIONS);
    let wrong = migrate(&settings(&test, 1), "people_task", MIGRATIONS).await;
    let message = wrong.unwrap_err().to_string();
    assert!(message.contains("bootstrap.sql"), "{message}");
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
