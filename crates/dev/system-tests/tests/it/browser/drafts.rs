//! What a person has written survives: the end of a session, a reload, Escape, and the network.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::{
    APPROVER, REQUESTER, dialog_closes, link, sign_in, signed_in, status, takes_presses, task_with,
    write_task,
};
use crate::harness::System;

// A code point of a key in the WebDriver protocol.
pub(super) const ESCAPE: char = '\u{e00c}';

pub(super) async fn value_of(phone: &Browser, id: &str) -> serde_json::Value {
    phone
        .run(&format!("return document.getElementById('{id}').value"))
        .await
}

/// Ends all sessions of a user.
pub(super) async fn end_sessions(system: &System, email: &str) {
    let body = json!({"username": email, "password": System::PASSWORD});
    let reply = system
        .http
        .post("/user/auth")
        .json(&body)
        .send()
        .await
        .expect(200);
    let token = reply.json["token"].as_str().unwrap().to_owned();
    let change = json!({"oldPassword": System::PASSWORD, "newPassword": "a new password"});
    let _ = system
        .http
        .post("/user/change-password")
        .bearer(&token)
        .json(&change)
        .send()
        .await
        .expect(200);
    // The user service knows at once, the others within a second.
    eventually("the old token to be refused", || async {
        let request = system.http.get("/people-task/tasks-count");
        let reply = request.bearer(&token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_survives_the_end_of_the_session() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone
        .open(&format!("{}/tasks?taskId={}", system.http.base(), task.id))
        .await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", "Too expensive.").await;
    end_sessions(&system, APPROVER).await;
    phone.click("Reject").await;
    phone.sees("Your session has ended.").await;
    // The menu is that of a person without a session.
    assert!(!phone.text().await.contains("Sign out"));
    sign_in(&phone, APPROVER, "a new password").await;
    phone.sees("You are signed in again.").await;
    assert_eq!(value_of(&phone, "comment").await, "Too expensive.");
    eventually("the button to have the focus", || async {
        (phone.run("return document.activeElement.id").await == "reject").then_some(())
    })
    .await;
    phone.click("Reject").await;
    phone.sees("You rejected this.").await;
    phone.sees("Too expensive.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_survives_a_reload_until_it_is_sent() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", "Fine.").await;
    phone.reload().await;
    phone.sees("Comment (optional)").await;
    assert_eq!(value_of(&phone, "comment").await, "Fine.");
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    let drafts = "return Object.keys(sessionStorage).filter((key) => key.includes('draft'))";
    assert_eq!(phone.run(drafts).await, json!([]));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_task_survives_escape_and_the_end_of_the_session() {
    let system = System::start().await;
    system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    phone.press(ESCAPE).await;
    dialog_closes(&phone).await;
    phone.click("New task").await;
    phone.sees("This is what you wrote before.").await;
    assert_eq!(value_of(&phone, "title").await, "Buy a chair");

    end_sessions(&system, REQUESTER).await;
    phone.click("Create").await;
    phone.sees("Your session has ended.").await;
    sign_in(&phone, REQUESTER, "a new password").await;
    phone.sees("You are signed in again.").await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    // Escape does not lose the link either.
    phone.press(ESCAPE).await;
    phone.follow("Buy a chair").await;
    phone.click("Link for the approver").await;
    phone.sees("Copy link").await;
    let link = "return document.getElementById('link').value";
    let first = phone.run(link).await;
    // Nor does the end of the tab.
    phone.click("Done").await;
    phone.run("sessionStorage.removeItem(Object.keys(sessionStorage).find((key) => key.includes('-link-')))").await;
    phone.reload().await;
    phone.click("New link for the approver").await;
    phone.sees("the old one stops working").await;
    takes_presses(&phone).await;
    let create = "document.querySelector('dialog form button:not(.plain):not(.link)').click()";
    phone.run(create).await;
    phone.sees("Copy link").await;
    assert_ne!(phone.run(link).await, first);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_sent_when_the_browser_is_online_again() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    phone.set_online(false).await;
    // The text comes after the last attempt, when the longest pause has ended.
    let hurry =
        "const real = setTimeout; globalThis.setTimeout = (work, pause) => real(work, pause / 10)";
    phone.run(hurry).await;
    phone.click("Approve").await;
    phone.sees("as soon as you are online again").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.set_online(true).await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}
