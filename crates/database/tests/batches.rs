//! Requests that share round trips.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use database::{BatchLimits, Batches, Connection, Database, DatabaseSettings, Error, Round};
use diesel::RunQueryDsl as _;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use testkit::{TestDatabase, eventually};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");
const LIMITS: BatchLimits = BatchLimits {
    requests: 4,
    beside: 7,
    waiting: 10,
};

type Numbers = Batches<i64, i64, Error>;

/// Batches that insert numbers, wait until they are released, and say which numbers they had.
struct Fixture {
    _database: TestDatabase,
    numbers: Arc<Numbers>,
    taken: Arc<Mutex<Vec<Vec<i64>>>>,
    release: Sender<()>,
}

fn insert(connection: &mut Connection, number: i64) -> Result<i64, Error> {
    diesel::sql_query(format!("INSERT INTO notes VALUES ({number}, 'x')")).execute(connection)?;
    Ok(number)
}

impl Fixture {
    fn start() -> Self {
        Self::start_with(Duration::from_secs(5))
    }

    fn start_with(timeout: Duration) -> Self {
        Self::start_on(TestDatabase::users(MIGRATIONS), timeout)
    }

    fn start_on(test: TestDatabase, timeout: Duration) -> Self {
        let database = Database::connect(&DatabaseSettings {
            url: test.users_url(),
            owner_url: None,
            pool_size: 2,
            timeout,
        });
        let (release, released): (_, Receiver<()>) = channel();
        let released = Mutex::new(released);
        let taken = Arc::<Mutex<Vec<Vec<i64>>>>::default();
        let log = Arc::clone(&taken);
        let process = move |connection: &mut Connection, numbers: &[i64], round| {
            if round == Round::Repeat {
                let outcomes = numbers.iter().map(|number| match number {
                    14 => None,
                    _ => Some(insert(connection, *number)),
                });
                return Ok(outcomes.collect());
            }
            assert!(!numbers.contains(&15), "this number is a bug");
            log.lock().unwrap().push(numbers.to_vec());
            released.lock().unwrap().recv().unwrap();
            database::transaction(connection, |connection| {
                let numbers = numbers.iter();
                let outcomes = numbers.map(|number| match number {
                    13 | 14 => Ok(None),
                    // A statement that failed fails the transaction.
                    _ => insert(connection, *number).map(|number| Some(Ok(number))),
                });
                outcomes.collect()
            })
        };
        Self {
            _database: test,
            numbers: Arc::new(Batches::new(database, LIMITS, process)),
            taken,
            release,
        }
    }

    fn send(&self, number: i64) -> tokio::task::JoinHandle<Result<i64, Error>> {
        let numbers = Arc::clone(&self.numbers);
        tokio::spawn(async move { numbers.run(number).await })
    }

    /// Waits until a number of batches have begun.
    async fn wait_for_batches(&self, number: usize) {
        eventually("a batch to begin", async || {
            (self.taken.lock().unwrap().len() == number).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn requests_that_come_during_a_batch_are_the_next_one() {
    let fixture = Fixture::start();
    let first = fixture.send(1);
    fixture.wait_for_batches(1).await;
    let others: Vec<_> = (2..=7).map(|number| fixture.send(number)).collect();
    tokio::task::yield_now().await;
    for _ in 0..3 {
        fixture.release.send(()).unwrap();
    }
    assert_eq!(first.await.unwrap().unwrap(), 1);
    for (other, expected) in others.into_iter().zip(2..) {
        assert_eq!(other.await.unwrap().unwrap(), expected);
    }
    let taken = fixture.taken.lock().unwrap().clone();
    assert_eq!(taken, [vec![1], vec![2, 3, 4, 5], vec![6, 7]]);
}

#[tokio::test]
async fn a_second_batch_is_processed_beside_the_first_one_if_enough_requests_wait() {
    let fixture = Fixture::start();
    let mut sent = vec![fixture.send(1)];
    fixture.wait_for_batches(1).await;
    sent.extend((2..=7).map(|number| fixture.send(number)));
    // A second batch would begin within this time.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(*fixture.taken.lock().unwrap(), [vec![1]]);
    sent.push(fixture.send(8));
    fixture.wait_for_batches(2).await;
    for _ in 0..3 {
        fixture.release.send(()).unwrap();
    }
    for (sent, expected) in sent.into_iter().zip(1..) {
        assert_eq!(sent.await.unwrap().unwrap(), expected);
    }
    let taken = fixture.taken.lock().unwrap().clone();
    assert_eq!(taken, [vec![1], vec![2, 3, 4, 5], vec![6, 7, 8]]);
}

#[tokio::test]
async fn a_request_that_breaks_its_batch_fails_alone() {
    let fixture = Fixture::start();
    fixture.release.send(()).unwrap();
    assert_eq!(fixture.send(1).await.unwrap().unwrap(), 1);
    let first = fixture.send(2);
    fixture.wait_for_batches(2).await;
    // The first of them violates the primary key, and the last one asks to be repeated.
    let others: Vec<_> = [1, 3, 13].map(|number| fixture.send(number)).into();
    tokio::task::yield_now().await;
    for _ in 0..2 {
        fixture.release.send(()).unwrap();
    }
    assert_eq!(first.await.unwrap().unwrap(), 2);
    let mut outcomes = Vec::new();
    for other in others {
        outcomes.push(other.await.unwrap());
    }
    assert_eq!(
        outcomes[0].as_ref().unwrap_err().violated_constraint(),
        Some("notes_pkey")
    );
    assert_eq!(outcomes[1].as_ref().unwrap(), &3);
    assert_eq!(outcomes[2].as_ref().unwrap(), &13);
}

#[tokio::test]
async fn a_request_that_is_alone_in_its_batch_fails_with_its_own_error() {
    let fixture = Fixture::start();
    for _ in 0..2 {
        fixture.release.send(()).unwrap();
    }
    assert_eq!(fixture.send(1).await.unwrap().unwrap(), 1);
    let failed = fixture.send(1).await.unwrap().unwrap_err();
    assert_eq!(failed.violated_constraint(), Some("notes_pkey"));
}

#[tokio::test]
async fn the_wait_for_the_batch_before_is_measured() {
    let metrics = telemetry::metrics_recorder();
    let fixture = Fixture::start();
    let first = fixture.send(1);
    fixture.wait_for_batches(1).await;
    let second = fixture.send(2);
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    for _ in 0..2 {
        fixture.release.send(()).unwrap();
    }
    for sent in [first, second] {
        sent.await.unwrap().unwrap();
    }
    let rendered = metrics.render();
    let mut lines = rendered.lines();
    let waited = lines.find_map(|line| line.strip_prefix("database_wait_seconds_sum "));
    assert!(waited.unwrap().parse::<f64>().unwrap() >= 0.2, "{rendered}");
}

#[tokio::test]
async fn a_request_that_loses_its_race_again_can_be_retried_by_its_caller() {
    let fixture = Fixture::start();
    fixture.release.send(()).unwrap();
    let outcome = fixture.send(14).await.unwrap();
    assert!(matches!(outcome, Err(Error::Contended(_))));
}

#[tokio::test]
async fn a_batch_that_panics_fails_and_the_next_one_is_processed() {
    let fixture = Fixture::start();
    let outcome = fixture.send(15).await.unwrap();
    assert!(matches!(outcome, Err(Error::Panicked)));
    fixture.release.send(()).unwrap();
    assert_eq!(fixture.send(1).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_at_once() {
    let fixture = Fixture::start();
    let first = fixture.send(1);
    fixture.wait_for_batches(1).await;
    let mut waiting: Vec<_> = (2..=8).map(|number| fixture.send(number)).collect();
    // Each thread has a batch, so none takes from the queue, which has three of these.
    fixture.wait_for_batches(2).await;
    waiting.extend((21..=27).map(|number| fixture.send(number)));
    tokio::task::yield_now().await;
    assert!(matches!(fixture.numbers.run(28).await, Err(Error::Busy)));
    for _ in 0..5 {
        fixture.release.send(()).unwrap();
    }
    assert_eq!(first.await.unwrap().unwrap(), 1);
    for waiting in waiting {
        assert!(waiting.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn without_the_database_all_that_wait_fail_when_the_first_does() {
    let timeout = Duration::from_secs(5);
    let test = TestDatabase::users(MIGRATIONS);
    test.set_reachable(false);
    let fixture = Fixture::start_on(test, timeout);
    let began = Instant::now();
    // Three batches of them.
    let requests: Vec<_> = (2..=11).map(|number| fixture.send(number)).collect();
    for request in requests {
        let failed = request.await.unwrap().unwrap_err();
        assert!(failed.is_outage() && failed.wrote_nothing(), "{failed:?}");
    }
    assert!(began.elapsed() < timeout * 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_request_that_waited_for_longer_than_the_timeout_is_not_processed() {
    let timeout = Duration::from_secs(4);
    let fixture = Fixture::start_with(timeout);
    let first = fixture.send(1);
    fixture.wait_for_batches(1).await;
    let late = fixture.send(2);
    tokio::task::yield_now().await;
    // The length of an outage.
    tokio::time::sleep(timeout + Duration::from_millis(100)).await;
    let in_time = fixture.send(3);
    tokio::task::yield_now().await;
    for _ in 0..2 {
        fixture.release.send(()).unwrap();
    }
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert!(matches!(late.await.unwrap(), Err(Error::Busy)));
    assert_eq!(in_time.await.unwrap().unwrap(), 3);
    let taken = fixture.taken.lock().unwrap().clone();
    assert_eq!(taken, [vec![1], vec![3]]);
}
