//! Who is not the approver must choose to decide in their place.

use serde_json::json;

use super::changes::change;
use super::{APPROVER, REQUESTER, poll, read_change, signed_in, status, task_with};
use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn a_creator_chooses_to_decide_in_place_of_the_approver() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    phone.sees(&format!("{APPROVER} decides this.")).await;
    assert_eq!(phone.count("#approve").await, 0);
    phone.click("Decide yourself …").await;
    phone
        .sees(&format!("You decide in place of {APPROVER}."))
        .await;
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
