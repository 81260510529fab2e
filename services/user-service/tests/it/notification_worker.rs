//! What the notification worker promises: section 5 of the decisions.

use std::time::Duration;

use demo_engine::ControlChange;
use messaging::{BrokerSettings, Message, Publisher};
use telemetry::RequestContext;
use testkit::eventually;
use tokio_util::sync::CancellationToken;
use user_service::notifications::QUEUE;

use crate::notification_worker_stage::{EMAIL, LINK, Stage};

const GRACE: Duration = Duration::from_secs(20);

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
    let (publisher, publishing) = Publisher::new(broker, QUEUE, shutdown.clone());
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
async fn what_is_old_goes() {
    let stage = Stage::new().await;
    let ada = stage.user();
    stage.sql(&format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires)
         SELECT sha256(n::text::bytea), decode('{ada}', 'hex'), 'forgot-password', 0,
            now() + n * interval '1 hour' FROM unnest(ARRAY[-1, 1]) AS n;
         INSERT INTO users.code_requests (counted, subject, forgotten_at)
         SELECT 'account', sha256(n::text::bytea), now() + n * interval '1 hour' FROM unnest(ARRAY[-1, 1]) AS n;
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
            count("code_requests:"),
            count("sign_in_failures:"),
            count("notifications:"),
        );
        (left == (1, 1, 23, 1)).then_some(())
    })
    .await;
    worker.stop(GRACE).await;
}
