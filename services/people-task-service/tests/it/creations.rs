//! New tasks with their webhooks, in one call.

use serde_json::{Value, json};
use testkit::Reply;

use crate::due_dates::{accepting, after, worker};
use crate::fixture::{Fixture, Task, User};

/// Creates a task with webhooks.
async fn create(app: &Fixture, by: &User, webhooks: Value) -> Reply {
    app.try_create(by, json!({"webhooks": webhooks})).await
}

fn task_of(reply: &Reply) -> Task {
    Task {
        id: reply.text_of("id"),
        path: format!("/people-task/tasks/{}", reply.text_of("id")),
        approver_secret: reply.text_of("approverSecret"),
        requester_secret: reply.text_of("requesterSecret"),
    }
}

#[tokio::test]
async fn a_task_is_created_with_its_webhooks_and_they_are_called() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let (all, late) = (receiver.url("/all"), receiver.url("/late"));
    let secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let webhooks =
        json!([{"url": all, "secret": secret}, {"url": late, "events": ["due", "rejected"]}]);
    let reply = create(&app, &ada, webhooks).await.expect(200);
    let task = task_of(&reply);
    let shown = reply.json["webhooks"].as_array().unwrap();
    assert_eq!(
        (&shown[0]["url"], &shown[1]["url"]),
        (&json!(all), &json!(late))
    );
    for webhook in shown {
        assert_eq!(webhook["taskId"], task.id);
        assert_eq!(webhook["status"], "pending");
    }
    assert_eq!(shown[0].as_object().unwrap().len(), 4);
    assert_eq!(shown[1]["events"], json!(["rejected", "due"]));
    let listed = app
        .get(&ada, &format!("{}/webhooks", task.path))
        .await
        .expect(200);
    assert_eq!(listed.json.as_array().unwrap().len(), 2);
    assert_eq!(
        app.count("audit_log WHERE action = 'webhook-registered'"),
        2
    );
    let _worker = worker(&app).await;
    let _ = app.approve(&ada, &task).await.expect(200);
    let calls = receiver.wait_for_calls(1).await;
    assert_eq!(calls[0].json()["status"], "approved");
    assert!(calls[0].header("webhook-signature").contains("v1,"));
    // Only one of them wants to hear of an approval.
    assert_eq!(app.count("all_deliveries"), 1);
}

#[tokio::test]
async fn without_webhooks_the_response_has_none() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let reply = app.try_create(&ada, json!({})).await.expect(200);
    assert!(reply.json.get("webhooks").is_none());
    let reply = create(&app, &ada, Value::Null).await.expect(200);
    assert!(reply.json.get("webhooks").is_none());
    let reply = create(&app, &ada, json!([])).await.expect(200);
    assert_eq!(reply.json["webhooks"], json!([]));
}

#[tokio::test]
async fn every_error_of_a_webhook_names_its_place_and_nothing_is_made() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let webhooks = json!([
        {"url": "http://127.0.0.1:9/"},
        {"url": "ftp://127.0.0.1/", "events": []},
        {"events": ["finished"], "secret": "short"},
    ]);
    let body = json!({"title": " ", "webhooks": webhooks});
    let reply = app.try_create(&ada, body).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(
        reply.bad_fields(),
        [
            "title",
            "webhooks[1].url",
            "webhooks[1].events",
            "webhooks[2].url",
            "webhooks[2].secret",
            "webhooks[2].events"
        ]
    );
    for (wrong, code) in [
        (json!({}), "invalid-type"),
        (json!(["http://127.0.0.1:9/"]), "invalid-type"),
        (
            json!(vec![json!({"url": "http://127.0.0.1:9/"}); 21]),
            "too-many",
        ),
    ] {
        let reply = create(&app, &ada, wrong).await;
        assert_eq!(reply.bad_fields(), ["webhooks"]);
        assert_eq!(reply.json["errors"][0]["code"], code);
    }
    let refused = json!([{"url": "http://127.0.0.1:9/"}, {"url": "http://10.1.2.3/"}, {"url": "http://[::1]/"}]);
    let reply = create(&app, &ada, refused).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["webhooks[1].url", "webhooks[2].url"]);
    assert_eq!(reply.json["errors"][0]["code"], "address-not-allowed");
    assert_eq!((app.count("tasks"), app.count("webhooks")), (0, 0));
    let full = json!(vec![json!({"url": "http://127.0.0.1:9/"}); 20]);
    let task = task_of(&create(&app, &ada, full).await.expect(200));
    let more = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let reply = app.try_register(&ada, &more).await;
    reply.expect_problem(409, "too-many-webhooks");
}

#[tokio::test]
async fn webhooks_count_as_if_they_were_registered_later() {
    let app = Fixture::start_with(&[("QUOTA_USER_WEBHOOKS_PER_MINUTE", "2")]).await;
    let ada = app.user("ada@example.com");
    let webhooks = |number| json!(vec![json!({"url": "http://127.0.0.1:9/"}); number]);
    let reply = create(&app, &ada, webhooks(3)).await;
    reply.expect_problem(429, "rate-limited");
    assert_eq!(app.count("tasks"), 0);
    let _ = create(&app, &ada, webhooks(2)).await.expect(200);
}

#[tokio::test]
async fn on_a_plugin_path_webhooks_hear_of_due_dates_and_bodies_have_the_task_id() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let body = json!({
        "title": "t", "requester": "ada@example.com", "approver": "grace@example.com", "decisionBy": after(-60),
        "webhooks": [{"url": receiver.url("/")}],
    });
    let request = app
        .http
        .post("/plugins/appmixer/utils/tasks/tasks")
        .bearer(&ada.token);
    let reply = request.json(&body).send().await.expect(200);
    assert_eq!(reply.json["taskId"], reply.json["id"]);
    assert_eq!(
        reply.json["webhooks"][0]["webhookId"],
        reply.json["webhooks"][0]["id"]
    );
    let _worker = worker(&app).await;
    let calls = receiver.wait_for_calls(1).await;
    assert_eq!(calls[0].json()["status"], "due");
    assert_eq!(calls[0].json()["taskId"], reply.json["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_the_database_refuses_fails_alone_and_leaves_nothing() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    app.execute("ALTER TABLE webhooks ADD CHECK (url NOT LIKE '%refused%')");
    let webhooks = |path: &str| json!([{"url": format!("http://127.0.0.1:9/{path}")}]);
    let good = (0..40).map(|_| create(&app, &ada, webhooks("")));
    let bad = (0..4).map(|_| create(&app, &ada, webhooks("refused")));
    let (good, bad) = tokio::join!(
        futures_util::future::join_all(good),
        futures_util::future::join_all(bad)
    );
    assert!(good.iter().all(|reply| reply.status == 200));
    assert!(bad.iter().all(|reply| reply.status >= 500));
    assert_eq!((app.count("tasks"), app.count("webhooks")), (40, 40));
}
