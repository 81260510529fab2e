//! Rows that are found together.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use database::{BatchLimits, Connection, Database, DatabaseSettings, Error, Lookups};
use diesel::sql_types::{Array, BigInt, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use futures_util::future::join_all;
use testkit::TestDatabase;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");
const LIMITS: BatchLimits = BatchLimits {
    requests: 8,
    beside: 100,
    waiting: 100,
};

#[derive(QueryableByName)]
struct Note {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Text)]
    text: String,
}

fn find(connection: &mut Connection, ids: &[i64]) -> Result<HashMap<i64, String>, Error> {
    let notes: Vec<Note> = diesel::sql_query("SELECT id, text FROM notes WHERE id = ANY($1)")
        .bind::<Array<BigInt>, _>(ids)
        .load(connection)?;
    Ok(notes.into_iter().map(|note| (note.id, note.text)).collect())
}

async fn insert(database: &Database, id: i64) {
    let insert = move |connection: &mut Connection| -> Result<(), Error> {
        let sql = format!("INSERT INTO notes VALUES ({id}, 'note {id}')");
        diesel::sql_query(sql).execute(connection)?;
        Ok(())
    };
    database.run(insert).await.unwrap();
}

fn start() -> (TestDatabase, Database, Lookups<i64, String>) {
    let test = TestDatabase::users(MIGRATIONS);
    let database = Database::connect(&DatabaseSettings {
        url: test.users_url(),
        owner_url: None,
        pool_size: 2,
        timeout: Duration::from_secs(5),
    });
    let lookups = database::lookups(database.clone(), LIMITS, find);
    (test, database, lookups)
}

#[tokio::test]
async fn each_lookup_gets_its_own_row() {
    let (_test, database, lookups) = start();
    for id in 1..=10 {
        insert(&database, id).await;
    }
    // Some twice, and some that do not exist.
    let ids = (0..40).map(|n| n % 15);
    let found = join_all(ids.clone().map(|id| lookups.run(id))).await;
    for (id, found) in ids.zip(found) {
        let expected = (1..=10).contains(&id).then(|| format!("note {id}"));
        assert_eq!(found.unwrap(), expected, "{id}");
    }
}

#[tokio::test]
async fn a_lookup_sees_what_was_committed_before_it() {
    let (_test, database, lookups) = start();
    let done = AtomicBool::new(false);
    let others = async {
        while !done.load(Ordering::Relaxed) {
            let _ = lookups.run(0).await.unwrap();
        }
    };
    let writing = async {
        for id in 1..=50 {
            insert(&database, id).await;
            assert!(lookups.run(id).await.unwrap().is_some(), "{id}");
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(others, writing);
}
