//! Withdrawing a task.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::changes::change;
use super::{
    REQUESTER, answer, dialog_closes, link, poll, press_at_once, signed_in, status, task_with,
};
use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn who_created_a_task_withdraws_it_and_learns_before_who_is_not_called() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    system.register_webhook(&token, &task.id, "unaware").await;
    let approver = Browser::phone().await;
    approver.open(&link(&system, &task)).await;
    approver.sees("Approve").await;
    assert!(!approver.text().await.contains("Withdraw"));

    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    // A person who presses twice gets one dialog.
    let late = "async (send) => {
        const response = await send();
        window.arrived = (window.arrived ?? 0) + 1;
        await (window.held ??= new Promise((done) => { window.release = done; }));
        return response;
    }";
    let preview = format!("GET /people-task/tasks/{}/cancel", task.id);
    answer(&phone, &preview, &[late, late]).await;
    phone.click("Withdraw").await;
    phone.click("Withdraw").await;
    eventually("both presses to ask for the webhooks", || async {
        (phone.run("return window.arrived").await == 2).then_some(())
    })
    .await;
    phone.run("window.release()").await;
    phone.sees("1 webhook is not called").await;
    phone
        .fill("Reason (optional)", "We found an old one.")
        .await;
    phone.click("Yes, withdraw").await;
    dialog_closes(&phone).await;
    phone.sees("You withdrew this.").await;
    phone.sees("We found an old one.").await;
    assert_eq!(phone.count("article button").await, 0);
    assert_eq!(status(&system, &token, &task).await, "cancelled");
    phone.assert_no_errors().await;

    poll(&approver).await;
    approver.sees("was just withdrawn").await;
    approver.sees("We found an old one.").await;
    assert_eq!(approver.count("#approve").await, 0);
    approver.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_changed_meanwhile_is_not_withdrawn_before_the_change_was_shown() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    phone.click("Withdraw").await;
    phone.sees("Reason (optional)").await;
    change(&system, &token, &task, &json!({"title": "Buy ten"})).await;
    phone.click("Yes, withdraw").await;
    phone.sees("Another person changed this task.").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.click("Yes, withdraw").await;
    dialog_closes(&phone).await;
    assert_eq!(status(&system, &token, &task).await, "cancelled");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_withdraws_by_the_link() {
    let system = System::start().await;
    let token = system.sign_up("flow@example.com").await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, id, secret) = (system.http.base(), &task.id, &task.requester_secret);
    let phone = Browser::phone().await;
    phone
        .open(&format!("{base}/tasks#id={id}&secret={secret}"))
        .await;
    phone.sees("has not decided yet").await;
    press_at_once(&phone, "body", "dialog form button:not([type])").await;
    phone.click("Withdraw").await;
    phone.sees("Yes, withdraw").await;
    assert_eq!(phone.run("return window.isTaken").await, false);
    phone.click("Yes, withdraw").await;
    phone.sees("You withdrew this.").await;
    assert_eq!(phone.count("#outcome:focus").await, 1);
    phone.reload().await;
    phone.sees(&format!("Withdrawn by {REQUESTER}")).await;
    assert_eq!(status(&system, &token, &task).await, "cancelled");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_shows_withdrawn_tasks() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let _ = task_with(&system, &token, "Buy a lamp", "").await;
    let path = format!("/people-task/tasks/{}/cancel", task.id);
    let _ = system.post(&path, &token, &json!({})).await.expect(200);
    let phone = signed_in(&system, "/?tab=created&status=cancelled", REQUESTER).await;
    phone.sees("Buy a chair").await;
    phone.sees("Withdrawn").await;
    assert!(!phone.text().await.contains("Buy a lamp"));
    phone.assert_no_errors().await;
    system.stop().await;
}
