//! A worker whose handler panics or whose claims fail, with a real database and a real broker.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and one worker panics"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use app_config::{Reader, Settings as _};
use database::{Connection, Database, DatabaseSettings, Error};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Binary};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _, sql_query};
use jobs::{Claim, JobTable, Lease, Outcome, Worker, WorkerConfig};
use messaging::{BrokerSettings, Queue};
use server::Running;
use testkit::{TestBroker, TestDatabase, eventually};
use values::{FromText as _, NotificationId};

const CREATE: &str = "
CREATE TABLE users.test_jobs (
    id bytea PRIMARY KEY, request_id text NOT NULL DEFAULT 'r', traceparent text NOT NULL DEFAULT 't',
    next_attempt timestamptz NOT NULL DEFAULT now(), republish_at timestamptz NOT NULL DEFAULT now(),
    lease bigint NOT NULL DEFAULT 0, lease_until timestamptz, finished timestamptz);
GRANT ALL ON users.test_jobs TO PUBLIC;
INSERT INTO users.test_jobs (id) SELECT substr(sha256(n::text::bytea), 1, 12) FROM generate_series(1, 10) AS n";

/// Ends each job, after the first claims of each have panicked.
#[derive(Clone)]
struct Panics {
    database: Database,
    claims_that_panic: i64,
    panics: Arc<AtomicUsize>,
}

impl Worker for Panics {
    type Id = NotificationId;
    type Job = Lease<NotificationId>;

    const TABLE: JobTable = JobTable("users.test_jobs");
    const QUEUE: Queue = Queue::new("test.jobs");
    const CLAIM_REDELIVERED: bool = false;

    fn claim(
        &self,
        connection: &mut Connection,
        claim: Claim<Self::Id>,
    ) -> Result<Option<Self::Job>, Error> {
        Self::TABLE.claim(connection, claim)
    }

    fn lease(job: &Self::Job) -> Lease<Self::Id> {
        *job
    }

    async fn handle(&self, job: &Self::Job) -> Result<Outcome, Error> {
        let Lease { id, number } = *job;
        if number <= self.claims_that_panic {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!("a bug");
        }
        let finish = move |connection: &mut Connection| {
            sql_query("UPDATE users.test_jobs SET finished = now() WHERE id = $1")
                .bind::<Binary, _>(id)
                .execute(connection)
                .map_err(Error::from)
        };
        self.database.run(finish).await?;
        Ok(Outcome::Settled)
    }
}

/// Cannot claim any job, because the database is unavailable, and notes of each attempt whether its message was redelivered.
#[derive(Clone, Default)]
struct WithoutDatabase {
    redelivered: Arc<Mutex<Vec<bool>>>,
}

impl Worker for WithoutDatabase {
    type Id = NotificationId;
    type Job = Lease<NotificationId>;

    const TABLE: JobTable = JobTable("users.test_jobs");
    const QUEUE: Queue = Queue::new("test.outages");
    const CLAIM_REDELIVERED: bool = true;

    fn claim(
        &self,
        _: &mut Connection,
        claim: Claim<Self::Id>,
    ) -> Result<Option<Self::Job>, Error> {
        self.redelivered.lock().unwrap().push(claim.ignore_lease);
        Err(Error::Unavailable("an outage".into()))
    }

    fn lease(job: &Self::Job) -> Lease<Self::Id> {
        *job
    }

    async fn handle(&self, _: &Self::Job) -> Result<Outcome, Error> {
        panic!("no job can be claimed")
    }
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

fn finished(connection: &mut PgConnection) -> i64 {
    let query = "SELECT count(*) FROM users.test_jobs WHERE finished IS NOT NULL";
    let count: Count = sql_query(query).get_result(connection).unwrap();
    count.count
}

/// A worker's configuration, and ten jobs.
fn config(servers: &TestDatabase, broker: &TestBroker) -> WorkerConfig {
    servers.admin().batch_execute(CREATE).unwrap();
    let pairs = [("DATABASE_URL", servers.users_url().expose().to_owned())];
    let mut reader = Reader::from_pairs(pairs).unwrap();
    WorkerConfig {
        database: Database::connect(&DatabaseSettings::read(&mut reader).unwrap()),
        broker: BrokerSettings { url: broker.url() },
        concurrency: 2,
        lease: Duration::from_secs(1),
        retention: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_whose_handler_panics_are_found_by_the_sweep_and_hold_no_permit() {
    let (servers, broker) = (TestDatabase::empty(), TestBroker::new());
    let config = config(&servers, &broker);
    let worker = Panics {
        database: config.database.clone(),
        claims_that_panic: 2,
        panics: Arc::default(),
    };
    let mut running = Running::new();
    jobs::run(&mut running, config, worker.clone());
    eventually("all jobs to be finished", async || {
        (finished(&mut servers.admin()) == 10).then_some(())
    })
    .await;
    assert_eq!(worker.panics.load(Ordering::SeqCst), 20);
    assert!(running.stop(Duration::from_secs(10)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_outage_of_the_database_a_message_is_requeued_once_and_its_job_published_again() {
    let (servers, broker) = (TestDatabase::empty(), TestBroker::new());
    let config = WorkerConfig {
        concurrency: 1,
        ..config(&servers, &broker)
    };
    let only_one =
        "DELETE FROM users.test_jobs WHERE id <> (SELECT id FROM users.test_jobs LIMIT 1)";
    servers.admin().batch_execute(only_one).unwrap();
    let worker = WithoutDatabase::default();
    let mut running = Running::new();
    jobs::run(&mut running, config, worker.clone());
    for attempts in [2, 4] {
        eventually("the message to be delivered twice", async || {
            (worker.redelivered.lock().unwrap().len() >= attempts).then_some(())
        })
        .await;
        // The sweep publishes the job at once, and not after half a minute. Its message is handled after the first is settled.
        let publish = "UPDATE users.test_jobs SET republish_at = now()";
        servers.admin().batch_execute(publish).unwrap();
    }
    let redelivered = worker.redelivered.lock().unwrap()[..4].to_vec();
    assert_eq!(redelivered, [false, true, false, true]);
    assert!(running.stop(Duration::from_secs(10)).await);
}

#[test]
fn a_claim_that_was_lost_writes_nothing() {
    let database = TestDatabase::empty();
    let mut connection = database.admin();
    connection.batch_execute(CREATE).unwrap();
    let id = NotificationId::from_text("6b86b273ff34fce19d6b804e").unwrap();
    let (table, long) = (Panics::TABLE, Duration::from_secs(60));
    let mut claim = |ignore_lease| {
        let claim = Claim {
            id,
            duration: long,
            ignore_lease,
        };
        table.claim(&mut connection, claim).unwrap()
    };
    let lost = claim(false).unwrap();
    assert!(claim(false).is_none());
    let valid = claim(true).unwrap();
    assert!(!table.renew(&mut connection, lost, Duration::ZERO).unwrap());
    assert!(
        !table
            .release(&mut connection, lost, Duration::ZERO)
            .unwrap()
    );
    assert!(table.renew(&mut connection, valid, long).unwrap());
    assert!(table.release(&mut connection, valid, long).unwrap());
}
