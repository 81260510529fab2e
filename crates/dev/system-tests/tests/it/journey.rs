//! The main use cases, from sign-up to the flow engine that receives the decision.

use serde_json::json;
use testkit::{Reply, eventually};

use crate::harness::System;

const ADA: &str = "ada@example.com";
const REQUESTER: &str = "requester@example.com";
const APPROVER: &str = "approver@example.com";
const PLUGIN_PATHS: &str = "/plugins/appmixer/utils/tasks";

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_reaches_the_flow_engine_once_and_signed() {
    let system = System::start().await;
    let requester = system.sign_up(REQUESTER).await;
    let task = system.create_task(&requester, REQUESTER, APPROVER).await;
    let receiver = system.webhook_url();
    let url = format!("{receiver}?correlationId=c-1&correlationInPort=in");
    let body = json!({"url": url, "taskId": task.id});
    let webhook = system
        .post("/people-task/webhooks", &requester, &body)
        .await;
    assert_eq!(webhook.fields(), ["id", "status", "taskId", "url"]);
    assert_eq!(webhook.text_of("url"), url);
    assert_eq!(webhook.text_of("status"), "pending");

    let path = format!("/people-task/tasks/{}", task.id);
    let approve = format!("{path}/approve?secret={}", task.approver_secret);
    let request = system
        .http
        .put(&approve)
        .header("X-Request-Id", "journey-1");
    let approved = request.send().await.expect(200);
    assert_eq!(approved.text_of("status"), "approved");

    let call = system.wait_for_webhook("c-1").await;
    assert_eq!(call["body"], approved.json, "the body is the task");
    assert_eq!(call["query"]["correlationInPort"], "in");
    assert_eq!(call["headers"]["x-request-id"], "journey-1");
    for header in [
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "traceparent",
    ] {
        assert!(call["headers"][header].is_string(), "{header} in {call}");
    }

    let again = system.http.put(&approve).send().await;
    again.expect_problem(409, "task-already-resolved");
    assert_eq!(again.json["taskStatus"], "approved");
    eventually("the webhook to be sent", || async {
        let webhooks = system.get(&format!("{path}/webhooks"), &requester).await;
        (webhooks.json[0]["status"] == "sent").then_some(())
    })
    .await;
    assert_eq!(system.received("correlationId=c-1").await.len(), 1);
    system.stop().await;
}

async fn forgot_password(system: &System, email: &str) -> Reply {
    let body = json!({"email": email});
    system
        .post_anonymously("/user/forgot-password", &body)
        .await
}

async fn reset_password(system: &System, code: &str, password: &str) -> Reply {
    let request = system.http.post("/user/forgot-password/reset");
    let body = json!({"code": code, "password": password});
    request.json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_reset_with_a_code_and_the_old_token_is_revoked() {
    let system = System::start().await;
    let token = system.sign_up(ADA).await;
    let response = forgot_password(&system, "Ada@Example.com").await;
    let message = system
        .wait_for_request(&format!("kind=forgot-password&email={ADA}"))
        .await;
    let code = message["body"]["code"].as_str().unwrap();
    assert!(!response.text.contains(code));

    let unknown = "0".repeat(64);
    for (code, password, status, problem) in [
        (code, "1234", 400, "validation-failed"),
        (&unknown, "new password", 400, "invalid-code"),
    ] {
        let reply = reset_password(&system, code, password).await;
        reply.expect_problem(status, problem);
    }
    let reset = reset_password(&system, code, "new password").await;
    assert_eq!(reset.expect(200).json, json!({}));
    let again = reset_password(&system, code, "another one").await;
    again.expect_problem(400, "invalid-code");

    let old = system.sign_in(ADA, System::PASSWORD).await;
    old.expect_problem(401, "invalid-credentials");
    let _ = system.sign_in(ADA, "new password").await.expect(200);
    eventually("the old token to be refused", || async {
        let reply = system.http.get("/user").bearer(&token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgot_password_responds_alike_for_an_unknown_address_and_sends_nothing() {
    let system = System::start().await;
    system.sign_up(ADA).await;
    let shape = |reply: &Reply| {
        let entries = reply.json.as_array().unwrap().iter();
        let shape = entries.map(|entry| {
            let fields = entry.as_object().unwrap().keys().cloned();
            (entry["componentId"].clone(), fields.collect::<Vec<_>>())
        });
        shape.collect::<Vec<_>>()
    };
    let unknown = forgot_password(&system, "unknown@example.com").await;
    let known = forgot_password(&system, ADA).await;
    assert_eq!(shape(&known), shape(&unknown));
    let fields = [
        "componentId",
        "created",
        "err",
        "flowId",
        "messageId",
        "messages",
    ];
    assert_eq!(shape(&known)[0].1, fields);

    // The message for the unknown address would have been sent first.
    let query = "kind=forgot-password&email=";
    let _ = system.wait_for_request(&format!("{query}{ADA}")).await;
    let query = format!("{query}unknown@example.com");
    assert!(system.received(&query).await.is_empty());
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_appmixer_plugin_paths_work() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "t", "requester": REQUESTER, "approver": APPROVER,
        "decisionBy": "2027-01-31T10:00:00+01:00"
    });
    let created = system
        .post(&format!("{PLUGIN_PATHS}/tasks"), &token, &body)
        .await;
    let id = created.text_of("taskId");
    assert_eq!(created.text_of("id"), id);
    assert_eq!(created.text_of("decisionBy"), "2027-01-31 09:00:00");

    let url = format!("{}?correlationId=plugin", system.webhook_url());
    let body = json!({"url": url, "taskId": id});
    let webhook = system
        .post(&format!("{PLUGIN_PATHS}/webhooks"), &token, &body)
        .await;
    assert_eq!(webhook.text_of("webhookId"), webhook.text_of("id"));
    let path = format!("{PLUGIN_PATHS}/tasks/{id}/reject");
    let _ = system.put(&path, &token, &json!({})).await;
    let call = system.wait_for_webhook("plugin").await;
    assert_eq!(call["body"]["taskId"], id.as_str());
    assert_eq!(call["body"]["status"], "rejected");

    let path = format!("{PLUGIN_PATHS}/dashboard-url");
    let dashboard = system.get(&path, &token).await;
    assert!(dashboard.text_of("dashboardUrl").starts_with("http"));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_webhook_that_comes_after_or_during_the_decision_is_called_once() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let webhooks = format!("{PLUGIN_PATHS}/webhooks");
    for round in 0..6 {
        let task = system.create_task(&token, REQUESTER, APPROVER).await;
        let (correlation, path) = (
            format!("late-{round}"),
            format!("{PLUGIN_PATHS}/tasks/{}/approve", task.id),
        );
        let url = format!("{}?correlationId={correlation}", system.webhook_url());
        let body = json!({"url": url, "taskId": task.id});
        let nothing = json!({});
        let approve = system.put(&path, &token, &nothing);
        let register = system.post(&webhooks, &token, &body);
        if round == 0 {
            let _ = approve.await;
            let _ = register.await;
        } else {
            let _ = tokio::join!(approve, register);
        }
        let call = system.wait_for_webhook(&correlation).await;
        assert_eq!(call["body"]["status"], "approved");
        assert_eq!(call["body"]["taskId"], task.id.as_str());
        assert!(call["headers"]["webhook-signature"].is_string());
        let path = format!("/people-task/tasks/{}/deliveries", task.id);
        let deliveries = eventually("the delivery to be recorded", || async {
            let deliveries = system.get(&path, &token).await.json;
            (deliveries[0]["status"] == "sent").then_some(deliveries)
        })
        .await;
        assert_eq!(deliveries.as_array().map(Vec::len), Some(1));
        assert_eq!(deliveries[0]["attempts"].as_array().map(Vec::len), Some(1));
        let query = format!("correlationId={correlation}");
        assert_eq!(system.received(&query).await.len(), 1);
    }
    system.stop().await;
}
