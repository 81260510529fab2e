//! The dialogs that change a task: a change by another user meanwhile stops none of them, and Escape loses nothing.

use crate::webdriver::Browser;
use serde_json::json;

use super::changes::change;
use super::drafts::{ESCAPE, value_of};
use super::ended_sessions::send;
use super::{APPROVER, REQUESTER, dialog_closes, signed_in, task_with};
use crate::harness::{System, Task};

const MEANWHILE: &str = "Somebody else changed this task meanwhile.";

/// Opens a task as a person with an account.
async fn open(system: &System, email: &str, task: &Task) -> Browser {
    signed_in(system, &format!("/tasks?taskId={}", task.id), email).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creator_edits_and_renews_the_link_of_a_task_that_changes_meanwhile() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = open(&system, REQUESTER, &task).await;
    phone.click("Edit").await;
    phone.fill("Title", "Buy two chairs").await;
    phone.press(ESCAPE).await;
    dialog_closes(&phone).await;
    phone.click("Edit").await;
    phone.sees("This is what you wrote before.").await;
    assert_eq!(value_of(&phone, "title").await, "Buy two chairs");
    // The field had no time, and gets one with seconds.
    let due = json!({"decisionBy": "2030-10-27 01:30:37"});
    change(&system, &token, &task, &due).await;
    send(&phone, "dialog form").await;
    phone.sees(MEANWHILE).await;
    send(&phone, "dialog form").await;
    dialog_closes(&phone).await;
    let path = format!("/people-task/tasks/{}", task.id);
    let saved = system.get(&path, &token).await.json;
    assert_eq!(saved["title"], "Buy two chairs");
    assert_eq!(saved["decisionBy"], "2030-10-27 01:30:37");

    phone.click("New link for the approver").await;
    phone.sees("the old one stops working").await;
    change(&system, &token, &task, &json!({"description": "Red."})).await;
    send(&phone, "dialog form").await;
    phone.sees(MEANWHILE).await;
    send(&phone, "dialog form").await;
    phone.sees("Copy link").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_reassigns_a_task_that_changes_meanwhile() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = open(&system, APPROVER, &task).await;
    phone.click("Reassign").await;
    phone
        .fill("Approver (e-mail address)", "third@example.com")
        .await;
    phone.press(ESCAPE).await;
    dialog_closes(&phone).await;
    phone.click("Reassign").await;
    phone.sees("This is what you wrote before.").await;
    change(&system, &token, &task, &json!({"title": "Buy two chairs"})).await;
    send(&phone, "dialog form").await;
    phone.sees(MEANWHILE).await;
    assert_eq!(value_of(&phone, "approver").await, "third@example.com");
    send(&phone, "dialog form").await;
    dialog_closes(&phone).await;
    let path = format!("/people-task/tasks/{}", task.id);
    let saved = system.get(&path, &token).await.json;
    assert_eq!(saved["approver"], "third@example.com");
    phone.assert_no_errors().await;
    system.stop().await;
}
