//! Calls of webhooks with options, from the registration to the receiver.

use serde_json::{Value, json};
use standardwebhooks::Webhook;
use testkit::eventually;

use crate::due_dates::{accepting, after, worker_with};
use crate::fixture::{DEFAULT_FIELDS, Fixture, Task, User};
use crate::webhook_options::{ENGINES, KEYS, OLD_KEY, VALUE, try_options};
use crate::webhook_worker::fixture::{CannedResponse, Receiver, STOP_TIMEOUT};
use crate::webhook_worker::receiver::Call;

const WHSEC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Registers a webhook with options and approves its task.
pub(crate) async fn approve_with(app: &Fixture, by: &User, url: &str, options: Value) -> Task {
    let task = app
        .create(by, json!({"metadata": {"run": 7, "flow": "f"}}))
        .await;
    let _ = try_options(app, by, &task, url, options).await.expect(200);
    let _ = app.approve(by, &task).await.expect(200);
    task
}

/// The only delivery of a task, as soon as it has ended or has had a number of attempts.
pub(crate) async fn delivery(app: &Fixture, by: &User, task: &Task, attempts: usize) -> Value {
    eventually("the attempts", async || {
        let list = app
            .get(by, &format!("{}/deliveries", task.path))
            .await
            .expect(200);
        let delivery = list.json[0].clone();
        (delivery["attempts"].as_array()?.len() >= attempts).then_some(delivery)
    })
    .await
}

fn body(text: &'static str) -> CannedResponse {
    CannedResponse {
        body: text.as_bytes().to_vec(),
        ..CannedResponse::status(200)
    }
}

#[tokio::test]
async fn a_call_has_the_method_the_headers_and_the_body_of_its_registration_and_is_signed_as_sent()
{
    let (app, receiver) = (Fixture::start_with_broker(&ENGINES).await, accepting());
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &ENGINES).await;
    let options = json!({
        "secret": WHSEC,
        "headers": {"Authorization": VALUE, "Accept": "application/json", "Content-Type": "application/merge-patch+json"},
        "method": "PATCH",
        "body": {
            "run_input": {"status": "{{status}}", "by": "{{decidedBy}}", "comment": "{{comment}}"},
            "text": "{{title}}: {{status}} ({{comment}})", "run": "{{metadata.run}}", "all": "{{metadata}}", "n": 1.5,
        },
    });
    let _ = approve_with(&app, &ada, &receiver.url("/api/runs/1"), options).await;
    let call = receiver.wait_for_calls(1).await.remove(0);
    assert_eq!(
        (call.method.as_str(), call.path.as_str()),
        ("PATCH", "/api/runs/1")
    );
    let expected = json!({
        "run_input": {"status": "approved", "by": "ada@example.com", "comment": null},
        "text": "Buy a second printer: approved ()", "run": 7, "all": {"run": 7, "flow": "f"}, "n": 1.5,
    });
    assert_eq!(call.json(), expected);
    assert_eq!(call.header("authorization"), VALUE);
    assert_eq!(call.header("accept"), "application/json");
    assert_eq!(call.header("content-type"), "application/merge-patch+json");
    assert!(call.header("user-agent").starts_with("countersign/"));
    assert_eq!(call.header("webhook-test"), "");
    let mut headers = reqwest::header::HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        headers.insert(name, call.header(name).parse().unwrap());
    }
    Webhook::new(WHSEC)
        .unwrap()
        .verify(&call.body, &headers)
        .unwrap();
    // The body could say of any task that it is approved.
    assert!(!call.header("webhook-signature").contains("v1a,"));
}

#[tokio::test]
async fn a_call_without_options_has_the_documented_fields_and_the_comment_if_there_is_one() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &[]).await;
    for (before, decision) in [json!({}), json!({"comment": "Fine."})].iter().enumerate() {
        let task = app.create(&ada, json!({})).await;
        let _ = app.register(&ada, &task, &receiver.url("/")).await;
        let path = format!("{}/approve", task.path);
        let _ = app.put(&ada, &path, decision).await.expect(200);
        let sent = receiver.wait_for_calls(before + 1).await[before].json();
        let fields: Vec<_> = sent.as_object().unwrap().keys().collect();
        let mut expected = DEFAULT_FIELDS.to_vec();
        expected.extend(decision.get("comment").map(|_| "comment"));
        expected.sort_unstable();
        assert_eq!(fields, expected);
        assert_eq!(sent.get("comment"), decision.get("comment"));
    }
}

#[tokio::test]
async fn included_fields_are_added_to_the_task() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let _worker = worker_with(&app, &[]).await;
    let options =
        json!({"include": ["decidedBy", "decisionMade", "comment", "metadata", "version"]});
    let _ = approve_with(&app, &ada, &receiver.url("/"), options).await;
    let call = receiver.wait_for_calls(1).await.remove(0);
    let sent = call.json();
    let fields: Vec<_> = sent.as_object().unwrap().keys().collect();
    let expected = [
        "approver",
        "comment",
        "decidedBy",
        "decisionBy",
        "decisionMade",
        "description",
        "id",
        "metadata",
        "requester",
        "status",
        "title",
        "version",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (&sent["decidedBy"], &sent["comment"]),
        (&json!("ada@example.com"), &Value::Null)
    );
    assert_eq!(sent["metadata"], json!({"run": 7, "flow": "f"}));
    assert_eq!(
        (call.method.as_str(), call.header("content-type")),
        ("POST", "application/json")
    );
}

#[tokio::test]
async fn an_answer_that_is_no_success_is_a_failed_attempt_with_its_reason() {
    let app = Fixture::start_with_broker(&ENGINES).await;
    let ada = app.user("ada@example.com");
    let engine = Receiver::start(|before| match before {
        0 => body("n8n is starting up. Please wait"),
        1 => body(r#"{"status": "REJECT", "reason": "not paused"}"#),
        _ => body(r#"{"status": "ACCEPT"}"#),
    });
    let _worker = worker_with(&app, &ENGINES).await;
    let options = json!({
        "body": {"run_input": {"status": "{{status}}"}},
        "success": {"status": [200, 201], "pointer": "/status", "value": "ACCEPT"},
    });
    let task = approve_with(&app, &ada, &engine.url("/resume"), options).await;
    let ended = delivery(&app, &ada, &task, 3).await;
    assert_eq!(ended["status"], "sent");
    let errors: Vec<_> = ended["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["error"].clone())
        .collect();
    assert_eq!(
        errors,
        [
            json!("no success: the answer is not JSON"),
            json!("no success: `/status` of the answer has another value"),
            Value::Null,
        ]
    );
    assert_eq!(
        ended["attempts"][1]["response"],
        r#"{"status": "REJECT", "reason": "not paused"}"#
    );
    let calls = engine.calls();
    // Repeats are the same, byte by byte.
    for call in &calls {
        assert_eq!(call.body, calls[0].body);
        assert_eq!(call.header("webhook-id"), calls[0].header("webhook-id"));
    }
}

#[tokio::test]
async fn other_statuses_may_be_success_and_410_429_and_503_mean_the_same_as_ever() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let engine = Receiver::start_by_path([127, 0, 0, 1], |_, path| {
        let status = path.trim_start_matches('/').parse().unwrap();
        CannedResponse {
            header: [429, 503]
                .contains(&status)
                .then(|| ("Retry-After", "100".to_owned())),
            body: b"{}".to_vec(),
            ..CannedResponse::status(status)
        }
    });
    let _worker = worker_with(&app, &[]).await;
    for (status, success, expected, attempts) in [
        (409, json!({"status": [200, 409]}), "sent", 1),
        (200, json!({"status": [201]}), "fail", 3),
        (404, json!({"pointer": ""}), "fail", 3),
        (500, json!({"status": [500], "pointer": ""}), "sent", 1),
        (410, json!({"pointer": ""}), "fail", 1),
        (302, json!({"pointer": ""}), "fail", 3),
    ] {
        let url = engine.url(&format!("/{status}"));
        let task = approve_with(&app, &ada, &url, json!({"success": success})).await;
        let ended = eventually("the delivery to end", async || {
            let delivery = delivery(&app, &ada, &task, attempts).await;
            (delivery["status"] != "pending").then_some(delivery)
        })
        .await;
        assert_eq!(ended["status"], expected, "{status}");
        assert_eq!(
            ended["attempts"].as_array().unwrap().len(),
            attempts,
            "{status}"
        );
    }
    for status in [429, 503] {
        let url = engine.url(&format!("/{status}"));
        let task = approve_with(&app, &ada, &url, json!({"success": {"pointer": ""}})).await;
        let tried = delivery(&app, &ada, &task, 1).await;
        assert_eq!(tried["status"], "pending", "{status}");
    }
    let later = "deliveries WHERE next_attempt >= created + interval '100 seconds'";
    assert_eq!(app.count(later), 2);
}

#[tokio::test]
async fn nothing_of_an_answer_to_a_call_with_headers_is_kept() {
    let app = Fixture::start_with_broker(&ENGINES).await;
    let ada = app.user("ada@example.com");
    // It repeats what it got, as some do.
    let echo = Receiver::start(|_| CannedResponse {
        body: VALUE.as_bytes().to_vec(),
        ..CannedResponse::status(400)
    });
    let _worker = worker_with(&app, &ENGINES).await;
    let options = json!({"headers": {"Authorization": VALUE}, "success": {"pointer": "/a"}});
    let task = approve_with(&app, &ada, &echo.url("/"), options).await;
    let ended = delivery(&app, &ada, &task, 3).await;
    assert_eq!(echo.calls()[0].header("authorization"), VALUE);
    assert_eq!(ended["attempts"][0]["statusCode"], 400);
    assert_eq!(ended["attempts"][0]["response"], Value::Null);
    assert!(app.database.columns_that_hold(VALUE).is_empty());
}

#[tokio::test]
async fn a_due_date_that_passed_is_told_without_a_decision() {
    let (app, receiver) = (Fixture::start_with_broker(&ENGINES).await, accepting());
    let ada = app.user("ada@example.com");
    let date = after(-1);
    let task = app.create(&ada, json!({"decisionBy": date})).await;
    let options = json!({
        "events": ["due", "approved"],
        "body": ["{{status}}", "{{decisionBy}}", "{{decidedBy}}", "{{decisionMade}}", "{{comment}}"],
    });
    let _ = try_options(&app, &ada, &task, &receiver.url("/"), options)
        .await
        .expect(200);
    // The delivery is added before, and sent after the decision.
    let worker = worker_with(&app, &[("WEBHOOK_RETRY_SCHEDULE", "1h")]).await;
    eventually("the delivery to be tried", async || {
        (app.count("deliveries WHERE due_at IS NOT NULL AND attempts > 0") == 1).then_some(())
    })
    .await;
    let comment = json!({"comment": "Fine."});
    let _ = app
        .put(&ada, &format!("{}/approve", task.path), &comment)
        .await
        .expect(200);
    assert!(worker.stop(STOP_TIMEOUT).await);
    let _worker = worker_with(&app, &ENGINES).await;
    app.execute("UPDATE deliveries SET next_attempt = now()");
    let calls = receiver.wait_for_calls(2).await;
    let told = |status: &str| {
        calls
            .iter()
            .map(Call::json)
            .find(|body| body[0] == status)
            .unwrap()
    };
    assert_eq!(told("due"), json!(["due", date, null, null, null]));
    let approved = told("approved");
    assert_eq!(
        (&approved[2], &approved[4]),
        (&json!("ada@example.com"), &json!("Fine."))
    );
}

#[tokio::test]
async fn a_worker_without_the_key_or_the_origin_sends_nothing_and_tries_again() {
    let (app, receiver) = (Fixture::start_with_broker(&ENGINES).await, accepting());
    let ada = app.user("ada@example.com");
    let origin = ENGINES[0];
    let other_key = ("WEBHOOK_HEADER_KEYS", OLD_KEY);
    let schedule = ("WEBHOOK_RETRY_SCHEDULE", "1ms,1ms,1ms,1ms,1ms,1ms,1h");
    for (settings, options, reason) in [
        (
            vec![origin, other_key],
            json!({"headers": {"x-a": "b"}}),
            "the headers cannot be opened",
        ),
        (
            vec![("WEBHOOK_HEADER_KEYS", KEYS)],
            json!({"headers": {"x-a": "b"}}),
            "headers go over https only",
        ),
        (
            vec![],
            json!({"method": "PUT"}),
            "the host's address is not allowed",
        ),
        (
            vec![],
            json!({"body": 1}),
            "the host's address is not allowed",
        ),
    ] {
        let worker = worker_with(&app, &[settings, vec![schedule]].concat()).await;
        let task = approve_with(&app, &ada, &receiver.url("/"), options.clone()).await;
        let failed = delivery(&app, &ada, &task, 1).await;
        let error = failed["attempts"][0]["error"].as_str().unwrap();
        assert!(error.contains(reason), "{options}: {error}");
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
    assert_eq!(receiver.calls().len(), 0);
    // With its settings it sends them all.
    let _worker = worker_with(&app, &ENGINES).await;
    app.execute("UPDATE deliveries SET next_attempt = now(), attempts = 0");
    let _ = receiver.wait_for_calls(4).await;
}

#[tokio::test]
async fn headers_are_opened_with_the_key_that_sealed_them_after_another_one_was_added() {
    let old = [ENGINES[0], ("WEBHOOK_HEADER_KEYS", OLD_KEY)];
    let (mut app, receiver) = (Fixture::start_with_broker(&old).await, accepting());
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let options = json!({"headers": {"Authorization": VALUE}});
    let _ = try_options(&app, &ada, &task, &receiver.url("/old"), options.clone())
        .await
        .expect(200);
    app.restart_with(&ENGINES).await;
    let _ = try_options(&app, &ada, &task, &receiver.url("/new"), options)
        .await
        .expect(200);
    let key_of = |path: &str| {
        app.value(&format!(
            "SELECT header_key AS value FROM webhooks WHERE url LIKE '%{path}'"
        ))
    };
    assert_ne!(key_of("/old"), key_of("/new"));
    let _worker = worker_with(&app, &ENGINES).await;
    // So that the earlier key can be removed.
    eventually("the headers to be sealed again", async || {
        (key_of("/old") == key_of("/new")).then_some(())
    })
    .await;
    let _ = app.approve(&ada, &task).await.expect(200);
    for call in receiver.wait_for_calls(2).await {
        assert_eq!(call.header("authorization"), VALUE, "{}", call.path);
    }
}

/// Deliveries that statements of earlier workers can see. They load those with fewer than two lost claims, and try others
/// with two and more.
pub(crate) const OF_EARLIER_WORKERS: &str = "deliveries WHERE lost_claims < 2 OR lost_claims >= 2";

#[tokio::test]
async fn workers_of_the_version_before_never_see_deliveries_with_options() {
    let app = Fixture::start_with_broker(&ENGINES).await;
    let (ada, receiver) = (app.user("ada@example.com"), accepting());
    let url = receiver.url("/");
    let decided = approve_with(&app, &ada, &url, json!({"method": "PUT"})).await;
    let _ = approve_with(&app, &ada, &url, json!({})).await;
    assert_eq!(
        (app.count("deliveries"), app.count(OF_EARLIER_WORKERS)),
        (2, 1)
    );
    // A service of the version before repeats one and adds others.
    app.execute("UPDATE deliveries SET next_attempt = now(), attempts = 0, lost_claims = 0, lost_trials = 0");
    app.execute(
        "INSERT INTO deliveries (id, webhook_id, task_id, host, lane, request_id, traceparent, due_at)
        SELECT new_id(), webhook_id, task_id, host, lane, request_id, traceparent, now() FROM deliveries",
    );
    assert_eq!(
        (app.count("deliveries"), app.count(OF_EARLIER_WORKERS)),
        (4, 2)
    );
    // Nor when a worker marks them, or records a failed attempt.
    app.execute("UPDATE deliveries SET lost_claims = 2");
    assert_eq!(app.count(OF_EARLIER_WORKERS), 2);
    assert_eq!(
        app.count("deliveries WHERE has_options AND option_claims = 2"),
        2
    );
    app.execute("UPDATE deliveries SET lost_claims = 0");
    let failing = [
        ("WEBHOOK_RETRY_SCHEDULE", "1h"),
        ("WEBHOOK_ALLOWED_NETWORKS", ""),
    ];
    let worker = worker_with(&app, &failing).await;
    eventually("failed attempts", async || {
        (app.count("deliveries WHERE attempts = 1") == 4).then_some(())
    })
    .await;
    assert_eq!(app.count(OF_EARLIER_WORKERS), 2);
    assert!(worker.stop(STOP_TIMEOUT).await);
    // Nor when one that has ended is repeated.
    let _worker = worker_with(&app, &ENGINES).await;
    app.execute("UPDATE deliveries SET next_attempt = now()");
    let _ = receiver.wait_for_calls(4).await;
    let sent = delivery(&app, &ada, &decided, 2).await;
    let path = format!(
        "/people-task/deliveries/{}/redeliver",
        sent["id"].as_str().unwrap()
    );
    let _ = app
        .http
        .post(&path)
        .bearer(&ada.token)
        .send()
        .await
        .expect(200);
    let calls = receiver.wait_for_calls(5).await;
    assert_eq!(calls.iter().filter(|call| call.method == "PUT").count(), 3);
}

#[tokio::test]
async fn a_delivery_with_options_that_may_end_workers_is_tried_alone() {
    let app = Fixture::start_with_broker(&ENGINES).await;
    let (ada, receiver) = (app.user("ada@example.com"), accepting());
    // One that has ended five workers waits, although its turn would be first.
    for (path, lost_trials) in [("/parked", 5), ("/", 1)] {
        let _ = approve_with(&app, &ada, &receiver.url(path), json!({"method": "PUT"})).await;
        app.execute(&format!(
            "UPDATE deliveries SET lost_claims = 2, lost_trials = {lost_trials} WHERE lost_trials = 0"
        ));
    }
    let mut settings = crate::webhook_worker::fixture::worker_settings(
        &app.database,
        app.broker(),
        &testkit::ed25519_pem(),
        &ENGINES,
    );
    settings.suspects_after = std::time::Duration::ZERO;
    let _worker = people_task_service::run_webhook_worker(settings)
        .await
        .unwrap();
    let calls = receiver.wait_for_calls(1).await;
    assert_eq!(
        (calls[0].method.as_str(), calls[0].path.as_str()),
        ("PUT", "/")
    );
}
