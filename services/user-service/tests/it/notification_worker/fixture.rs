//! A notification worker with everything around it: database, broker, and the webhook's receiver.

use std::collections::HashMap;
use std::sync::Arc;

use app_config::{Reader, Settings as _};
use demo_engine::{Received, Server};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use server::Running;
use sha2::{Digest as _, Sha256};
use testkit::{TestBroker, TestDatabase, eventually};
use user_service::{MIGRATIONS, NotificationWorkerSettings, run_notification_worker};
use values::{NotificationId, UserId};

pub(crate) const EMAIL: &str = "Ada.Lovelace@Example.com";
pub(crate) const LINK: &str = "https://example.com/app/reset-password?code={{code}}";

/// A notification's row.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub(crate) struct Row {
    #[diesel(sql_type = Text)]
    pub(crate) status: String,
    #[diesel(sql_type = Integer)]
    pub(crate) attempts: i32,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) last_error: Option<String>,
    /// Whether an attempt is in flight.
    #[diesel(sql_type = Bool)]
    pub(crate) claimed: bool,
}

/// A code's row.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub(crate) struct Code {
    #[diesel(sql_type = Binary)]
    pub(crate) fingerprint: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    pub(crate) generation: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) seconds_left: i64,
}

pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    pub(crate) broker: TestBroker,
    pub(crate) engine: Server,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self {
            database: TestDatabase::users(MIGRATIONS),
            broker: TestBroker::new(),
            engine: demo_engine::run(demo_engine::Settings::default())
                .await
                .unwrap(),
        }
    }

    /// A worker with the webhook as its channel; `changes` override the settings.
    pub(crate) async fn worker(&self, changes: &[(&str, &str)]) -> Running {
        let webhook = format!("{}/forgot-password", self.engine.url());
        let (url, owner) = (self.database.users_url(), self.database.users_owner_url());
        let broker = self.broker.url();
        let pairs = HashMap::from([
            ("DATABASE_URL", url.expose()),
            ("DATABASE_OWNER_URL", owner.expose()),
            ("DATABASE_TIMEOUT", "30s"),
            ("AMQP_URL", broker.expose()),
            ("WEBHOOK_USER_FORGOT_PASSWORD", &webhook),
            ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8"),
            ("FORGOT_PASSWORD_URL", LINK),
            ("NOTIFICATION_RETRY_SCHEDULE", "10ms,20ms,30ms"),
        ]);
        let all = pairs.into_iter().chain(changes.iter().copied());
        let mut reader = Reader::from_pairs(all.collect::<HashMap<_, _>>()).unwrap();
        let settings = NotificationWorkerSettings::read(&mut reader).unwrap();
        run_notification_worker(settings).await.unwrap()
    }

    pub(crate) fn user(&self) -> UserId {
        let id = UserId::generate();
        let key = EMAIL.to_lowercase();
        self.sql(&format!(
            "INSERT INTO users.users (id, username, email, username_key, email_key, password_hash,
                plan, scope, code_generation)
             VALUES (decode('{id}', 'hex'), '{EMAIL}', '{EMAIL}', '{key}', '{key}', 'x', 'free', '{{user}}', 5)"
        ));
        id
    }

    /// A notification that is due now.
    pub(crate) fn notification(
        &self,
        user: Option<UserId>,
        kind: &str,
        channel: &str,
    ) -> NotificationId {
        let id = NotificationId::generate();
        let user = user.map_or("NULL".to_owned(), |id| format!("decode('{id}', 'hex')"));
        self.sql(&format!(
            "INSERT INTO users.notifications (id, user_id, kind, channel, request_id, traceparent, republish_at)
             VALUES (decode('{id}', 'hex'), {user}, '{kind}', '{channel}', 'request-7',
                '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', now())"
        ));
        id
    }

    pub(crate) fn forgot_password(&self, user: UserId, channel: &str) -> NotificationId {
        self.notification(Some(user), "forgot-password", channel)
    }

    pub(crate) fn sql(&self, statements: &str) {
        self.database.admin().batch_execute(statements).unwrap();
    }

    pub(crate) fn row(&self, id: NotificationId) -> Row {
        diesel::sql_query(
            "SELECT status, lease::integer AS attempts, last_error, lease_until IS NOT NULL AS claimed FROM users.notifications WHERE id = $1",
        )
        .bind::<Binary, _>(id.as_bytes().as_slice())
        .get_result(&mut self.database.admin())
        .unwrap()
    }

    pub(crate) async fn closed(&self, id: NotificationId) -> Row {
        let closed = |row: &Row| row.status != "pending";
        eventually("the notification to be closed", || async {
            Some(self.row(id)).filter(closed)
        })
        .await
    }

    pub(crate) fn codes(&self) -> Vec<Code> {
        diesel::sql_query(
            "SELECT fingerprint, generation, extract(epoch FROM expires - now())::bigint AS seconds_left \
             FROM users.codes ORDER BY created",
        )
        .load(&mut self.database.admin())
        .unwrap()
    }

    /// Whether the code is valid.
    pub(crate) fn knows(&self, code: &str) -> bool {
        let fingerprint = Sha256::digest(code).to_vec();
        let valid = |code: &Code| code.fingerprint == fingerprint && code.generation == 5;
        self.codes().iter().any(valid)
    }

    pub(crate) fn received(&self) -> Vec<Arc<Received>> {
        self.engine.received()
    }
}
