//! The main job, from sign-up to the engine that learns of the decision.

use serde_json::json;
use testkit::eventually;

use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_reaches_the_flow_engine_once_and_signed() {
    let system = System::start().await;
    let requester = system.sign_up("requester@example.com").await;
    system.sign_up("approver@example.com").await;

    let task = system
        .create_task(&requester, "requester@example.com", "approver@example.com")
        .await;
    let url = format!(
        "{}?correlationId=c-1&correlationInPort=in",
        system.webhook_url()
    );
    let webhook = system
        .http
        .post("/people-task/webhooks")
        .bearer(&requester)
        .json(&json!({"url": url, "taskId": task.id}))
        .send()
        .await
        .expect(200);
    assert_eq!(webhook.fields(), ["id", "status", "taskId", "url"]);
    assert_eq!(webhook.text_of("url"), url);
    assert_eq!(webhook.text_of("status"), "pending");

    let path = format!(
        "/people-task/tasks/{}/approve?secret={}",
        task.id, task.approver_secret
    );
    let approved = system
        .http
        .put(&path)
        .header("X-Request-Id", "journey-1")
        .send()
        .await
        .expect(200);
    assert_eq!(approved.text_of("status"), "approved");

    let call = system.wait_for_webhook("c-1").await;
    assert_eq!(
        call["body"], approved.json,
        "the body is the task as it was answered"
    );
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

    let again = system.http.put(&path).send().await;
    again.expect_problem(409, "task-already-resolved");
    assert_eq!(again.json["taskStatus"], "approved");
    let path = format!("/people-task/tasks/{}/webhooks", task.id);
    eventually("the webhook to be marked as sent", || async {
        let webhooks = system.http.get(&path).bearer(&requester).send().await;
        (webhooks.json[0]["status"] == "sent").then_some(())
    })
    .await;
    assert_eq!(system.received("correlationId=c-1").await.len(), 1);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_replaced_and_the_old_one_is_dead() {
    let system = System::start().await;
    let token = system.sign_up("ada@example.com").await;
    let asked = system
        .http
        .post("/user/forgot-password")
        .json(&json!({"email": "Ada@Example.com"}))
        .send()
        .await
        .expect(200);
    let unknown = system
        .http
        .post("/user/forgot-password")
        .json(&json!({"email": "nobody@example.com"}))
        .send()
        .await
        .expect(200);
    let shape = |reply: &testkit::Reply| {
        let entries = reply.json.as_array().unwrap().iter();
        entries
            .map(|entry| {
                let fields: Vec<_> = entry.as_object().unwrap().keys().cloned().collect();
                (entry["componentId"].clone(), fields)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(&asked), shape(&unknown));
    assert_eq!(
        shape(&asked)[0].1.len(),
        6,
        "messageId, flowId, componentId, messages, created, err"
    );

    let message = system
        .wait_for_request("kind=forgot-password&email=ada@example.com")
        .await;
    let code = message["body"]["code"].as_str().unwrap();
    assert!(!asked.text.contains(code));
    let reset = |code: String, password: &'static str| {
        let body = json!({"code": code, "password": password});
        system
            .http
            .post("/user/forgot-password/reset")
            .json(&body)
            .send()
    };
    reset(code.to_owned(), "1234")
        .await
        .expect_problem(400, "validation-failed");
    reset("0".repeat(64), "new password")
        .await
        .expect_problem(400, "invalid-code");
    assert_eq!(
        reset(code.to_owned(), "new password")
            .await
            .expect(200)
            .json,
        json!({})
    );
    reset(code.to_owned(), "another one")
        .await
        .expect_problem(400, "invalid-code");

    system
        .sign_in("ada@example.com", System::PASSWORD)
        .await
        .expect_problem(401, "invalid-credentials");
    let _ = system
        .sign_in("ada@example.com", "new password")
        .await
        .expect(200);
    eventually("the old token to be refused", || async {
        let status = system.http.get("/user").bearer(&token).send().await.status;
        (status == 401).then_some(())
    })
    .await;
    assert!(
        system
            .received("kind=forgot-password&email=nobody@example.com")
            .await
            .is_empty()
    );
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_original_components_paths_work_unchanged() {
    let system = System::start().await;
    let token = system.sign_up("requester@example.com").await;
    let tasks = "/plugins/appmixer/utils/tasks";
    let created = system
        .http
        .post(&format!("{tasks}/tasks"))
        .bearer(&token)
        .json(&json!({
            "title": "t", "requester": "requester@example.com", "approver": "a@example.com",
            "decisionBy": "2027-01-31T10:00:00+01:00"
        }))
        .send()
        .await
        .expect(200);
    let id = created.text_of("taskId");
    assert_eq!(created.text_of("id"), id);
    assert_eq!(created.text_of("decisionBy"), "2027-01-31 09:00:00");
    let url = format!("{}?correlationId=plugin", system.webhook_url());
    let webhook = system
        .http
        .post(&format!("{tasks}/webhooks"))
        .bearer(&token)
        .json(&json!({"url": url, "taskId": id}))
        .send()
        .await
        .expect(200);
    assert_eq!(webhook.text_of("webhookId"), webhook.text_of("id"));
    let _ = system
        .http
        .put(&format!("{tasks}/tasks/{id}/reject"))
        .bearer(&token)
        .send()
        .await
        .expect(200);
    let call = system.wait_for_webhook("plugin").await;
    assert_eq!(call["body"]["taskId"], id.as_str());
    assert_eq!(call["body"]["status"], "rejected");
    let dashboard = system
        .http
        .get(&format!("{tasks}/dashboard-url"))
        .bearer(&token)
        .send()
        .await;
    assert!(
        dashboard
            .expect(200)
            .text_of("dashboardUrl")
            .starts_with("http")
    );
    system.stop().await;
}
