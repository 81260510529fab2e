use std::time::Duration;

use database::Database;
use messaging::Publisher;
use telemetry::Outage;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::store::JobTable;

/// Jobs that one sweep publishes at most.
const BATCH: i64 = 100;
/// A queue that holds more messages than this needs no more; due jobs wait in the database.
const MAX_QUEUE_DEPTH: u32 = 1_000;
/// How long sweeps ignore a job that was published.
const REPUBLISH_INTERVAL: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_AFTER_FULL_BATCH: Duration = Duration::from_millis(100);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Publishes jobs that are due and have no message in flight, until it is cancelled. Those are retries, and what a crash or a
/// full buffer left behind. It pauses while the broker is unavailable or its queue is long, so that after an outage the backlog
/// is published gradually.
pub(crate) async fn sweep(
    table: JobTable,
    publisher: Publisher,
    database: Database,
    shutdown: CancellationToken,
) {
    let outage = Outage::new("due rows cannot be read");
    while !shutdown.is_cancelled() {
        let mut pause = PAUSE;
        if publisher.is_connected() && publisher.depth() < MAX_QUEUE_DEPTH {
            let due = database
                .run(move |connection| table.take_due(connection, BATCH, REPUBLISH_INTERVAL));
            let due = due.await;
            outage.record(&due);
            match due {
                Ok(messages) => {
                    if i64::try_from(messages.len()).is_ok_and(|count| count >= BATCH) {
                        // The depth is read once a second, so a backlog goes out in steps.
                        pause = PAUSE_AFTER_FULL_BATCH;
                    }
                    publisher.send(messages);
                }
                Err(_) => pause = PAUSE_AFTER_FAILURE,
            }
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::{Arc, Mutex};

    use app_config::{Reader, Settings as _};
    use database::DatabaseSettings;
    use diesel::RunQueryDsl as _;
    use diesel::connection::SimpleConnection as _;
    use diesel::dsl::sql;
    use diesel::sql_types::BigInt;
    use messaging::{BrokerSettings, ConsumerConfig, Disposition, Queue, consume};
    use testkit::{TestBroker, TestDatabase, eventually};

    use super::*;

    const TABLE: JobTable = JobTable("users.test_jobs");
    const QUEUE: Queue = Queue::new("test.sweep");
    /// More than a batch.
    const ROWS: usize = 150;
    const CREATE: &str = "
        CREATE TABLE users.test_jobs (
            id bytea PRIMARY KEY, request_id text NOT NULL DEFAULT 'r', traceparent text NOT NULL DEFAULT 't',
            republish_at timestamptz NOT NULL DEFAULT now(), finished timestamptz);
        GRANT ALL ON users.test_jobs TO PUBLIC;
        INSERT INTO users.test_jobs (id)
            SELECT substr(sha256(n::text::bytea), 1, 12) FROM generate_series(1, 150) AS n";
    const KEPT: &str = "000000000000000000000001";

    fn with_table(servers: &TestDatabase) -> Database {
        servers.admin().batch_execute(CREATE).unwrap();
        let pairs = [("DATABASE_URL", servers.users_url().expose().to_owned())];
        let mut reader = Reader::from_pairs(pairs).unwrap();
        Database::connect(&DatabaseSettings::read(&mut reader).unwrap())
    }

    /// During an outage, sweeps leave a row to those after it.
    async fn insert_row_that_sweeps_leave(servers: &TestDatabase) {
        let insert = format!("INSERT INTO users.test_jobs (id) VALUES ('\\x{KEPT}')");
        servers.admin().batch_execute(&insert).unwrap();
        sleep(2 * PAUSE).await;
        let kept = format!(
            "SELECT count(*) FROM users.test_jobs WHERE id = '\\x{KEPT}' AND republish_at <= now()"
        );
        let kept: i64 = sql::<BigInt>(&kept)
            .get_result(&mut servers.admin())
            .unwrap();
        assert_eq!(kept, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn due_rows_are_published_and_the_sweep_pauses_during_an_outage() {
        let (servers, broker) = (TestDatabase::empty(), TestBroker::new());
        let database = with_table(&servers);
        let settings = BrokerSettings { url: broker.url() };
        let shutdown = CancellationToken::new();
        let (publisher, publishing) = Publisher::new(settings.clone(), QUEUE, shutdown.clone());
        let received = Arc::new(Mutex::new(HashSet::new()));
        let bodies = Arc::clone(&received);
        let config = ConsumerConfig::new(settings, QUEUE, 8);
        let consuming = consume(config, shutdown.clone(), move |message| {
            bodies.lock().unwrap().insert(message.body);
            std::future::ready(Disposition::Done)
        });
        let sweeping = sweep(TABLE, publisher.clone(), database, shutdown.clone());
        let tasks = [
            tokio::spawn(publishing),
            tokio::spawn(consuming),
            tokio::spawn(sweeping),
        ];
        eventually("all rows to be published", async || {
            (received.lock().unwrap().len() == ROWS).then_some(())
        })
        .await;

        broker.set_reachable(false);
        eventually("the publisher to be disconnected", async || {
            broker.cut_connections();
            (!publisher.is_connected()).then_some(())
        })
        .await;
        insert_row_that_sweeps_leave(&servers).await;
        broker.set_reachable(true);
        eventually("the kept row to be published", async || {
            received.lock().unwrap().contains(KEPT).then_some(())
        })
        .await;
        shutdown.cancel();
        for task in tasks {
            let ended = tokio::time::timeout(Duration::from_secs(10), task);
            ended.await.unwrap().unwrap();
        }
    }
}
