//! The forms that create and change: a change by another user meanwhile stops none of them, Escape loses nothing, and without a
//! response nothing is created twice.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::accessibility::open_webhooks;
use super::changes::change;
use super::drafts::{ESCAPE, value_of};
use super::ended_sessions::send;
use super::{
    APPROVER, LOST, REQUESTER, answer, dialog_closes, signed_in, takes_presses, task_with,
    write_task,
};
use crate::harness::{System, Task};

const UNREACHABLE: &str = "The server cannot be reached.";
const MEANWHILE: &str = "Another person changed this task.";

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
async fn a_creator_is_offered_the_link_of_the_present_approver_only() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = open(&system, REQUESTER, &task).await;
    phone.click("New link for the approver").await;
    phone.sees("the old one stops working").await;
    send(&phone, "dialog form").await;
    phone.click("Done").await;
    phone.sees("Link for the approver").await;
    // The page has shown its buttons again meanwhile.
    let focused = "return document.activeElement.innerText";
    eventually("the button to have the focus", async || {
        (phone.run(focused).await == "New link for the approver").then_some(())
    })
    .await;
    // Another tab may have replaced it.
    phone.sees("New link for the approver").await;
    let other = json!({"approver": "third@example.com"});
    change(&system, &token, &task, &other).await;
    phone.reload().await;
    phone.sees("New link for the approver").await;
    assert!(!phone.text().await.contains("Link for the approver"));
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
    answer(&phone, "PUT", &[LOST]).await;
    send(&phone, "dialog form").await;
    phone.sees(UNREACHABLE).await;
    send(&phone, "dialog form").await;
    dialog_closes(&phone).await;
    let path = format!("/people-task/tasks/{}", task.id);
    let saved = system.get(&path, &token).await.json;
    assert_eq!(saved["approver"], "third@example.com");
    phone.sees("Your change is saved").await;
    phone.sees("third@example.com decides now.").await;
    phone.follow("Your tasks").await;
    phone.sees("nothing to decide.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

/// The number of entries of a list.
async fn length(system: &System, path: &str, token: &str) -> usize {
    system.get(path, token).await.json.as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_creation_got_no_response_is_created_once() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    answer(&phone, "POST /people-task/tasks", &[LOST]).await;
    phone.click("Create").await;
    phone.sees(UNREACHABLE).await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    let tasks = "/people-task/tasks?role=requester";
    assert_eq!(length(&system, tasks, &token).await, 1);
    phone.click("Done").await;

    // What is written differently is another task.
    write_task(&phone).await;
    answer(&phone, "POST /people-task/tasks", &[LOST]).await;
    phone.click("Create").await;
    phone.sees(UNREACHABLE).await;
    phone.fill("Title", "Buy two chairs").await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    assert_eq!(length(&system, tasks, &token).await, 3);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_closes_no_form_that_is_being_sent() {
    let system = System::start().await;
    system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    let late =
        "() => new Promise((_, fail) => { window.lose = () => fail(new TypeError('lost')); })";
    answer(&phone, "POST /people-task/tasks", &[late]).await;
    phone.click("Create").await;
    phone.press(ESCAPE).await;
    phone.press(ESCAPE).await;
    phone.run("window.lose()").await;
    phone.sees(UNREACHABLE).await;
    phone.press(ESCAPE).await;
    dialog_closes(&phone).await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_form_was_closed_without_a_response_is_created_once() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    for _ in 0..2 {
        answer(&phone, "POST /people-task/tasks", &[LOST]).await;
        phone.click("Create").await;
        phone.sees(UNREACHABLE).await;
        phone.press(ESCAPE).await;
        dialog_closes(&phone).await;
        phone.click("New task").await;
        phone.sees("This is what you wrote before.").await;
    }
    phone.reload().await;
    phone.click("New task").await;
    phone.sees("This is what you wrote before.").await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    let tasks = "/people-task/tasks?role=requester";
    assert_eq!(length(&system, tasks, &token).await, 1);

    // Who writes the same again later means another task.
    phone.click("Done").await;
    write_task(&phone).await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    assert_eq!(length(&system, tasks, &token).await, 2);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_whose_registration_got_no_response_is_registered_once() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = open(&system, REQUESTER, &task).await;
    open_webhooks(&phone).await;
    let url = format!("{}?correlationId=once", system.webhook_url());
    phone.fill("URL", &url).await;
    answer(&phone, "POST /people-task/webhooks", &[LOST]).await;
    phone.click("Add").await;
    phone.sees(UNREACHABLE).await;
    // The list after it is lost, too.
    answer(&phone, "GET", &[LOST]).await;
    phone.click("Add").await;
    phone.sees(UNREACHABLE).await;
    eventually("the field to be empty", async || {
        (value_of(&phone, "webhook-url").await == "").then_some(())
    })
    .await;
    let webhooks = format!("/people-task/tasks/{}/webhooks", task.id);
    assert_eq!(length(&system, &webhooks, &token).await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_was_removed_is_registered_again() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = open(&system, REQUESTER, &task).await;
    open_webhooks(&phone).await;
    let url = format!("{}?correlationId=again", system.webhook_url());
    phone.fill("URL", &url).await;
    answer(&phone, "POST /people-task/webhooks", &[LOST]).await;
    phone.click("Add").await;
    phone.sees(UNREACHABLE).await;
    // The list is loaded when it is opened.
    let closed = "return document.querySelector('details.card').open = false";
    assert_eq!(phone.run(closed).await, false);
    open_webhooks(&phone).await;
    phone.sees("correlationId=again").await;
    takes_presses(&phone).await;
    phone.click("Remove").await;
    phone.sees("The webhook is removed.").await;
    takes_presses(&phone).await;
    phone.fill("URL", &url).await;
    phone.click("Add").await;
    phone.sees("The webhook is added.").await;
    let webhooks = format!("/people-task/tasks/{}/webhooks", task.id);
    assert_eq!(length(&system, &webhooks, &token).await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_got_no_response_is_not_called_that_of_another_person() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = open(&system, REQUESTER, &task).await;
    phone.click("Edit").await;
    // With a space that the server removes.
    phone.fill("Title", "Buy two chairs ").await;
    answer(&phone, "PUT", &[LOST]).await;
    phone.click("Save").await;
    phone.sees(UNREACHABLE).await;
    phone.click("Save").await;
    dialog_closes(&phone).await;
    phone.sees("Buy two chairs").await;

    phone.click("Withdraw").await;
    phone.fill("Reason (optional)", "We found one.").await;
    answer(&phone, "POST /people-task/tasks", &[LOST]).await;
    phone.click("Yes, withdraw").await;
    phone.sees(UNREACHABLE).await;
    phone.click("Yes, withdraw").await;
    dialog_closes(&phone).await;
    phone.sees("You withdrew this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_too_long_is_refused_and_not_cut() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    phone.fill("Title", &"é".repeat(501)).await;
    phone.click("Create").await;
    phone
        .sees("This is too long: at most 500 characters.")
        .await;
    let tasks = "/people-task/tasks?role=requester";
    assert_eq!(length(&system, tasks, &token).await, 0);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_names_a_person_that_they_may_not_name_learns_it_at_the_field() {
    let system = System::start().await;
    let creator = system.sign_up("flow@example.com").await;
    system.sign_up(REQUESTER).await;
    let task = task_with(&system, &creator, "Buy a chair", "").await;
    let phone = open(&system, REQUESTER, &task).await;
    phone.click("Edit").await;
    phone.fill("Approver (e-mail address)", REQUESTER).await;
    send(&phone, "dialog form").await;
    phone.sees("You may not name this person here.").await;
    assert_eq!(phone.count("#approver[aria-invalid]:focus").await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}
