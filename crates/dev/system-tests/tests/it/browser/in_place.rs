//! Who is not the approver must choose to decide in their place.

use serde_json::json;
use testkit::eventually;

use super::changes::change;
use super::ended_sessions::send;
use super::{
    APPROVER, REQUESTER, answer, buttons_work, dialog_closes, keep_from_polling, poll,
    press_at_once, read_change, sign_in, signed_in, status, task_with,
};
use crate::harness::System;
use crate::webdriver::Browser;

#[tokio::test(flavor = "multi_thread")]
async fn a_creator_chooses_to_decide_in_place_of_the_approver() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    phone.sees(&format!("{APPROVER} decides this.")).await;
    assert_eq!(phone.count("#approve").await, 0);
    press_at_once(&phone, "article", "#approve").await;
    phone.click("Decide yourself …").await;
    phone
        .sees(&format!("You decide in place of {APPROVER}."))
        .await;
    buttons_work(&phone).await;
    assert_eq!(phone.run("return window.isTaken").await, false);
    phone.click("Approve").await;
    phone
        .sees(&format!("You approved this in place of {APPROVER}."))
        .await;
    assert_eq!(status(&system, &token, &task).await, "approved");
    phone.reload().await;
    phone
        .sees(&format!("Approved by {REQUESTER} in place of {APPROVER}"))
        .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_chooses_to_decide_reads_first_what_is_new() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    phone.sees(&format!("{APPROVER} decides this.")).await;
    let text = json!({"description": "It costs a million.\n\n".repeat(50)});
    change(&system, &token, &task, &text).await;
    poll(&phone).await;
    phone.sees("This task was just changed.").await;
    phone.click("Decide yourself …").await;
    phone.sees("Read the change").await;
    assert_eq!(phone.count("#decide[hidden]").await, 1);
    assert_eq!(phone.count(".changes ins").await, 1);
    read_change(&phone).await;

    // It says who is the approver now.
    let third = "third@example.com";
    change(&system, &token, &task, &json!({"approver": third})).await;
    poll(&phone).await;
    phone
        .sees(&format!("You decide in place of {third}."))
        .await;
    read_change(&phone).await;
    phone.click("Approve").await;
    phone
        .sees(&format!("You approved this in place of {third}."))
        .await;
    assert_eq!(status(&system, &token, &task).await, "approved");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_change_leaves_those_of_others_to_be_read() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    keep_from_polling(&phone).await;
    let url = format!("{}/tasks?taskId={}", system.http.base(), task.id);
    phone.open(&url).await;
    sign_in(&phone, REQUESTER, System::PASSWORD).await;
    phone.click("Decide yourself …").await;
    let long = |text: &str| json!({"description": text.repeat(50)});
    let dear = long("It costs a million.\n\n");
    change(&system, &token, &task, &dear).await;
    poll(&phone).await;
    phone.sees("Read the change").await;
    phone.click("New link for the approver").await;
    phone.sees("the old one stops working").await;
    send(&phone, "dialog form").await;
    phone.click("Done").await;
    // The button for it is there once the page shows the task again.
    phone.sees("Link for the approver").await;
    assert_eq!(phone.count("#decide[hidden]").await, 1);
    read_change(&phone).await;

    let late = "async (send) => {
        const response = await send();
        return new Promise((done) => { window.release = () => done(response); });
    }";
    answer(&phone, "PUT", &["(send) => send()", late]).await;
    // What the person wrote needs no reading.
    phone.click("Edit").await;
    phone.fill("Title", "Buy two chairs").await;
    phone.click("Save").await;
    dialog_closes(&phone).await;
    phone.sees("Buy two chairs").await;
    assert_eq!(phone.count("#decide:not([hidden])").await, 1);
    // What another person wrote before the page loaded the task again does.
    phone.click("Edit").await;
    phone.fill("Title", "Buy three chairs").await;
    phone.click("Save").await;
    eventually("the edit to be saved", || async {
        let path = format!("/people-task/tasks/{}", task.id);
        let saved = system.get(&path, &token).await.json;
        (saved["title"] == "Buy three chairs").then_some(())
    })
    .await;
    let dearer = long("It costs a billion.\n\n");
    change(&system, &token, &task, &dearer).await;
    phone.run("window.release()").await;
    phone.sees("It costs a billion.").await;
    assert_eq!(phone.count("#decide[hidden]").await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_decision_there_is_a_way_on() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let _ = task_with(&system, &token, "Buy a table", "").await;
    let _ = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, "/", APPROVER).await;
    phone.follow("Buy a chair").await;
    phone.click("Reject").await;
    phone.sees("You rejected this.").await;
    phone.follow("Next task").await;
    phone.sees("Buy a table").await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.follow("Back to your tasks").await;
    phone.sees("nothing to decide.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}
