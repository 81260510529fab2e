//! Webhooks: hosts with failures, pausing one, sending again.

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use super::super::accessibility::open_webhooks;
use super::{choose, confirm, has, is_focused, open};
use crate::harness::System;

const REQUESTER: &str = "requester@example.com";

/// Approves a task with a webhook that has these options.
async fn decide(system: &System, token: &str, options: &str) {
    let task = system
        .create_task(token, REQUESTER, "approver@example.com")
        .await;
    let url = format!("{}?{options}", system.webhook_url());
    let _ = system
        .post(
            "/people-task/webhooks",
            token,
            &json!({"url": url, "taskId": task.id}),
        )
        .await;
    let path = format!("/people-task/tasks/{}/approve", task.id);
    let _ = system.put(&path, token, &json!({})).await;
}

async fn host(system: &System) -> Value {
    let path = "/people-task/deliveries/hosts?host=127.0.0.1";
    system.get(path, &system.admin).await.json[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_paused_and_resumed() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    decide(&system, &token, "correlationId=before").await;
    let _ = system.wait_for_webhook("before").await;
    let phone = Browser::phone().await;
    open(&system, &phone, "?view=deliveries&host=127.0.0.1").await;
    phone.sees("Running").await;
    phone.click("Pause").await;
    confirm(&phone, "Pause").await;
    phone.sees("Deliveries to 127.0.0.1 are paused.").await;
    is_focused(&phone, "Resume").await;

    decide(&system, &token, "correlationId=paused").await;
    // It is due, and a worker has looked for due deliveries since then.
    let metrics = "webhook_deliveries_paused 1";
    eventually("the worker to count the paused delivery", || async {
        system.metrics().await.contains(metrics).then_some(())
    })
    .await;
    assert!(system.received("correlationId=paused").await.is_empty());
    phone.reload().await;
    phone.sees("None yet").await;
    // Nothing is tried at a paused host.
    for view in ["?view=deliveries&host=127.0.0.1", "?view=deliveries"] {
        phone
            .open(&format!("{}/admin{view}", system.http.base()))
            .await;
        let next =
            "return document.querySelector('tbody td[data-label=\"Next attempt\"]')?.innerText";
        eventually("no next attempt to be shown", || async {
            (phone.run(next).await == "–").then_some(())
        })
        .await;
    }
    phone.follow("Webhooks").await;
    phone.sees("Paused").await;
    has(&phone, 1, "tbody tr").await;

    phone.click("Resume").await;
    phone.sees("Running").await;
    is_focused(&phone, "Pause").await;
    let _ = system.wait_for_webhook("paused").await;
    let calls = system.received("correlationId=paused").await;
    assert_eq!(calls.len(), 1);
    phone.follow("Audit log").await;
    choose(&phone, "of", "tasks").await;
    phone.sees("Host resumed").await;
    phone.sees("{\"host\":\"127.0.0.1\"}").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_waits_for_a_right_says_so() {
    const APPROVER: &str = "approver@example.com";
    const WAITS: &str = "Waits: the user who added the webhook has no right to its task now.";

    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let approver = system.sign_up(APPROVER).await;
    let task = system.create_task(&token, REQUESTER, APPROVER).await;
    system.register_webhook(&approver, &task.id, "waits").await;
    let path = format!("/people-task/tasks/{}", task.id);
    let other = json!({"approver": "other@example.com"});
    let _ = system.put(&path, &token, &other).await;
    let approve = format!("{path}/approve");
    let _ = system.put(&approve, &token, &json!({})).await;
    let deliveries = format!("{path}/deliveries");
    eventually("the delivery to wait", || async {
        let deliveries = system.get(&deliveries, &system.admin).await.json;
        (deliveries[0]["suspended"] == true).then_some(())
    })
    .await;
    let phone = Browser::phone().await;
    open(&system, &phone, "?view=deliveries").await;
    phone.sees(WAITS).await;
    let page = format!("{}/tasks?taskId={}", system.http.base(), task.id);
    phone.open(&page).await;
    open_webhooks(&phone).await;
    phone.sees(WAITS).await;
    assert!(system.received("correlationId=waits").await.is_empty());
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deliveries_of_a_host_are_shown_and_sent_again() {
    let system = System::start_with(&[("WEBHOOK_RETRY_SCHEDULE", "50ms")]).await;
    let token = system.sign_up(REQUESTER).await;
    let hostile = "correlationId=fails&failFirst=2&x=%3Cimg%20src=x%3E";
    decide(&system, &token, hostile).await;
    decide(&system, &token, "correlationId=other&failFirst=2").await;
    eventually("the deliveries to fail", || async {
        (host(&system).await["failed"] == 2).then_some(())
    })
    .await;
    let phone = Browser::phone().await;
    open(&system, &phone, "?view=hosts&status=fail").await;
    phone.follow("127.0.0.1").await;
    phone.sees("All hosts").await;
    choose(&phone, "status", "fail").await;
    has(&phone, 2, "tbody tr").await;
    phone.sees("2 attempts").await;
    phone.sees("503").await;
    // What a person has opened to read stays open.
    phone
        .run("document.querySelector('#list details').open = true")
        .await;
    has(&phone, 0, "#list[aria-busy]").await;
    let poll = "dispatchEvent(new Event('online'));
        return document.getElementById('list').hasAttribute('aria-busy')";
    assert_eq!(phone.run(poll).await, false);
    let close = "document.querySelector('#list details').open = false;";
    assert_eq!(phone.run(&format!("{close} {poll}")).await, true);
    phone.click("Send again").await;
    phone.sees("The delivery is sent again.").await;
    is_focused(&phone, "Send again").await;
    phone.click("Send failed ones again").await;
    confirm(&phone, "Send failed ones again").await;
    phone.sees("1 delivery is sent again.").await;
    eventually("both to arrive", || async {
        let host = host(&system).await;
        (host["failed"] == 0 && host["pending"] == 0).then_some(())
    })
    .await;
    for correlation in ["fails", "other"] {
        let calls = system
            .received(&format!("correlationId={correlation}"))
            .await;
        assert_eq!(calls.len(), 3, "{correlation}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_deliveries_are_cancelled() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let _ = system
        .post(
            "/people-task/deliveries/pause",
            &system.admin,
            &json!({"host": "127.0.0.1"}),
        )
        .await;
    for correlation in ["a", "b", "c"] {
        decide(&system, &token, &format!("correlationId={correlation}")).await;
    }
    let phone = Browser::phone().await;
    open(&system, &phone, "?view=deliveries&host=127.0.0.1").await;
    has(&phone, 3, "tbody tr").await;
    phone
        .run("document.querySelector('tbody .actions button:last-child').click()")
        .await;
    confirm(&phone, "Cancel").await;
    phone.sees("The delivery is cancelled.").await;
    phone.click("Cancel pending ones").await;
    confirm(&phone, "Cancel pending ones").await;
    phone.sees("2 deliveries are cancelled.").await;
    // Only the button of the host is left.
    is_focused(&phone, "Resume").await;
    let host = host(&system).await;
    assert_eq!((&host["pending"], &host["failed"]), (&json!(0), &json!(3)));
    assert!(system.received("kind=webhook").await.is_empty());
    phone.assert_no_errors().await;
    system.stop().await;
}
