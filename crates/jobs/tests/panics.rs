//! A worker whose handler panics, with a real database and a real broker.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and its worker panics"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use values::NotificationId;

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

    const TABLE: JobTable<Self::Id> = JobTable::new("users.test_jobs");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_whose_handler_panics_are_found_by_the_sweep_and_hold_no_permit() {
    let (servers, broker) = (TestDatabase::empty(), TestBroker::new());
    servers.admin().batch_execute(CREATE).unwrap();
    let pairs = [("DATABASE_URL", servers.users_url().expose().to_owned())];
    let mut reader = Reader::from_pairs(pairs).unwrap();
    let database = Database::connect(&DatabaseSettings::read(&mut reader).unwrap());
    let worker = Panics {
        database: database.clone(),
        claims_that_panic: 2,
        panics: Arc::default(),
    };
    let config = WorkerConfig {
        database,
        broker: BrokerSettings { url: broker.url() },
        concurrency: 2,
        lease: Duration::from_secs(1),
        retention: Vec::new(),
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
