//! axe finds nothing on any page, in light and in dark.

use crate::webdriver::{Browser, Screen};
use serde_json::{Value, json};

use super::{APPROVER, REQUESTER, buttons_work, link, poll, sign_in, signed_in, task_with};
use crate::harness::System;

const AXE: &str = include_str!("../../../vendor/axe.min.js");
/// The part of the documentation that Swagger UI renders is not ours.
const RUN: &str = "return axe.run({ exclude: ['#viewer'] }, { resultTypes: ['violations'] }).then(({ violations, passes }) =>
    passes.length === 0 ? ['axe checked nothing']
      : violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`))";

/// Checks what a page shows, once it shows this text.
pub(super) async fn check(browser: &Browser, text: &str) {
    browser.sees(text).await;
    let _ = browser.run(AXE).await;
    for scheme in ["light", "dark"] {
        // A colour that is still changing has another contrast.
        let features = [
            ("prefers-color-scheme", scheme),
            ("prefers-reduced-motion", "reduce"),
        ];
        browser.prefer(&features).await;
        let found = browser.run(RUN).await;
        assert_eq!(found, json!([]), "“{text}”, {scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_for_people_without_an_account_are_accessible() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let description = "# Why\n\n| Item | Price |\n|---|---|\n| Chair | 90 |\n\n- [An offer](https://example.com)\n\n`code`";
    let task = task_with(&system, &token, "Buy a chair", description).await;
    let phone = Browser::phone().await;
    let base = system.http.base();
    phone.open(base).await;
    check(&phone, "Forgot your password?").await;
    phone.click("Create an account").await;
    check(&phone, "Sign in instead").await;
    phone.click("Sign in instead").await;
    phone.click("Forgot your password?").await;
    check(&phone, "Send me a link").await;
    for (path, text) in [
        ("/reset-password?code=c0de", "Choose a new password"),
        ("/verify-email?code=c0de", "Confirm your e-mail address"),
        (
            "/tasks?taskId=0123456789abcdef01234567&secret=0",
            "not complete",
        ),
        ("/nothing", "Page not found"),
        ("/docs", "Get user information"),
    ] {
        phone.open(&format!("{base}{path}")).await;
        check(&phone, text).await;
    }
    phone.open(&link(&system, &task)).await;
    check(&phone, "Add a comment").await;
    phone.click("Add a comment").await;
    check(&phone, "Comment (optional)").await;
    let path = format!("/people-task/tasks/{}", task.id);
    let changes =
        json!({"description": "## Why\n\n#### Because\n\n![Chair](https://example.com/chair.png)"});
    let _ = system.put(&path, &token, &changes).await;
    poll(&phone).await;
    check(&phone, "This task was just changed.").await;
    // The change is longer than its part of the screen.
    phone.click("Read the change").await;
    buttons_work(&phone).await;
    phone.click("Approve").await;
    check(&phone, "You approved this.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_for_people_with_an_account_are_accessible() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    system
        .register_webhook(&token, &task.id, "accessible")
        .await;
    let body = json!({
        "title": "Buy a table", "requester": APPROVER, "approver": REQUESTER,
        "decisionBy": "2020-01-31 12:00:00",
    });
    let _ = system.create_task_from(&token, &body).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    check(&phone, "Buy a table").await;
    phone.follow("Created by me").await;
    check(&phone, "Buy a chair").await;
    phone.click("New task").await;
    check(&phone, "You can use Markdown.").await;
    phone.click("Cancel").await;
    phone.follow("Buy a chair").await;
    phone.click("Decide yourself …").await;
    check(&phone, "You decide in place of").await;
    open_webhooks(&phone).await;
    check(&phone, "correlationId=accessible").await;
    phone.follow("Account").await;
    check(&phone, "Current password").await;
    phone.assert_no_errors().await;

    let desktop = Browser::with(Screen::DESKTOP).await;
    desktop.open(system.http.base()).await;
    check(&desktop, "Forgot your password?").await;
    sign_in(&desktop, REQUESTER, System::PASSWORD).await;
    check(&desktop, "Buy a table").await;
    desktop
        .fill("Search titles and people", "no such task")
        .await;
    check(&desktop, "Nothing found.").await;
    desktop.open(&link(&system, &task)).await;
    check(&desktop, "Add a comment").await;
    for (path, text) in [
        ("/account", "Current password"),
        ("/docs", "Get user information"),
    ] {
        desktop.open(&format!("{}{path}", system.http.base())).await;
        check(&desktop, text).await;
    }
    desktop.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_as_large_as_a_person_has_set_them() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    let size = "document.documentElement.style.fontSize = '32px';
        return getComputedStyle(document.body).fontSize";
    assert_eq!(phone.run(size).await, "32px");
    phone.assert_no_errors().await;
    system.stop().await;
}

/// Opens the webhooks of a task.
pub(super) async fn open_webhooks(phone: &Browser) {
    phone.sees("Advanced").await;
    let opened = "return document.querySelector('details.card').open = true";
    assert_eq!(phone.run(opened).await, Value::Bool(true));
}
