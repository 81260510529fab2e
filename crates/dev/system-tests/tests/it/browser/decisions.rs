//! Deciding: by keyboard, with a comment, and when the connection fails.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::{
    APPROVER, LOST, REQUESTER, answer, keep_from_polling, link, poll, presses_count, run_first,
    status, task_with,
};
use crate::harness::System;

// Code points of keys in the WebDriver protocol.
const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_has_the_comment_that_the_task_requires() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "requester": REQUESTER, "approver": APPROVER, "commentRequired": true,
    });
    let task = system.create_task_from(&token, &body).await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.click("Reject").await;
    phone.sees("Say why you reject this.").await;
    assert_eq!(
        phone.run("return document.activeElement.id").await,
        "comment"
    );
    assert_eq!(status(&system, &token, &task).await, "pending");

    phone
        .fill("Comment (required if you reject)", "Too expensive.")
        .await;
    phone.click("Reject").await;
    phone.sees("You rejected this.").await;
    phone.sees("Too expensive.").await;
    let path = format!("/people-task/tasks/{}?include=comment", task.id);
    let decided = system.get(&path, &token).await;
    assert_eq!(decided.json["comment"], "Too expensive.");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_ask_for_a_second_press() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "requester": REQUESTER, "approver": APPROVER, "confirmationRequired": true,
    });
    let task = system.create_task_from(&token, &body).await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    // For the page, a tenth of a second passes from one press to the next.
    phone
        .run("window.clock = 600; performance.now = () => window.clock += 100")
        .await;
    // A double click is one press.
    let twice = "const button = document.getElementById('approve'); button.click(); button.click()";
    phone.run(twice).await;
    phone.sees("Do you really approve this?").await;
    // The other button asks for itself.
    phone.click("Reject").await;
    phone.sees("Do you really reject this?").await;
    assert!(!phone.text().await.contains("Yes, approve"));
    assert_eq!(status(&system, &token, &task).await, "pending");
    // A press that comes too soon after the one before it does not count, however many there are.
    let often = "const timer = setInterval(() => document.getElementById('reject').click(), 100);
        return new Promise((done) => setTimeout(() => { clearInterval(timer); done(); }, 1_500))";
    phone.run(often).await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.run("window.clock += 1_000").await;
    phone.click("Yes, reject").await;
    phone.sees("You rejected this.").await;
    assert_eq!(status(&system, &token, &task).await, "rejected");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click_that_opens_a_task_does_not_decide_it() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    run_first(&phone, "performance.now = () => 300").await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    let press =
        "const button = document.getElementById('approve'); button.click(); return button.disabled";
    assert_eq!(phone.run(press).await, false);
    phone.run("performance.now = () => 700").await;
    assert_eq!(phone.run(press).await, true);
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_decides_with_the_keyboard_alone() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    presses_count(&phone).await;
    let mut stops = Vec::new();
    while stops.last().is_none_or(|stop| stop != "approve") {
        assert!(stops.len() < 10, "{stops:?}");
        phone.press(TAB).await;
        let focused = phone.run("return document.activeElement.id").await;
        stops.push(focused.as_str().unwrap().to_owned());
    }
    phone.press(ENTER).await;
    phone.sees("You approved this.").await;
    // The focus is where the result is.
    assert_eq!(
        phone.run("return document.activeElement.id").await,
        "outcome"
    );
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_shows_at_once_and_survives_a_lost_connection() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    presses_count(&phone).await;
    phone.set_online(false).await;
    let press = "const button = document.getElementById('approve'); button.click(); return button.textContent";
    assert_eq!(phone.run(press).await, "Approving …");
    phone.sees("No connection: trying again …").await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.set_online(true).await;
    phone.sees("You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_whose_response_is_lost_counts_once() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    system.register_webhook(&token, &task.id, "lost").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    // The first decision arrives, but the page does not learn it.
    answer(&phone, "PUT", &[LOST]).await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    assert_eq!(phone.run("return window.sent").await, 2);
    system.wait_for_webhook("lost").await;
    assert_eq!(
        system
            .received("kind=webhook&correlationId=lost")
            .await
            .len(),
        1
    );
    phone.assert_no_errors().await;
    system.stop().await;
}

/// How a page measures the 15 seconds that a request may take, as scripts that let it measure fewer until `restore` is called.
const LIMITS: [&str; 2] = [
    "const limit = AbortSignal.timeout;
     AbortSignal.timeout = (time) => limit.call(AbortSignal, time / 100);
     const restore = () => { AbortSignal.timeout = limit; };",
    "delete AbortSignal.timeout;
     const limit = window.setTimeout;
     window.setTimeout = (work, time) => limit(work, time / 100);
     const restore = () => { window.setTimeout = limit; };",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_is_never_answered_is_sent_again() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    for limit in LIMITS {
        let task = task_with(&system, &token, "Buy a chair", "").await;
        let phone = Browser::phone().await;
        keep_from_polling(&phone).await;
        phone.open(&link(&system, &task)).await;
        phone.sees("Approve").await;
        presses_count(&phone).await;
        let silent = "const real = window.fetch;
            window.fetch = (url, { signal }) => {
              restore();
              window.fetch = real;
              return new Promise((done, fail) => signal?.addEventListener('abort', () => fail(signal.reason)));
            };";
        phone.run(&format!("{limit}\n{silent}")).await;
        phone.click("Approve").await;
        phone.sees("You approved this.").await;
        assert_eq!(status(&system, &token, &task).await, "approved");
        phone.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_press_knows_the_decision_of_the_first_one() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", "Fine with me.").await;
    let failed = "() => new Response('{}', { status: 500 })";
    answer(&phone, "PUT", &[LOST, failed]).await;
    phone.click("Approve").await;
    phone.sees("The server responded with status 500.").await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.sees("Fine with me.").await;
    assert_eq!(phone.run("return window.sent").await, 3);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_another_person_is_not_taken_for_the_own_one() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let refused = "new Response('{}', { status: 429 })";
    let lost = "Promise.reject(new TypeError('lost'))";
    let in_place = format!("Approved by {REQUESTER} in place of {APPROVER}");
    let by_link = format!("Approved by {APPROVER}");
    for (answered, comment, decided) in [
        (refused, "", &in_place),
        (lost, "", &in_place),
        (lost, "Mine.", &by_link),
    ] {
        let task = task_with(&system, &token, "Buy a chair", "").await;
        let phone = Browser::phone().await;
        phone.open(&link(&system, &task)).await;
        phone.click("Add a comment").await;
        phone.fill("Comment (optional)", comment).await;
        let until = format!("(send) => (window.isOver ? send() : {answered})");
        answer(&phone, "PUT", &[until.as_str(); 7]).await;
        phone.click("Approve").await;
        phone.sees("trying again …").await;
        let mut request = system
            .http
            .put(&format!("/people-task/tasks/{}/approve", task.id));
        request = if decided == &in_place {
            request.bearer(&token)
        } else {
            request.json(&json!({"secret": task.approver_secret, "comment": "Theirs."}))
        };
        let _ = request.send().await.expect(200);
        phone.run("window.isOver = true").await;
        phone.sees("Someone else was faster").await;
        phone.sees(decided).await;
        phone.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_answers_in_place_of_the_server_decides_nothing() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    let answers = [
        "() => new Response('<h1>Blocked</h1>', { status: 403 })",
        "() => new Response('<h1>Maintenance</h1>')",
        "() => new Response('')",
        r#"() => new Response('{"status": "pending"}')"#,
    ];
    answer(&phone, "PUT", &answers).await;
    phone.click("Approve").await;
    phone.sees("The server responded with status 403.").await;
    assert!(!phone.text().await.contains("no longer valid"));
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    assert_eq!(phone.run("return window.sent").await, 5);
    assert_eq!(status(&system, &token, &task).await, "approved");

    let other = task_with(&system, &token, "Buy a table", "").await;
    let blocked = "window.real = window.fetch;
        window.fetch = () => Promise.resolve(new Response('404 page not found', { status: 404 }))";
    run_first(&phone, blocked).await;
    phone.open(&link(&system, &other)).await;
    phone.sees("The server responded with status 404.").await;
    phone.run("window.fetch = window.real").await;
    // The secret is still known.
    let again = "document.querySelector('#content button').click()";
    phone.run(again).await;
    phone.sees("Buy a table").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_shown_before_the_decision_and_keeps_the_comment() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", "Fine with me.").await;
    let path = format!("/people-task/tasks/{}", task.id);
    let changed = json!({"title": "Buy ten chairs"});
    let _ = system.put(&path, &token, &changed).await;
    poll(&phone).await;
    phone.sees("This task was just changed.").await;
    phone.sees("Buy ten chairs").await;
    eventually("the comment to be there", || async {
        let comment = phone
            .run("return document.getElementById('comment').value")
            .await;
        (comment == "Fine with me.").then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}
