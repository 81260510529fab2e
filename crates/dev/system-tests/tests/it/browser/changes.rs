//! Nobody decides on, or overwrites, what they did not see.

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use super::accessibility::open_webhooks;
use super::drafts::value_of;
use super::{
    APPROVER, REQUESTER, buttons_work, keep_from_polling, link, poll, read_change, sign_in,
    signed_in, status, task_with,
};
use crate::harness::{System, Task};

/// Changes a task behind the page's back.
pub(super) async fn change(system: &System, token: &str, task: &Task, changes: &Value) {
    let path = format!("/people-task/tasks/{}", task.id);
    let _ = system.put(&path, token, changes).await.expect(200);
}

/// The words that a page shows as removed and as added.
async fn marked(phone: &Browser) -> Value {
    let script = "return ['del', 'ins'].map((name) => [...document.querySelectorAll(`.changes ${name}`)].map((one) => one.innerText))";
    phone.run(script).await
}

/// Whether an element is within the screen.
async fn is_in_view(phone: &Browser, id: &str) -> bool {
    let script = format!(
        "const {{ top, bottom }} = document.getElementById({}).getBoundingClientRect();
         return top >= 0 && bottom <= innerHeight",
        json!(id)
    );
    phone.run(&script).await == json!(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_was_never_shown_is_not_approved() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let long = format!("The price is 10.\n\n{}", "A line of text.\n\n".repeat(200));
    let task = task_with(&system, &token, "Buy a chair", &long).await;
    let phone = Browser::phone().await;
    keep_from_polling(&phone).await;
    phone.open(&link(&system, &task)).await;
    phone.sees("The price is 10.").await;
    // A press that was meant for the button before them comes just after the buttons that decide are back.
    let late =
        "const [decide, approve] = ['decide', 'approve'].map((id) => document.getElementById(id));
        new MutationObserver(() => {
          if (decide.hidden) return;
          approve.click();
          window.isTaken = approve.disabled;
        }).observe(decide, { attributeFilter: ['hidden'] })";
    phone.run(late).await;
    let dear = long.replace("10.", "10,000.");
    change(&system, &token, &task, &json!({"description": dear})).await;
    phone.click("Approve").await;
    phone.sees("This task was just changed.").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    // It is where the person looks, though the text itself is far above or below.
    assert!(is_in_view(&phone, "change").await);
    assert_eq!(marked(&phone).await, json!([[], [",000"]]));
    assert_eq!(phone.count("#description .changed").await, 1);

    // The buttons come back when the change was in view.
    buttons_work(&phone).await;
    assert_eq!(phone.run("return window.isTaken").await, false);
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    assert_eq!(status(&system, &token, &task).await, "approved");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_shown_at_the_buttons_and_read_before_they_work() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "It squeaks.").await;
    let phone = Browser::phone().await;
    keep_from_polling(&phone).await;
    phone.open(&link(&system, &task)).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", "Fine.").await;
    let long = "Another line.\n\n".repeat(100);
    change(&system, &token, &task, &json!({"description": long})).await;
    poll(&phone).await;
    phone.sees("Read the change").await;
    assert!(is_in_view(&phone, "change").await);
    assert_eq!(
        phone.run("return document.activeElement.id").await,
        "comment"
    );
    assert_eq!(phone.count("#decide[hidden]").await, 1);
    read_change(&phone).await;
    // What changes after that is asked for again, with a rejection as with an approval.
    let longer = json!({"title": "Buy ten", "description": long.repeat(2)});
    change(&system, &token, &task, &longer).await;
    phone.click("Reject").await;
    phone.sees("Read the change").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    let added = json!([["a chair"], ["ten", long]]);
    assert_eq!(marked(&phone).await, added);
    read_change(&phone).await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.sees("Fine.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_of_the_due_date_is_a_change_that_is_shown() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "requester": REQUESTER, "approver": APPROVER, "decisionBy": "2030-10-27 01:30:37",
    });
    let task = system.create_task_from(&token, &body).await;
    let phone = Browser::phone().await;
    keep_from_polling(&phone).await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Buy a chair").await;
    let later = json!({"decisionBy": "2030-10-27 01:30:38"});
    change(&system, &token, &task, &later).await;
    phone.click("Approve").await;
    phone.sees("This task was just changed.").await;
    assert_eq!(marked(&phone).await, json!([["37"], ["38"]]));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_takes_neither_the_focus_nor_what_is_written_below() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let text = "It has [a link](https://example.com).";
    let task = task_with(&system, &token, "Buy a chair", text).await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    open_webhooks(&phone).await;
    phone.fill("URL", "https://example.com/hook").await;
    for (focused, text, title) in [
        ("h1", "Buy two", "Buy two"),
        ("#description a", "a link", "Buy three"),
        (".actions.card button", "Edit", "Buy four"),
        ("#webhook-url", "", "Buy five"),
    ] {
        phone
            .run(&format!("document.querySelector('{focused}').focus()"))
            .await;
        change(&system, &token, &task, &json!({"title": title})).await;
        poll(&phone).await;
        phone.sees(title).await;
        let focus = "return document.activeElement.innerText";
        eventually(&format!("the focus to stay on {focused}"), || async {
            (phone.run(focus).await == text).then_some(())
        })
        .await;
    }
    let url = "return document.getElementById('webhook-url').value";
    assert_eq!(phone.run(url).await, "https://example.com/hook");
    // The tools change the task as it is now.
    phone.click("Edit").await;
    phone.sees("Save").await;
    assert_eq!(value_of(&phone, "title").await, "Buy five");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_changes_only_what_the_person_changed() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "description": "first", "requester": REQUESTER, "approver": APPROVER,
        "decisionBy": "2030-10-27 01:30:37",
    });
    let task = system.create_task_from(&token, &body).await;
    let phone = Browser::phone().await;
    phone
        .open(&format!("{}/tasks?taskId={}", system.http.base(), task.id))
        .await;
    sign_in(&phone, REQUESTER, System::PASSWORD).await;
    phone.click("Edit").await;
    phone.fill("Title", "Buy two chairs").await;
    change(&system, &token, &task, &json!({"description": "second"})).await;
    phone.click("Save").await;
    phone.sees("Another person changed this task.").await;
    assert_eq!(marked(&phone).await, json!([["first"], ["second"]]));
    phone.click("Save").await;
    eventually("the edit to be saved", || async {
        let path = format!("/people-task/tasks/{}", task.id);
        let saved = system.get(&path, &token).await.json;
        (saved["title"] == "Buy two chairs").then(|| {
            assert_eq!(saved["description"], "second");
            assert_eq!(saved["decisionBy"], "2030-10-27 01:30:37");
        })
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}
