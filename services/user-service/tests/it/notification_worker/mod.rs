//! The notification worker: codes, retries and retention.

mod aiosmtpd;
mod channels;
mod fixture;
mod mail_servers;

use std::time::Duration;

use demo_engine::ControlChange;
use messaging::{BrokerSettings, Message, Publisher};
use telemetry::RequestContext;
use testkit::eventually;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use user_service::notifications::QUEUE;

use crate::notification_worker::fixture::{EMAIL, Fixture, LINK};

const STOP_TIMEOUT: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn the_webhook_receives_a_valid_code() {
    let fixture = Fixture::new().await;
    let (ada, worker) = (fixture.user(), fixture.worker(&[]).await);
    let sent = fixture
        .closed(fixture.forgot_password(ada, "webhook"))
        .await;
    assert_eq!((sent.status.as_str(), sent.attempts), ("sent", 1));

    let received = fixture.received();
    assert_eq!(received.len(), 1);
    let body = received[0].body.as_object().unwrap();
    let fields: Vec<_> = body.keys().map(String::as_str).collect();
    assert_eq!(fields, ["code", "created", "email", "link", "userId"]);
    let code = body["code"].as_str().unwrap();
    assert_eq!(code.len(), 64);
    assert!(fixture.knows(code));
    assert_eq!(body["email"], EMAIL);
    assert_eq!(body["userId"], ada.to_string());
    assert_eq!(body["link"], LINK.replace("{{code}}", code));
    assert!(body["created"].as_str().unwrap().ends_with('Z'));
    let headers = &received[0].headers;
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-request-id"], "request-7");
    assert!(headers["traceparent"].starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));

    let codes = fixture.codes();
    assert!(
        (3_500..=3_600).contains(&codes[0].seconds_left),
        "{codes:?}"
    );
    assert_eq!(
        fixture.database.rows_that_hold("users", code),
        Vec::<String>::new(),
        "the code itself must not be stored"
    );
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[actix_web::test]
async fn each_retry_sends_a_new_code() {
    let fixture = Fixture::new().await;
    let (ada, down) = (fixture.user(), |down| ControlChange {
        down: Some(down),
        ..ControlChange::default()
    });
    fixture.engine.change_control(&down(true));
    let worker = fixture
        .worker(&[("NOTIFICATION_RETRY_SCHEDULE", "1ms,1ms,1m")])
        .await;
    let id = fixture.forgot_password(ada, "webhook");
    let tried = eventually("three attempts", || async {
        Some(fixture.row(id)).filter(|row| row.attempts == 3 && !row.claimed)
    })
    .await;
    assert_eq!(tried.status, "pending");
    assert_eq!(
        tried.last_error.as_deref(),
        Some("the webhook responded with 503")
    );

    fixture.engine.change_control(&down(false));
    eventually("the pause after the third attempt", || async {
        fixture.sql("UPDATE users.notifications SET next_attempt = now(), republish_at = now() WHERE status = 'pending' AND lease_until IS NULL");
        (fixture.row(id).status == "sent").then_some(())
    })
    .await;
    let received = fixture.received();
    assert_eq!(received.len(), 1);
    assert!(fixture.knows(received[0].body["code"].as_str().unwrap()));
    let codes = fixture.codes();
    assert_eq!(codes.len(), 4, "each attempt makes a new code");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_notification_is_given_up_after_the_last_attempt() {
    let fixture = Fixture::new().await;
    fixture.engine.running.stop(STOP_TIMEOUT).await;
    let worker = fixture.worker(&[]).await;
    let failed = fixture
        .closed(fixture.forgot_password(fixture.user(), "webhook"))
        .await;
    assert_eq!((failed.status.as_str(), failed.attempts), ("fail", 4));
    let error = failed.last_error.unwrap();
    assert_eq!(error, "the webhook failed: connection refused");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn nothing_is_sent_for_an_unknown_address() {
    let fixture = Fixture::new().await;
    let (ada, worker) = (fixture.user(), fixture.worker(&[]).await);
    let unknown = fixture.notification(None, "forgot-password", "webhook");
    let known = fixture.forgot_password(ada, "webhook");
    let closed = fixture.closed(unknown).await;
    assert_eq!((closed.status.as_str(), closed.last_error), ("sent", None));
    fixture.closed(known).await;
    assert_eq!(
        fixture.received().len(),
        1,
        "only the other notification may be sent"
    );
    assert_eq!(fixture.codes().len(), 1);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_notification_that_a_new_password_or_request_superseded_is_not_sent() {
    let fixture = Fixture::new().await;
    let ada = fixture.user();
    let [old, earlier, present] = [2, 3, 5].map(|generation| {
        let id = fixture.forgot_password(ada, "webhook");
        fixture.sql(&format!(
            "UPDATE users.notifications SET generation = {generation} WHERE id = decode('{id}', 'hex')"
        ));
        id
    });
    let worker = fixture.worker(&[]).await;
    let closed = fixture.closed(old).await;
    assert_eq!(closed.status, "fail");
    assert_eq!(closed.last_error.as_deref(), Some("superseded"));
    for valid in [earlier, present] {
        assert_eq!(fixture.closed(valid).await.status, "sent");
    }
    assert_eq!(fixture.received().len(), 2);
    let mut generations: Vec<_> = fixture.codes().iter().map(|code| code.generation).collect();
    generations.sort_unstable();
    assert_eq!(generations, [3, 5]);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_code_that_was_requested_more_than_a_day_ago_is_not_sent() {
    let fixture = Fixture::new().await;
    let ada = fixture.user();
    let [late, recent] = [25, 23].map(|hours| {
        let id = fixture.forgot_password(ada, "webhook");
        fixture.sql(&format!(
            "UPDATE users.notifications SET created = now() - interval '{hours} hours' WHERE id = decode('{id}', 'hex')"
        ));
        id
    });
    let worker = fixture.worker(&[]).await;
    let closed = fixture.closed(late).await;
    assert_eq!(closed.status, "fail");
    assert_eq!(closed.last_error.as_deref(), Some("late"));
    assert_eq!(fixture.closed(recent).await.status, "sent");
    assert_eq!(fixture.received().len(), 1);
    assert_eq!(
        fixture.codes().len(),
        1,
        "a code that is not sent is not made"
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn nothing_is_sent_to_a_deleted_user() {
    let fixture = Fixture::new().await;
    let (ada, down) = (fixture.user(), |down| ControlChange {
        down: Some(down),
        ..ControlChange::default()
    });
    fixture.engine.change_control(&down(true));
    let worker = fixture
        .worker(&[("NOTIFICATION_RETRY_SCHEDULE", "1h")])
        .await;
    let id = fixture.forgot_password(ada, "webhook");
    eventually("a failed attempt", || async {
        let row = fixture.row(id);
        (row.attempts == 1 && !row.claimed).then_some(())
    })
    .await;
    fixture.sql("DELETE FROM users.users");
    fixture.engine.change_control(&down(false));
    let shutdown = CancellationToken::new();
    let (publisher, publishing) = publisher(&fixture, &shutdown);
    publisher.send([Message::new(id, RequestContext::fresh())]);
    let bob = fixture.user();
    let other = fixture.forgot_password(bob, "webhook");
    assert_eq!(fixture.closed(other).await.status, "sent");
    let received = fixture.received();
    let users: Vec<_> = received.iter().map(|call| &call.body["userId"]).collect();
    assert_eq!(users, [&bob.to_string()]);
    worker.stop(STOP_TIMEOUT).await;
    shutdown.cancel();
    publishing.await.unwrap();
}

/// A publisher to the worker's queue, and its task, which ends with `shutdown`.
fn publisher(fixture: &Fixture, shutdown: &CancellationToken) -> (Publisher, JoinHandle<()>) {
    let broker = BrokerSettings {
        url: fixture.broker.url(),
    };
    let (publisher, publishing) = Publisher::new(broker, QUEUE, shutdown.clone());
    (publisher, tokio::spawn(publishing))
}

#[actix_web::test]
async fn duplicate_messages_send_one_notification() {
    let fixture = Fixture::new().await;
    let ada = fixture.user();
    let shutdown = CancellationToken::new();
    let (publisher, publishing) = publisher(&fixture, &shutdown);
    let workers = [fixture.worker(&[]).await, fixture.worker(&[]).await];
    let ids: Vec<_> = (0..20)
        .map(|_| fixture.forgot_password(ada, "webhook"))
        .collect();
    for _ in 0..10 {
        let messages = ids
            .iter()
            .map(|id| Message::new(id, RequestContext::fresh()));
        publisher.send(messages);
        publisher.send([Message::new("nonsense", RequestContext::fresh())]);
    }
    for id in &ids {
        assert_eq!(fixture.closed(*id).await.status, "sent");
    }
    assert_eq!(fixture.received().len(), 20);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
    shutdown.cancel();
    publishing.await.unwrap();
}

#[actix_web::test]
async fn old_rows_are_deleted() {
    let fixture = Fixture::new().await;
    let ada = fixture.user();
    fixture.sql(&format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires)
         SELECT sha256(n::text::bytea), decode('{ada}', 'hex'), 'forgot-password', 0,
            now() + n * interval '1 hour' FROM unnest(ARRAY[-1, 1]) AS n;
         INSERT INTO users.code_requests (counted, subject, forgotten_at)
         SELECT 'account', sha256(n::text::bytea), now() + n * interval '1 hour' FROM unnest(ARRAY[-1, 1]) AS n;
         INSERT INTO users.sign_in_failures (account, client_address, failures, last_failure)
         SELECT sha256('x'), n::text, 1, now() - n * interval '1 hour' FROM generate_series(1, 2500) AS n;
         INSERT INTO users.sign_in_refusals (client_network, known_user, hour, refusals)
         SELECT '10.0.0.1', false, now() - n * interval '1 hour', 1 FROM unnest(ARRAY[23, 25]) AS n;
         INSERT INTO users.known_networks (user_id, network_hash, last_sign_in)
         SELECT decode('{ada}', 'hex'), sha256(n::text::bytea), now() - n * interval '1 day'
         FROM unnest(ARRAY[89, 91]) AS n;
         INSERT INTO users.token_lifetimes (seconds, last_used)
         SELECT n * 3600, now() - interval '3 hours' FROM unnest(ARRAY[1, 10]) AS n;
         INSERT INTO users.deleted_users (user_id, deleted)
         SELECT substring(sha256(n::text::bytea) FOR 12), now() - n * interval '1 hour' FROM unnest(ARRAY[10, 12]) AS n;
         INSERT INTO users.notifications (id, kind, channel, status, request_id, traceparent, republish_at, finished)
         SELECT substring(sha256(n::text::bytea) FOR 12), 'forgot-password', 'log', 'sent', 'r', 't', now(),
            now() - n * interval '1 hour' FROM unnest(ARRAY[23, 25]) AS n;"
    ));
    let worker = fixture.worker(&[]).await;
    let count = |table: &str| {
        fixture
            .database
            .rows_that_hold("users", "")
            .iter()
            .filter(|row| row.starts_with(table))
            .count()
    };
    eventually("old rows to be deleted", || async {
        let left = (
            count("codes:"),
            count("code_requests:"),
            count("sign_in_failures:"),
            count("notifications:"),
            count("sign_in_refusals:"),
            count("known_networks:"),
            count("token_lifetimes:"),
            count("deleted_users:"),
        );
        (left == (1, 1, 23, 1, 1, 1, 1, 1)).then_some(())
    })
    .await;
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn ended_credentials_are_kept_as_long_as_the_feed_lists_them() {
    let fixture = Fixture::new().await;
    fixture.sql(
        "INSERT INTO users.ended_credentials (credential_id, ended)
         SELECT substring(sha256(n::text::bytea) FOR 12), now() - n * interval '1 minute' FROM unnest(ARRAY[71, 121]) AS n;
         INSERT INTO users.sign_up_networks (network_hash, account_group, last_sign_up)
         SELECT sha256(n::text::bytea), substring(sha256('g') FOR 12), now() - n * interval '1 day'
         FROM unnest(ARRAY[89, 91]) AS n;",
    );
    let worker = fixture.worker(&[]).await;
    eventually("old rows to be deleted", || async {
        let rows = fixture.database.rows_that_hold("users", "");
        let count = |table: &str| rows.iter().filter(|row| row.starts_with(table)).count();
        let left = (count("ended_credentials:"), count("sign_up_networks:"));
        (left == (1, 1)).then_some(())
    })
    .await;
    worker.stop(STOP_TIMEOUT).await;
}
