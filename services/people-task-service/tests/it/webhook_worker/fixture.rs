//! A database with decided tasks, and workers.

use std::collections::HashMap;
use std::time::Duration;

use app_config::{Reader, Settings as _};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Nullable, Text};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _, sql_query};
use messaging::{BrokerSettings, Message, Publisher};
use people_task_service::{MIGRATIONS, WebhookWorkerSettings, run_webhook_worker};
use server::Running;
use telemetry::RequestContext;
use testkit::{TestBroker, TestConnection, TestDatabase, ed25519_pem, eventually};
use tokio_util::sync::CancellationToken;
use values::Secret;

pub(crate) use crate::webhook_worker::receiver::{Call, CannedResponse, Receiver};

pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// The servers that workers use.
pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    pub(crate) broker: TestBroker,
    pub(crate) key: Secret,
}

/// A message that names this text as a due delivery.
pub(crate) fn message_of_lane(lane: &str, delivery: &str) -> Message {
    Message::transient(format!("{lane} {delivery}"), RequestContext::fresh())
}

/// A delivery with its webhook, as the database has them.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub(crate) struct Row {
    #[diesel(sql_type = Text)]
    pub(crate) status: String,
    #[diesel(sql_type = Text)]
    pub(crate) webhook_status: String,
    #[diesel(sql_type = Integer)]
    pub(crate) attempts: i32,
    #[diesel(sql_type = BigInt)]
    pub(crate) next_in_ms: i64,
}

/// An attempt, as the database has it.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub(crate) struct Attempt {
    #[diesel(sql_type = Integer)]
    pub(crate) number: i32,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) status_code: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) error: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) response: Option<String>,
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

const DECIDE: &str = "
WITH task AS (
    INSERT INTO tasks (id, creator, requester, approver, requester_key, approver_key, title,
        description, decision_by, public, approver_secret, requester_secret)
    SELECT id, id, 'Ada@example.com', 'grace@example.com', 'ada@example.com', 'grace@example.com',
        'Buy a second printer', 'The first one jams.', '2030-01-31 09:30:00Z', false,
        sha256(id), sha256(sha256(id))
    FROM (SELECT substr(sha256(random()::text::bytea), 1, 12) AS id) AS made
    RETURNING *
), decided AS (
    INSERT INTO task_states (task_id, status, decision_made, public, creator, created, decision_by, approver_key,
        requester_key, title_key)
    SELECT id, 'approved', now(), public, creator, created, decision_by, approver_key, requester_key, lower(title)
    FROM task
), webhook AS (
    INSERT INTO webhooks (id, task_id, registered_by, url, host, lane, secret, with_task_id)
    SELECT substr(sha256((random()::text || number)::bytea), 1, 12), task.id, task.id, url,
        substring(url FROM '^[a-z]+://([^/:]+)'),
        substring(url FROM '^[a-z]+://[^/]+') || ' ' || encode(task.id, 'hex'), $2, $3
    FROM task, unnest($1) WITH ORDINALITY AS given (url, number)
    RETURNING id, task_id, host, lane
)
INSERT INTO deliveries (id, webhook_id, task_id, host, lane, request_id, traceparent)
SELECT substr(sha256(id), 1, 12), id, task_id, host, lane, 'request-1',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
FROM webhook
RETURNING encode(id, 'hex') AS id";

/// All deliveries.
const DELIVERIES: &str = "(
    SELECT all_deliveries.*, jsonb_array_length(all_deliveries.attempt_log) AS attempts
    FROM all_deliveries ) AS deliveries";

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            database: TestDatabase::people_task(MIGRATIONS),
            broker: TestBroker::new(),
            key: ed25519_pem(),
        }
    }

    pub(crate) fn connection(&self) -> TestConnection {
        self.database.people_task_connection()
    }

    /// Settings that allow loopback addresses and have a short schedule, with some settings replaced.
    pub(crate) fn settings(&self, overrides: &[(&str, &str)]) -> WebhookWorkerSettings {
        worker_settings(&self.database, &self.broker, &self.key, overrides)
    }

    /// A worker with these settings.
    pub(crate) async fn worker(&self, overrides: &[(&str, &str)]) -> Running {
        run_webhook_worker(self.settings(overrides)).await.unwrap()
    }

    /// Inserts a decided task with a webhook for each URL. Returns the deliveries' ids.
    pub(crate) fn decide<S: AsRef<str>>(&self, urls: &[S]) -> Vec<String> {
        self.decide_with(urls, None, false)
    }

    /// The same, with a signing secret or the body of the Appmixer plugin paths.
    pub(crate) fn decide_with<S: AsRef<str>>(
        &self,
        urls: &[S],
        secret: Option<&str>,
        with_task_id: bool,
    ) -> Vec<String> {
        let urls: Vec<&str> = urls.iter().map(AsRef::as_ref).collect();
        decide(&mut self.connection(), &urls, secret, with_task_id)
    }

    /// A connected publisher, as the service uses after a decision.
    pub(crate) async fn publisher(&self) -> Publisher {
        let settings = BrokerSettings {
            url: self.broker.url(),
        };
        let queue = people_task_service::deliveries::QUEUE;
        let (publisher, publishing) = Publisher::new(settings, queue, CancellationToken::new());
        tokio::spawn(publishing);
        eventually("the publisher to be connected", async || {
            publisher.is_connected().then_some(())
        })
        .await;
        publisher
    }

    /// A message for a due delivery.
    pub(crate) fn message_for(&self, delivery: &str) -> Message {
        let query =
            "SELECT lane AS id FROM all_deliveries JOIN webhooks ON webhooks.id = webhook_id
            WHERE encode(all_deliveries.id, 'hex') = $1";
        let query = sql_query(query).bind::<Text, _>(delivery);
        let lane: Id = query.get_result(&mut self.connection()).unwrap();
        message_of_lane(&lane.id, delivery)
    }

    pub(crate) fn row(&self, id: &str) -> Row {
        sql_query(format!(
            "SELECT deliveries.status, webhooks.status AS webhook_status, attempts,
                coalesce(extract(epoch FROM next_attempt - now()) * 1000, 0)::bigint AS next_in_ms
            FROM {DELIVERIES} JOIN webhooks ON webhooks.id = webhook_id WHERE deliveries.id = $1",
        ))
        .bind::<Binary, _>(hex::decode(id).unwrap())
        .get_result(&mut self.connection())
        .unwrap()
    }

    pub(crate) fn attempts(&self, id: &str) -> Vec<Attempt> {
        sql_query(
            "SELECT number::integer, (attempt->>'statusCode')::integer AS status_code, attempt->>'error' AS error,
                attempt->>'response' AS response
            FROM all_deliveries, jsonb_array_elements(attempt_log) WITH ORDINALITY AS logged (attempt, number)
            WHERE id = $1 ORDER BY number",
        )
        .bind::<Binary, _>(hex::decode(id).unwrap())
        .load(&mut self.connection())
        .unwrap()
    }

    pub(crate) fn count(&self, condition: &str) -> i64 {
        let query = format!("SELECT count(*) FROM {DELIVERIES} WHERE {condition}");
        let count: Count = sql_query(query).get_result(&mut self.connection()).unwrap();
        count.count
    }

    /// The number of workers that are taken for alive.
    pub(crate) fn workers(&self) -> i64 {
        self.count_rows("delivery_workers")
    }

    /// The number of deliveries that are suspected of ending workers.
    pub(crate) fn suspected(&self) -> i64 {
        self.count_rows("deliveries WHERE lost_claims >= 2")
    }

    /// The number of statements like this pattern that wait for a lock.
    pub(crate) fn waiting_statements(&self, pattern: &str) -> i64 {
        self.count_rows(&format!(
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '{pattern}'"
        ))
    }

    pub(crate) fn count_rows(&self, from: &str) -> i64 {
        let query = sql_query(format!("SELECT count(*) FROM {from}"));
        let count: Count = query.get_result(&mut self.connection()).unwrap();
        count.count
    }

    pub(crate) fn execute(&self, sql: &str) {
        sql_query(sql).execute(&mut self.connection()).unwrap();
    }

    /// Waits until a delivery has the status.
    pub(crate) async fn wait_for_status(&self, id: &str, status: &str) -> Row {
        eventually(&format!("the delivery to be {status}"), async || {
            Some(self.row(id)).filter(|row| row.status == status)
        })
        .await
    }

    /// Waits until a delivery has had a number of attempts.
    pub(crate) async fn wait_for_attempts(&self, id: &str, attempts: i32) -> Row {
        eventually(&format!("{attempts} attempts"), async || {
            Some(self.row(id)).filter(|row| row.attempts >= attempts)
        })
        .await
    }

    /// Waits until a number of deliveries meet a condition.
    pub(crate) async fn wait_for_count(&self, number: i64, condition: &str) {
        let what = format!("{number} deliveries to be {condition}");
        eventually(&what, async || {
            (self.count(condition) == number).then_some(())
        })
        .await;
    }
}

/// Settings of a worker on these servers, as [`Fixture::settings`] has them.
pub(crate) fn worker_settings(
    database: &TestDatabase,
    broker: &TestBroker,
    key: &Secret,
    overrides: &[(&str, &str)],
) -> WebhookWorkerSettings {
    let (url, owner) = (database.people_task_url(), database.people_task_owner_url());
    let broker = broker.url();
    let given = [
        ("DATABASE_URL", url.expose()),
        ("DATABASE_OWNER_URL", owner.expose()),
        ("AMQP_URL", broker.expose()),
        ("WEBHOOK_SIGNING_KEY", key.expose()),
        ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8,::1/128"),
        ("WEBHOOK_RETRY_SCHEDULE", "500ms,500ms"),
    ];
    let pairs: HashMap<&str, &str> = given.into_iter().chain(overrides.iter().copied()).collect();
    let mut reader = Reader::from_pairs(pairs).unwrap();
    WebhookWorkerSettings::read(&mut reader).unwrap()
}

/// Inserts a decided task with a webhook for each URL. Returns the deliveries' ids.
pub(crate) fn decide(
    connection: &mut PgConnection,
    urls: &[&str],
    secret: Option<&str>,
    with_task_id: bool,
) -> Vec<String> {
    let rows: Vec<Id> = sql_query(DECIDE)
        .bind::<Array<Text>, _>(urls)
        .bind::<Nullable<Text>, _>(secret)
        .bind::<Bool, _>(with_task_id)
        .load(connection)
        .unwrap();
    rows.into_iter().map(|row| row.id).collect()
}
