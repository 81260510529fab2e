//! The list of a person's tasks.

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use super::{APPROVER, REQUESTER, poll, sign_in, signed_in, status, task_with, write_task};
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
    let phone = signed_in(&system, "/", APPROVER).await;
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
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    let refuse = "navigator.clipboard.writeText = () => Promise.reject(new Error('refused'));
        document.execCommand = () => { window.isRefused = true; return false; }";
    phone.run(refuse).await;
    phone.click("Copy link").await;
    eventually("the browser to refuse to copy", || async {
        (phone.run("return window.isRefused").await == true).then_some(())
    })
    .await;
    assert!(!phone.text().await.contains("Copied"));
    let copy = "delete navigator.clipboard.writeText; delete document.execCommand";
    phone.run(copy).await;
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

/// The identifiers of the rows, once there are this many.
async fn rows(phone: &Browser, number: usize) -> Vec<Value> {
    let ids = "return [...document.querySelectorAll('#rows a')].map(({ id }) => id)";
    eventually(&format!("{number} rows"), || async {
        let ids = phone.run(ids).await;
        let is_busy = phone.count("#list[aria-busy]").await > 0;
        let ids = ids.as_array().unwrap().clone();
        (ids.len() == number && !is_busy).then_some(ids)
    })
    .await
}

async fn focus_is_on(phone: &Browser, id: &str) {
    eventually(&format!("the focus to be on {id}"), || async {
        let focused = "return document.activeElement.id || document.activeElement.dataset.tab";
        (phone.run(focused).await == id).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_again_and_again_is_said_once() {
    let system = System::start().await;
    let phone = signed_in(&system, "/", "admin@countersign.local").await;
    phone.sees("nothing to decide.").await;
    for (path, text) in [
        ("/", "nothing to decide."),
        ("/admin?view=deliveries", "Nothing found."),
        ("/admin?view=queues", "webhook.due-deliveries"),
    ] {
        phone.open(&format!("{}{path}", system.http.base())).await;
        phone.sees(text).await;
        let offline = "window.fetch = () => Promise.reject(new TypeError('offline'))";
        phone.run(offline).await;
        poll(&phone).await;
        phone.sees("The server cannot be reached.").await;
        // Nothing of it waits for the network, so all is done after the next turn of the browser.
        let again = "document.body.style.minHeight = '3000px'; scrollTo(0, 1000);
            const said = document.querySelector('#alert p');
            dispatchEvent(new Event('online'));
            return new Promise((done) => setTimeout(() => done([said.isConnected, scrollY])))";
        assert_eq!(phone.run(again).await, json!([true, 1000]), "{path}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_inbox_have_an_end_and_keep_the_focus() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let approver = system.sign_up(APPROVER).await;
    for number in 1..=55 {
        let task = task_with(&system, &token, &format!("Task number {number}"), "").await;
        // Some are left for the list of what is to be decided.
        let verb = match number {
            1..=26 => continue,
            number if number % 3 == 0 => "reject",
            _ => "approve",
        };
        let path = format!("/people-task/tasks/{}/{verb}", task.id);
        let _ = system.put(&path, &approver, &json!({})).await;
    }
    let phone = signed_in(&system, "/", APPROVER).await;
    phone.sees("1–25 of 26").await;
    for offset in ["1000", "99999999", "26"] {
        let path = format!("{}/?offset={offset}", system.http.base());
        phone.open(&path).await;
        let _ = rows(&phone, 1).await;
        phone.sees("26–26 of 26").await;
    }
    // A new task moves the rows, and not the focus.
    phone
        .run("document.getElementById('previousPage').focus()")
        .await;
    let _ = task_with(&system, &token, "Task number 56", "").await;
    poll(&phone).await;
    phone.sees("26–27 of 27").await;
    focus_is_on(&phone, "previousPage").await;
    phone.fill("Search titles and people", "no such task").await;
    let said = "return document.querySelector('#summary[role=status]').innerText";
    eventually("nothing to be announced", || async {
        (phone.run(said).await == "Nothing found.").then_some(())
    })
    .await;

    phone
        .run("document.querySelector('[data-tab=decided]').focus()")
        .await;
    phone.press('\u{e007}').await;
    let first = rows(&phone, 25).await;
    focus_is_on(&phone, "decided").await;
    phone.follow("Next page").await;
    let second = rows(&phone, 4).await;
    phone.sees("26–29 of 29").await;
    assert!(second.iter().all(|id| !first.contains(id)));
    focus_is_on(&phone, "heading").await;
    phone.follow("Previous page").await;
    assert_eq!(rows(&phone, 25).await, first);
    let beyond = format!("{}/?tab=decided&offset=500,500", system.http.base());
    phone.open(&beyond).await;
    assert_eq!(rows(&phone, 4).await, second);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_of_several_lists_is_not_sorted_by_title() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let phone = signed_in(&system, "/", APPROVER).await;
    phone.sees("nothing to decide.").await;
    let sorts = "const sort = document.getElementById('sort');
        return [sort.value, [...sort.options].some(({ value }) => value === 'title:1')]";
    for (tab, expected) in [
        ("created", json!(["title:1", true])),
        ("decided", json!(["mtime:-1", false])),
    ] {
        let path = format!("{}/?tab={tab}&sort=title:1", system.http.base());
        phone.open(&path).await;
        phone.sees("You have not").await;
        assert_eq!(phone.run(sorts).await, expected, "{tab}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}
