//! The links that mails carry: `/tasks?taskId=…&version=…&secret=…&action=…` and `/tasks?secret=…&role=…`.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::changes::change;
use super::{APPROVER, REQUESTER, sign_in, status, task_with};
use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn an_approvers_link_works_after_a_reload_and_after_the_decision() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "It **squeaks**.").await;
    let (base, secret) = (system.http.base(), &task.approver_secret);

    let phone = Browser::phone().await;
    let link = format!(
        "{base}/tasks?taskId={}&secret={secret}&action=approve",
        task.id
    );
    phone.open(&link).await;
    phone.sees("Press “Approve” to confirm.").await;
    assert_eq!(phone.count("#description strong").await, 1);
    let address = phone.address().await;
    assert_eq!(
        address,
        format!("{base}/tasks?taskId={}&action=approve", task.id)
    );
    phone.reload().await;
    phone.sees("Press “Approve” to confirm.").await;
    assert_eq!(status(&system, &token, &task).await, "pending");

    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.reload().await;
    phone.sees(&format!("Approved by {APPROVER}")).await;
    assert_eq!(phone.count("article button").await, 0);
    phone.open(&link).await;
    phone.sees(&format!("Approved by {APPROVER}")).await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_about_an_earlier_version_proposes_no_decision() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, id, secret) = (system.http.base(), &task.id, &task.approver_secret);
    let link = |version| {
        format!("{base}/tasks?taskId={id}&version={version}&secret={secret}&action=approve")
    };
    let phone = Browser::phone().await;
    phone.open(&link(1)).await;
    phone.sees("Press “Approve” to confirm.").await;

    change(&system, &token, &task, &json!({"title": "Buy ten chairs"})).await;
    phone.open(base).await;
    phone.open(&link(1)).await;
    for _ in 0..2 {
        phone.sees("Buy ten chairs").await;
        phone.sees("This task was changed after the mail").await;
        assert_eq!(phone.count("#proposal").await, 0);
        phone.reload().await;
    }
    phone.open(&link(2)).await;
    phone.sees("Press “Approve” to confirm.").await;
    assert!(!phone.text().await.contains("after the mail"));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_sees_how_it_stands_and_cannot_decide() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, secret) = (system.http.base(), &task.requester_secret);

    let phone = Browser::phone().await;
    phone
        .open(&format!("{base}/tasks?secret={secret}&role=requester"))
        .await;
    phone
        .sees(&format!("{APPROVER} has not decided yet."))
        .await;
    assert_eq!(phone.count("article button").await, 0);
    let address = format!("{base}/tasks?taskId={}", task.id);
    assert_eq!(phone.address().await, address);
    phone.reload().await;
    phone
        .sees(&format!("{APPROVER} has not decided yet."))
        .await;

    let path = format!(
        "/people-task/tasks/{}/reject?secret={}",
        task.id, task.approver_secret
    );
    let reason = json!({"comment": "Too *expensive*."});
    let _ = system
        .http
        .put(&path)
        .json(&reason)
        .send()
        .await
        .expect(200);
    // The page notices it by itself.
    phone.sees("“Buy a chair” was just rejected.").await;
    phone.sees(&format!("Rejected by {APPROVER}")).await;
    phone.sees("Too expensive.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposed_rejection_takes_one_press() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, secret) = (system.http.base(), &task.approver_secret);
    let phone = Browser::phone().await;
    // Without the id, the page finds it.
    phone
        .open(&format!(
            "{base}/tasks?secret={secret}&role=approver&action=reject"
        ))
        .await;
    phone.sees("Press “Reject” to confirm.").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.click("Reject").await;
    phone.sees("You rejected this.").await;
    assert_eq!(status(&system, &token, &task).await, "rejected");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_link_is_explained() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, id) = (system.http.base(), &task.id);
    let old = "0".repeat(64);
    let phone = Browser::phone().await;
    for query in [format!("taskId={id}&secret={old}"), format!("secret={old}")] {
        phone.open(&format!("{base}/tasks?{query}")).await;
        phone.sees("This link is no longer valid.").await;
        assert!(!phone.address().await.contains(&old));
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_a_mail_opens_the_decision() {
    let (system, server) = System::start_with_mail(&[]).await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "requester": REQUESTER, "approver": APPROVER, "notify": true,
    });
    let task = system.create_task_from(&token, &body).await;
    let mail = eventually("the mail", || async { server.mails().pop() }).await;
    let mut lines = mail.text.lines();
    let link = lines
        .find(|line| line.ends_with("&action=approve"))
        .unwrap();
    let (_, path) = link.split_once("countersign.example.com").unwrap();

    let phone = Browser::phone().await;
    phone.open(&format!("{}{path}", system.http.base())).await;
    phone.sees("Press “Approve” to confirm.").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_signing_out_the_links_that_were_opened_are_forgotten() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, secret) = (system.http.base(), &task.approver_secret);
    let page = format!("{base}/tasks?taskId={}", task.id);

    let phone = Browser::phone().await;
    phone.open(&format!("{page}&secret={secret}")).await;
    phone.sees("Buy a chair").await;
    phone.open(base).await;
    sign_in(&phone, REQUESTER, System::PASSWORD).await;
    phone.sees("Sign out").await;
    phone.open(&page).await;
    phone.sees("Buy a chair").await;
    phone.click("Sign out").await;
    phone.sees("Forgot your password?").await;
    phone.open(&page).await;
    phone.sees("Forgot your password?").await;
    assert!(!phone.text().await.contains("Buy a chair"));
    phone.assert_no_errors().await;
    system.stop().await;
}
