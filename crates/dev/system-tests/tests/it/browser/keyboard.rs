//! Deciding and sending by keyboard: a key does what has the focus, once, and never more than what was read.

use std::time::Duration;

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::changes::change;
use super::{APPROVER, REQUESTER, link, presses_count, read_change, signed_in, status, task_with};
use crate::harness::System;

/// The modifiers of an event in the DevTools protocol.
const ALONE: u8 = 0;
const CTRL: u8 = 2;

/// Presses Enter. A person who holds it repeats it, ten times a second.
async fn enter(phone: &Browser, modifiers: u8, repeats: u32) {
    let event = |kind: &str, is_repeat: bool| {
        json!({
            "type": kind, "modifiers": modifiers, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13,
            "text": if kind == "keyDown" { "\r" } else { "" }, "autoRepeat": is_repeat,
        })
    };
    let send = async |event| {
        phone.devtools("Input.dispatchKeyEvent", &event).await;
    };
    send(event("keyDown", false)).await;
    for _ in 0..repeats {
        tokio::time::sleep(Duration::from_millis(100)).await;
        send(event("keyDown", true)).await;
    }
    send(event("keyUp", false)).await;
}

async fn focus(phone: &Browser, css: &str) {
    let script = format!("document.querySelector({}).focus()", json!(css));
    phone.run(&script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_presses_the_button_that_has_the_focus_and_is_held_for_one_press() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "requester": REQUESTER, "approver": APPROVER, "confirmationRequired": true,
    });
    let task = system.create_task_from(&token, &body).await;
    let phone = Browser::phone().await;
    let proposed = format!("{}&action=approve", link(&system, &task));
    phone.open(&proposed).await;
    phone.sees("Press “Approve” to confirm.").await;
    presses_count(&phone).await;
    focus(&phone, "#reject").await;
    enter(&phone, CTRL, 0).await;
    assert!(!phone.text().await.contains("Yes, approve"));

    // It is held for longer than a second press has to wait.
    focus(&phone, "#approve").await;
    enter(&phone, ALONE, 10).await;
    phone.sees("Do you really approve this?").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.click("Add a comment").await;
    enter(&phone, CTRL, 0).await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_decides_nothing_that_was_not_read() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "It squeaks.").await;
    let phone = Browser::phone().await;
    let proposed = format!("{}&action=approve", link(&system, &task));
    phone.open(&proposed).await;
    phone.click("Add a comment").await;
    let long = "Another line.\n\n".repeat(100);
    change(&system, &token, &task, &json!({"description": long})).await;
    presses_count(&phone).await;
    enter(&phone, CTRL, 0).await;
    phone.sees("Read the change").await;
    focus(&phone, "#comment").await;
    enter(&phone, CTRL, 0).await;
    focus(&phone, "#comment").await;
    enter(&phone, CTRL, 0).await;
    // It showed the next part, and not the end at once.
    let place =
        "const { scrollTop, scrollHeight, clientHeight } = document.getElementById('change');
        return [scrollTop > 0, scrollTop + 2 * clientHeight < scrollHeight]";
    assert_eq!(phone.run(place).await, json!([true, true]));
    assert_eq!(status(&system, &token, &task).await, "pending");

    // What changes after that has to be read, too.
    read_change(&phone).await;
    change(&system, &token, &task, &json!({"title": "Buy ten"})).await;
    focus(&phone, "#comment").await;
    enter(&phone, CTRL, 0).await;
    phone.sees("Buy ten").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    read_change(&phone).await;
    focus(&phone, "#comment").await;
    enter(&phone, CTRL, 0).await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_held_creates_one_task_and_confirms_no_remark() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    phone.click("New task").await;
    phone.fill("Title", "Buy a chair").await;
    for (modifiers, domain) in [(CTRL, "intranet"), (ALONE, "office")] {
        let address = format!("me@{domain}");
        phone.fill("Approver (e-mail address)", &address).await;
        enter(&phone, modifiers, 10).await;
        phone
            .sees(&format!("“{domain}” is no complete domain"))
            .await;
    }
    focus(&phone, "dialog button.plain").await;
    enter(&phone, CTRL, 0).await;
    let count = async || {
        let reply = system.get("/people-task/tasks-count", &token).await;
        reply.json["count"].clone()
    };
    assert_eq!(count().await, 0);
    eventually("the dialog to be closed", || async {
        (phone.count("dialog").await == 0).then_some(())
    })
    .await;
    phone.click("New task").await;
    phone.fill("Approver (e-mail address)", APPROVER).await;
    enter(&phone, CTRL, 10).await;
    phone.sees("Copy link").await;
    assert_eq!(count().await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}
