//! The list of a person's tasks.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::{APPROVER, REQUESTER, sign_in, status, task_with};
use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_lists_pending_tasks_that_are_decided_on_their_pages() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let chair = task_with(&system, &token, "Buy a chair", "").await;
    let table = task_with(&system, &token, "Buy a table", "").await;

    let phone = Browser::phone().await;
    // The address that flow engines know leads to the start page.
    phone.open(&format!("{}/tasks", system.http.base())).await;
    sign_in(&phone, APPROVER, "wrong password").await;
    phone.sees("Incorrect e-mail address or password").await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("Buy a chair").await;
    phone.sees("Buy a table").await;
    let text = phone.text().await;
    assert!(!text.contains("Incorrect e-mail address or password"));

    phone.follow("Buy a table").await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    assert_eq!(status(&system, &token, &table).await, "approved");
    assert_eq!(status(&system, &token, &chair).await, "pending");

    phone.follow("Tasks").await;
    eventually("only the other task to be listed", || async {
        let text = phone.text().await;
        (text.contains("Buy a chair") && !text.contains("Buy a table")).then_some(())
    })
    .await;
    phone.follow("Decided").await;
    phone.sees("Buy a table").await;
    phone.click("Sign out").await;
    phone.sees("Forgot your password?").await;
    assert!(!phone.text().await.contains("Buy a table"));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_pages_searches_and_updates_itself() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    for number in 1..=30 {
        let title = format!("Task number {number}");
        let _ = task_with(&system, &token, &title, "").await;
    }
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("Task number 30").await;
    assert_eq!(phone.count("#rows > li").await, 25);
    phone.follow("Next page").await;
    phone.sees("Task number 5").await;
    assert_eq!(phone.count("#rows > li").await, 5);
    phone.reload().await;
    phone.sees("Task number 5").await;
    phone.follow("Previous page").await;
    phone.sees("Task number 30").await;
    phone.follow("Next page").await;
    phone.sees("Task number 5").await;

    phone.fill("Search titles and people", "númber 17").await;
    eventually("only one task to be found", || async {
        (phone.count("#rows > li").await == 1).then_some(())
    })
    .await;
    phone.sees("Task number 17").await;
    let _ = task_with(&system, &token, "Task number 17b", "").await;
    phone.sees("Task number 17b").await;
    // It is said, too.
    let said = "return document.querySelector('#summary[role=status]').innerText";
    eventually("the number to be announced", || async {
        (phone.run(said).await == "2 tasks").then_some(())
    })
    .await;
    phone.fill("Search titles and people", "requester@").await;
    eventually("the tasks of a person to be found", || async {
        (phone.count("#rows > li").await == 25).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_task_is_decided_with_its_link() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    sign_in(&phone, REQUESTER, System::PASSWORD).await;
    phone.click("New task").await;
    phone.fill("Title", "Buy a chair").await;
    phone.fill("Approver (e-mail address)", APPROVER).await;
    phone.click("Create").await;
    phone.click("Copy link").await;
    phone.sees("Copied").await;
    let link = phone
        .run("return document.getElementById('link').value")
        .await;
    phone.click("Done").await;
    phone.follow("Buy a chair").await;
    phone.sees("Waiting for a decision").await;
    phone.click("Edit").await;
    phone.fill("Title", "Buy two chairs").await;
    phone.click("Save").await;
    phone.sees("Buy two chairs").await;

    let approver = Browser::phone().await;
    approver.open(link.as_str().unwrap()).await;
    approver.click("Approve").await;
    approver.sees("You approved this.").await;
    let tasks = system.get("/people-task/tasks?role=creator", &token).await;
    assert_eq!(tasks.json[0]["status"], json!("approved"));
    for phone in [phone, approver] {
        phone.assert_no_errors().await;
    }
    system.stop().await;
}
