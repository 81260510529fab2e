//! What the notification worker promises: section 5 of the decisions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use demo_engine::{ControlChange, Received, Server};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use messaging::{BrokerSettings, Message, Publisher, Queue};
use process::Running;
use settings::{Reader, Settings as _};
use sha2::{Digest as _, Sha256};
use telemetry::RequestContext;
use testkit::{TestBroker, TestDatabase, eventually};
use tokio_util::sync::CancellationToken;
use user_service::{MIGRATIONS, NotificationWorkerSettings, run_notification_worker};
use values::{NotificationId, UserId};

use crate::notification_worker_mail::MailServer;

const EMAIL: &str = "Ada.Lovelace@Example.com";
const GRACE: Duration = Duration::from_secs(20);
const LINK: &str = "https://example.com/app/reset-password?code={{code}}";

/// A message's row.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = Nullable<Text>)]
    last_error: Option<String>,
    /// Whether an attempt is in flight.
    #[diesel(sql_type = Bool)]
    claimed: bool,
}

/// A code's row.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
struct Code {
    #[diesel(sql_type = Binary)]
    fingerprint: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    generation: i64,
    #[diesel(sql_type = BigInt)]
    seconds_left: i64,
}

struct Stage {
    database: TestDatabase,
    broker: TestBroker,
    engine: Server,
}

impl Stage {
    async fn new() -> Self {
        Self {
            database: TestDatabase::users(MIGRATIONS),
            broker: TestBroker::new(),
            engine: demo_engine::run(demo_engine::Settings::default())
                .await
                .unwrap(),
        }
    }

    /// A worker with the webhook as its channel; `changes` win.
    async fn worker(&self, changes: &[(&str, &str)]) -> Running {
        let webhook = format!("{}/forgot-password", self.engine.url());
        let (url, owner) = (self.database.users_url(), self.database.users_owner_url());
        let broker = self.broker.url();
        let pairs = HashMap::from([
            ("DATABASE_URL", url.expose()),
            ("DATABASE_OWNER_URL", owner.expose()),
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

    fn user(&self) -> UserId {
        let id = UserId::generate();
        let key = EMAIL.to_lowercase();
        self.sql(&format!(
            "INSERT INTO users.users (id, username, email, username_key, email_key, password_hash,
                plan, scope, email_verified, code_generation)
             VALUES (decode('{id}', 'hex'), '{EMAIL}', '{EMAIL}', '{key}', '{key}', 'x', 'free', '{{user}}', true, 5)"
        ));
        id
    }

    /// A message, as the service would store it, that is due now.
    fn message(&self, user: Option<UserId>, kind: &str, channel: &str) -> NotificationId {
        let id = NotificationId::generate();
        let user = user.map_or("NULL".to_owned(), |id| format!("decode('{id}', 'hex')"));
        self.sql(&format!(
            "INSERT INTO users.notifications (id, user_id, kind, channel, request_id, traceparent, wake_at)
             VALUES (decode('{id}', 'hex'), {user}, '{kind}', '{channel}', 'request-7',
                '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', now())"
        ));
        id
    }

    fn forgotten(&self, user: UserId, channel: &str) -> NotificationId {
        self.message(Some(user), "forgot-password", channel)
    }

    fn sql(&self, statements: &str) {
        self.database.admin().batch_execute(statements).unwrap();
    }

    fn row(&self, id: NotificationId) -> Row {
        diesel::sql_query(
            "SELECT status, attempts, last_error, lease_until IS NOT NULL AS claimed FROM users.notifications WHERE id = $1",
        )
        .bind::<Binary, _>(id.as_bytes().as_slice())
        .get_result(&mut self.database.admin())
        .unwrap()
    }

    async fn closed(&self, id: NotificationId) -> Row {
        let closed = |row: &Row| row.status != "pending";
        eventually("the end of the message", || async {
            Some(self.row(id)).filter(closed)
        })
        .await
    }

    fn codes(&self) -> Vec<Code> {
        diesel::sql_query(
            "SELECT fingerprint, generation, extract(epoch FROM expires - now())::bigint AS seconds_left \
             FROM users.codes ORDER BY created",
        )
        .load(&mut self.database.admin())
        .unwrap()
    }

    /// Whether the database would take this code.
    fn knows(&self, code: &str) -> bool {
        let fingerprint = Sha256::digest(code).to_vec();
        let valid = |code: &Code| code.fingerprint == fingerprint && code.generation == 5;
        self.codes().iter().any(valid)
    }

    fn received(&self) -> Vec<Arc<Received>> {
        self.engine.received()
    }
}

#[actix_web::test]
async fn the_webhook_receives_a_code_that_the_database_knows() {
    let stage = Stage::new().await;
    let (ada, worker) = (stage.user(), stage.worker(&[]).await);
    let sent = stage.closed(stage.forgotten(ada, "webhook")).await;
    assert_eq!((sent.status.as_str(), sent.attempts), ("sent", 1));

    let received = stage.received();
    assert_eq!(received.len(), 1);
    let body = received[0].body.as_object().unwrap();
    let fields: Vec<_> = body.keys().map(String::as_str).collect();
    assert_eq!(fields, ["code", "created", "email", "link", "userId"]);
    let code = body["code"].as_str().unwrap();
    assert_eq!(code.len(), 64);
    assert!(stage.knows(code));
    assert_eq!(body["email"], EMAIL);
    assert_eq!(body["userId"], ada.to_string());
    assert_eq!(body["link"], LINK.replace("{{code}}", code));
    assert!(body["created"].as_str().unwrap().ends_with('Z'));
    let headers = &received[0].headers;
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-request-id"], "request-7");
    assert!(headers["traceparent"].starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));

    let codes = stage.codes();
    assert!(
        (3_500..=3_600).contains(&codes[0].seconds_left),
        "{codes:?}"
    );
    assert_eq!(
        stage.database.rows_that_hold("users", code),
        Vec::<String>::new(),
        "the code itself is nowhere"
    );
    assert!(worker.stop(GRACE).await);
}

#[actix_web::test]
async fn a_delivery_that_failed_is_repeated_with_a_new_code() {
    let stage = Stage::new().await;
    let (ada, down) = (stage.user(), |down| ControlChange {
        down: Some(down),
        ..ControlChange::default()
    });
    stage.engine.change_control(&down(true));
    let worker = stage
        .worker(&[("NOTIFICATION_RETRY_SCHEDULE", "1ms,1ms,1m")])
        .await;
    let id = stage.forgotten(ada, "webhook");
    let tried = eventually("three attempts", || async {
        Some(stage.row(id)).filter(|row| row.attempts == 3 && !row.claimed)
    })
    .await;
    assert_eq!(tried.status, "pending");
    assert_eq!(
        tried.last_error.as_deref(),
        Some("the webhook answered 503")
    );

    stage.engine.change_control(&down(false));
    eventually("the pause after the third attempt", || async {
        stage.sql("UPDATE users.notifications SET next_attempt = now(), wake_at = now() WHERE status = 'pending' AND lease_until IS NULL");
        (stage.row(id).status == "sent").then_some(())
    })
    .await;
    let received = stage.received();
    assert_eq!(received.len(), 1);
    assert!(stage.knows(received[0].body["code"].as_str().unwrap()));
    let codes = stage.codes();
    assert_eq!(codes.len(), 4, "each attempt made a code of its own");
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_message_that_never_arrives_is_given_up() {
    let stage = Stage::new().await;
    stage.engine.running.stop(GRACE).await;
    let worker = stage.worker(&[]).await;
    let failed = stage.closed(stage.forgotten(stage.user(), "webhook")).await;
    assert_eq!((failed.status.as_str(), failed.attempts), ("fail", 4));
    let error = failed.last_error.unwrap();
    assert_eq!(error, "the webhook failed: connection refused");
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn an_address_that_is_not_allowed_is_not_called() {
    let stage = Stage::new().await;
    let changes = [
        ("WEBHOOK_ALLOWED_NETWORKS", ""),
        ("NOTIFICATION_RETRY_SCHEDULE", ","),
    ];
    let worker = stage.worker(&changes).await;
    let failed = stage.closed(stage.forgotten(stage.user(), "webhook")).await;
    assert_eq!((failed.status.as_str(), failed.attempts), ("fail", 1));
    assert!(
        failed
            .last_error
            .unwrap()
            .contains("WEBHOOK_ALLOWED_NETWORKS")
    );
    assert!(stage.received().is_empty());
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn for_an_unknown_address_nothing_is_sent() {
    let stage = Stage::new().await;
    let (ada, worker) = (stage.user(), stage.worker(&[]).await);
    let nobody = stage.message(None, "forgot-password", "webhook");
    let somebody = stage.forgotten(ada, "webhook");
    let closed = stage.closed(nobody).await;
    assert_eq!((closed.status.as_str(), closed.last_error), ("sent", None));
    stage.closed(somebody).await;
    assert_eq!(stage.received().len(), 1, "only the other message was sent");
    assert_eq!(stage.codes().len(), 1);
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_user_who_was_deleted_gets_nothing() {
    let stage = Stage::new().await;
    let ada = stage.user();
    stage.forgotten(ada, "webhook");
    stage.sql("DELETE FROM users.users");
    let worker = stage.worker(&[]).await;
    let other = stage.message(None, "forgot-password", "webhook");
    stage.closed(other).await;
    assert!(stage.received().is_empty());
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn each_message_is_sent_once_however_often_it_wakes_somebody_up() {
    let stage = Stage::new().await;
    let ada = stage.user();
    let shutdown = CancellationToken::new();
    let broker = BrokerSettings {
        url: stage.broker.url(),
    };
    let queue = Queue::USER_NOTIFICATIONS;
    let (publisher, publishing) = Publisher::new(broker, queue, shutdown.clone());
    let publishing = tokio::spawn(publishing);
    let workers = [stage.worker(&[]).await, stage.worker(&[]).await];
    let ids: Vec<_> = (0..20).map(|_| stage.forgotten(ada, "webhook")).collect();
    for _ in 0..10 {
        let messages = ids
            .iter()
            .map(|id| Message::new(id, RequestContext::fresh()));
        publisher.send(messages);
        publisher.send([Message::new("nonsense", RequestContext::fresh())]);
    }
    for id in &ids {
        assert_eq!(stage.closed(*id).await.status, "sent");
    }
    assert_eq!(stage.received().len(), 20);
    for worker in workers {
        assert!(worker.stop(GRACE).await);
    }
    shutdown.cancel();
    publishing.await.unwrap();
}

#[actix_web::test]
async fn an_e_mail_holds_the_link_in_words_and_in_html() {
    let stage = Stage::new().await;
    let server = MailServer::start().await;
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "Countersign <no-reply@example.org>"),
    ];
    let worker = stage.worker(&changes).await;
    let sent = stage.closed(stage.forgotten(stage.user(), "mail")).await;
    assert_eq!((sent.status.as_str(), sent.last_error), ("sent", None));

    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    let mail = &mails[0];
    assert_eq!(mail.from, "no-reply@example.org");
    assert_eq!(mail.to, [EMAIL]);
    for header in [
        "From: Countersign <no-reply@example.org>\n",
        &format!("To: {EMAIL}\n"),
        "Subject: Set a new password\n",
        "Auto-Submitted: auto-generated\n",
        "Content-Type: multipart/alternative;",
        "Content-Type: text/plain; charset=utf-8\n",
        "Content-Type: text/html; charset=utf-8\n",
    ] {
        assert!(mail.text.contains(header), "{header}\n{}", mail.text);
    }
    let start = "https://example.com/app/reset-password?code=";
    let line = mail
        .text
        .lines()
        .find(|line| line.starts_with(start))
        .unwrap();
    let code = line.strip_prefix(start).unwrap();
    assert!(
        stage.knows(code),
        "the link has a line of its own and works: {line}"
    );
    assert!(mail.text.contains(&format!("href=\"{start}{code}\"")));
    assert!(mail.text.contains("within 60 minutes"));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_mail_server_that_refuses_is_asked_again_and_no_address_is_kept() {
    let stage = Stage::new().await;
    let server = MailServer::start().await;
    server.refuse(1);
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "no-reply@example.org"),
        ("NOTIFICATION_RETRY_SCHEDULE", "1500ms"),
    ];
    let worker = stage.worker(&changes).await;
    let id = stage.forgotten(stage.user(), "mail");
    let refused = eventually("the refusal", || async {
        Some(stage.row(id)).filter(|row| row.last_error.is_some())
    })
    .await;
    assert_eq!(
        refused.last_error.as_deref(),
        Some("the mail server answered 451")
    );
    assert_eq!(stage.closed(id).await.status, "sent");
    assert_eq!(server.mails().len(), 1);
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn the_log_is_a_channel_only_when_it_is_turned_on() {
    let stage = Stage::new().await;
    let ada = stage.user();
    let worker = stage.worker(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    assert_eq!(
        stage.closed(stage.forgotten(ada, "log")).await.status,
        "sent"
    );
    worker.stop(GRACE).await;
    let worker = stage.worker(&[("NOTIFICATION_RETRY_SCHEDULE", ",")]).await;
    let failed = stage.closed(stage.forgotten(ada, "log")).await;
    assert_eq!(failed.status, "fail");
    assert_eq!(
        failed.last_error.as_deref(),
        Some("this channel is not configured any more")
    );
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_code_that_confirms_an_address_is_bound_to_it() {
    #[derive(QueryableByName)]
    struct Bound {
        #[diesel(sql_type = Text)]
        purpose: String,
        #[diesel(sql_type = Nullable<Text>)]
        email_key: Option<String>,
    }
    let stage = Stage::new().await;
    let worker = stage
        .worker(&[("VERIFY_EMAIL_URL", "http://x/verify?c={{code}}")])
        .await;
    stage
        .closed(stage.message(Some(stage.user()), "verify-email", "webhook"))
        .await;
    let received = stage.received();
    assert_eq!(received[0].body["kind"], "verify-email");
    assert!(
        received[0].body["link"]
            .as_str()
            .unwrap()
            .starts_with("http://x/verify?c=")
    );
    let bound: Bound = diesel::sql_query("SELECT purpose, email_key FROM users.codes")
        .get_result(&mut stage.database.admin())
        .unwrap();
    assert_eq!(bound.purpose, "verify-email");
    assert_eq!(bound.email_key, Some(EMAIL.to_lowercase()));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn what_is_old_goes() {
    let stage = Stage::new().await;
    let ada = stage.user();
    stage.sql(&format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires)
         SELECT sha256(n::text::bytea), decode('{ada}', 'hex'), 'forgot-password', 0,
            now() + n * interval '1 hour' FROM unnest(ARRAY[-1, 1]) AS n;
         INSERT INTO users.sign_in_failures (account, client_address, failures, last_failure)
         SELECT sha256('x'), n::text, 1, now() - n * interval '1 hour' FROM generate_series(1, 2500) AS n;
         INSERT INTO users.notifications (id, kind, channel, status, request_id, traceparent, wake_at, finished)
         SELECT substring(sha256(n::text::bytea) FOR 12), 'forgot-password', 'log', 'sent', 'r', 't', now(),
            now() - n * interval '1 hour' FROM unnest(ARRAY[23, 25]) AS n;"
    ));
    let worker = stage.worker(&[]).await;
    let count = |table: &str| {
        stage
            .database
            .rows_that_hold("users", "")
            .iter()
            .filter(|row| row.starts_with(table))
            .count()
    };
    eventually("the end of what is old", || async {
        let left = (
            count("codes:"),
            count("sign_in_failures:"),
            count("notifications:"),
        );
        (left == (1, 23, 1)).then_some(())
    })
    .await;
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_mail_server_needs_a_sender() {
    let pairs = [
        ("DATABASE_URL", "postgres://x"),
        ("AMQP_URL", "amqp://x"),
        ("SMTP_URL", "smtp://localhost"),
    ];
    let mut reader = Reader::from_pairs(pairs).unwrap();
    let error = NotificationWorkerSettings::read(&mut reader).unwrap_err();
    assert!(
        error.to_string().starts_with("MAIL_FROM is not set"),
        "{error}"
    );
}
