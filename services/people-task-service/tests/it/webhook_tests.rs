//! Calls by which users try their webhooks.

use std::sync::Arc;
use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::Reply;
use tokio::sync::Notify;
use values::UserId;

use crate::decide::wait_for_lock;
use crate::due_dates::{accepting, worker_with};
use crate::fixture::{Fixture, User};
use crate::webhook_options::{ENGINES, VALUE, try_options};
use crate::webhook_worker::fixture::{CannedResponse, Receiver, STOP_TIMEOUT};

async fn test(app: &Fixture, by: &User, webhook: &str) -> Reply {
    let path = format!("/people-task/webhooks/{webhook}/test");
    app.http.post(&path).bearer(&by.token).send().await
}

#[tokio::test]
async fn a_test_is_a_signed_call_that_is_no_decision() {
    let (app, receiver) = (Fixture::start_with_broker(&ENGINES).await, accepting());
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &ENGINES).await;
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, &receiver.url("/hook?x=1")).await;
    let reply = test(&app, &ada, &webhook).await.expect(200);
    assert_eq!(
        reply.fields(),
        ["at", "durationMs", "error", "id", "statusCode", "success"]
    );
    assert_eq!(
        (
            &reply.json["success"],
            &reply.json["statusCode"],
            &reply.json["error"]
        ),
        (&json!(true), &json!(200), &Value::Null)
    );
    let call = receiver.calls().remove(0);
    assert_eq!(
        (call.method.as_str(), call.path.as_str()),
        ("POST", "/hook?x=1")
    );
    assert_eq!(call.header("webhook-test"), "true");
    assert_eq!(call.header("webhook-id"), reply.text_of("id"));
    assert!(call.header("webhook-signature").starts_with("v1a,"));
    let body = call.json();
    assert_eq!(
        (&body["status"], &body["id"]),
        (&json!("test"), &json!(task.id))
    );

    // It changes nothing.
    let status = app.get(&ada, &task.path).await.expect(200);
    assert_eq!(status.json["status"], "pending");
    let deliveries = app.get(&ada, &format!("{}/deliveries", task.path)).await;
    assert_eq!(deliveries.json, json!([]));
    let webhooks = app.get(&ada, &format!("{}/webhooks", task.path)).await;
    assert_eq!(webhooks.json[0]["status"], "pending");
    let audit = app
        .get(
            &app.admin(),
            "/people-task/audit?filter=action:webhook-tested",
        )
        .await;
    assert_eq!(
        audit.expect(200).json[0]["detail"],
        json!({"webhookId": webhook})
    );
}

#[tokio::test]
async fn a_body_that_a_user_made_is_not_signed_by_the_service() {
    let (app, receiver) = (Fixture::start_with_broker(&ENGINES).await, accepting());
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &ENGINES).await;
    let task = app.create(&ada, json!({})).await;
    let forged = json!({"id": "665f1c2ab3d4e5f60718293a", "status": "approved"});
    let options = json!({"body": forged});
    let reply = try_options(&app, &ada, &task, &receiver.url("/"), options).await;
    let webhook = reply.expect(200).text_of("id");
    let _ = test(&app, &ada, &webhook).await.expect(200);
    let call = receiver.calls().remove(0);
    assert_eq!(call.json(), forged);
    assert_eq!(call.header("webhook-signature"), "");
}

#[tokio::test]
async fn a_test_has_the_options_of_its_webhook() {
    let app = Fixture::start_with_broker(&ENGINES).await;
    let ada = app.user("ada@example.com");
    let engine = Receiver::start(|_| CannedResponse {
        body: format!("{{\"status\": \"REJECT\", \"got\": \"{VALUE}\"}}").into_bytes(),
        ..CannedResponse::status(200)
    });
    let _worker = worker_with(&app, &ENGINES).await;
    let task = app.create(&ada, json!({})).await;
    let options = json!({
        "method": "PUT", "headers": {"Authorization": VALUE}, "body": {"s": "{{status}}"},
        "success": {"pointer": "/status", "value": "ACCEPT"},
    });
    let webhook = try_options(&app, &ada, &task, &engine.url("/"), options)
        .await
        .expect(200);
    let reply = test(&app, &ada, &webhook.text_of("id")).await.expect(200);
    assert_eq!(reply.json["success"], false);
    assert_eq!(reply.json["statusCode"], 200);
    assert_eq!(
        reply.json["error"],
        "no success: `/status` of the answer has another value"
    );
    assert!(!reply.text.contains(VALUE));
    let call = engine.calls().remove(0);
    assert_eq!(
        (call.method.as_str(), call.json()),
        ("PUT", json!({"s": "test"}))
    );
    assert_eq!(call.header("authorization"), VALUE);
    assert!(app.database.columns_that_hold(VALUE).is_empty());
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_is_told_without_a_retry() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &[]).await;
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let reply = test(&app, &ada, &webhook).await.expect(200);
    assert_eq!(reply.json["success"], false);
    assert_eq!(reply.json["statusCode"], Value::Null);
    assert_eq!(reply.json["error"], "connection refused");
}

#[tokio::test]
async fn who_manages_a_webhook_may_try_it() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let _worker = worker_with(&app, &[]).await;
    let (carol, ada) = (app.user("carol@example.com"), app.user("ada@example.com"));
    let (grace, stranger) = (app.user("grace@example.com"), app.user("eve@example.com"));
    let task = app.create(&carol, json!({})).await;
    let webhook = app.register(&grace, &task, &receiver.url("/")).await;
    test(&app, &ada, &webhook)
        .await
        .expect_problem(403, "forbidden");
    test(&app, &stranger, &webhook)
        .await
        .expect_problem(404, "not-found");
    let path = format!("/people-task/webhooks/{webhook}/test");
    app.http
        .post(&path)
        .send()
        .await
        .expect_problem(401, "token-missing");
    test(&app, &carol, &"0".repeat(24))
        .await
        .expect_problem(404, "not-found");
    for by in [&carol, &grace, &app.admin()] {
        let reply = test(&app, by, &webhook).await.expect(200);
        assert_eq!(reply.json["success"], true);
    }
    // Who has no right to the task any more is told nothing of it.
    let handed_over = json!({"approver": "linus@example.com"});
    let _ = app.put(&grace, &task.path, &handed_over).await.expect(200);
    let reply = test(&app, &carol, &webhook).await.expect(200);
    assert_eq!(reply.json["success"], false);
    assert!(
        reply.json["error"]
            .as_str()
            .unwrap()
            .contains("has no right")
    );
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn tests_are_limited_for_each_user_and_for_all() {
    let app = Fixture::start_with_broker(&[]).await;
    let (ada, carol) = (app.user("ada@example.com"), app.user("carol@example.com"));
    let task = app
        .create(&ada, json!({"requester": "carol@example.com"}))
        .await;
    let webhook = app.register(&carol, &task, "http://127.0.0.1:9/").await;
    let add = |number: u32, user: &User, seconds: u32| {
        app.execute(&format!(
            "INSERT INTO webhook_tests (id, webhook_id, requested_by, request_id, traceparent, taken, requested)
            SELECT new_id(), '\\x{webhook}', '\\x{}', '', '', now(), now() - interval '{seconds} seconds' FROM generate_series(1, {number})",
            user.id
        ));
    };
    add(10, &ada, 20);
    // What another user requested before does not count for her.
    add(1, &app.user("x@example.com"), 40);
    let refused = test(&app, &ada, &webhook).await;
    refused.expect_problem(429, "rate-limited");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((30..=41).contains(&wait), "{wait}");
    let _worker = worker_with(&app, &[]).await;
    let _ = test(&app, &carol, &webhook).await.expect(200);
    add(49, &app.user("y@example.com"), 20);
    test(&app, &carol, &webhook)
        .await
        .expect_problem(429, "rate-limited");
    app.execute("UPDATE webhook_tests SET requested = requested - interval '1 minute'");
    let _ = test(&app, &ada, &webhook).await.expect(200);
}

#[tokio::test]
async fn accounts_of_one_group_share_how_many_tests_they_may_make() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let _worker = worker_with(&app, &[]).await;
    let group = UserId::generate();
    let (eve, mallory, ada) = (
        app.member("eve@example.com", group),
        app.member("mallory@example.com", group),
        app.user("ada@example.com"),
    );
    let try_own = async |by: &User| {
        let task = app.create(by, json!({})).await;
        let webhook = app.register(by, &task, &receiver.url("/")).await;
        test(&app, by, &webhook).await
    };
    let _ = try_own(&eve).await.expect(200);
    app.execute(
        "INSERT INTO webhook_tests (id, webhook_id, requested_by, account_group, request_id, traceparent, taken)
        SELECT new_id(), webhook_id, requested_by, account_group, '', '', now()
        FROM webhook_tests CROSS JOIN generate_series(1, 9)",
    );
    try_own(&mallory).await.expect_problem(429, "rate-limited");
    let _ = try_own(&ada).await.expect(200);
}

#[tokio::test]
async fn a_paused_host_gets_no_tests() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &[]).await;
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, &receiver.url("/")).await;
    app.execute("INSERT INTO paused_hosts (host) VALUES ('127.0.0.1')");
    test(&app, &ada, &webhook)
        .await
        .expect_problem(409, "deliveries-paused");
    assert_eq!(receiver.calls().len(), 0);
}

#[tokio::test]
async fn a_webhook_that_is_deleted_while_its_test_waits_for_another_is_not_found() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let mut other = app.database.admin();
    let hold = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('webhook_tests', 0))";
    other.batch_execute(hold).unwrap();
    let deleting = async {
        wait_for_lock(&app).await;
        let path = format!("/people-task/webhooks/{webhook}");
        let delete = app.http.delete(&path).bearer(&ada.token);
        let _ = delete.send().await.expect(200);
        other.batch_execute("COMMIT").unwrap();
    };
    let (reply, ()) = tokio::join!(test(&app, &ada, &webhook), deleting);
    reply.expect_problem(404, "not-found");
    assert_eq!(app.count("audit_log WHERE action = 'webhook-tested'"), 0);
}

#[tokio::test]
async fn a_test_that_no_worker_takes_is_not_made_later() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, &receiver.url("/")).await;
    let reply = test(&app, &ada, &webhook).await;
    reply.expect_problem(503, "no-test-result");
    assert_eq!(app.count("webhook_tests WHERE taken IS NULL"), 0);
    let _worker = worker_with(&app, &[]).await;
    let _ = test(&app, &ada, &webhook).await.expect(200);
    assert_eq!(receiver.calls().len(), 1);
}

#[tokio::test]
async fn a_worker_that_stops_waits_for_the_answer_to_a_test() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let answer = Arc::new(Notify::new());
    let held = CannedResponse {
        release: Some(Arc::clone(&answer)),
        ..CannedResponse::status(200)
    };
    let receiver = Receiver::start(move |_| held.clone());
    let worker = worker_with(&app, &[]).await;
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, &receiver.url("/")).await;
    let stop = async {
        receiver.wait_for_calls(1).await;
        let stopped = worker.stop(STOP_TIMEOUT);
        tokio::pin!(stopped);
        let early = tokio::time::timeout(Duration::from_secs(1), &mut stopped).await;
        assert!(early.is_err(), "it stopped without the answer");
        answer.notify_one();
        assert!(stopped.await);
    };
    let (reply, ()) = tokio::join!(test(&app, &ada, &webhook), stop);
    assert_eq!(reply.expect(200).json["success"], true);
}
