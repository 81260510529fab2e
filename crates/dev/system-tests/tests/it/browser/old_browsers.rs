//! What a browser lacks or refuses never stops a decision.

use crate::webdriver::Browser;
use serde_json::json;

use super::changes::change;
use super::loading::block;
use super::{
    REQUESTER, keep_from_polling, link, presses_count, read_change, run_first, sign_in, status,
    takes_presses, task_with, write_task,
};
use crate::harness::System;

/// What a browser lacks, as a script that runs before those of the page.
const LACKS: [(&str, &str); 8] = [
    (
        "site data",
        "for (const name of ['sessionStorage', 'localStorage']) \
         Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError'); } })",
    ),
    (
        "languages as BCP 47 has them",
        "Object.defineProperty(navigator, 'languages', { get: () => ['de_DE.UTF-8', 'en-', 'C'] }); \
         Object.defineProperty(navigator, 'language', { get: () => 'en_US' })",
    ),
    (
        "languages",
        "Object.defineProperty(navigator, 'languages', { get: () => undefined })",
    ),
    (
        "formats of times",
        "delete Intl.RelativeTimeFormat; Intl.DateTimeFormat = function () { throw new RangeError('time zone'); }",
    ),
    ("formats", "delete window.Intl"),
    (
        "short timeouts",
        "delete AbortSignal.timeout; delete Object.hasOwn",
    ),
    (
        "observers",
        "delete window.IntersectionObserver; delete window.ResizeObserver",
    ),
    ("dialogs", "delete HTMLDialogElement.prototype.showModal"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_lacks_something_decides() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    for (lack, script) in LACKS {
        let body = "It **squeaks**.";
        let task = task_with(&system, &token, "Buy a chair", body).await;
        let phone = Browser::phone().await;
        run_first(&phone, script).await;
        phone.open(&link(&system, &task)).await;
        phone.sees("It squeaks.").await;
        presses_count(&phone).await;
        let approve = "document.getElementById('approve').click()";
        phone.run(approve).await;
        testkit::eventually(&format!("a decision without {lack}"), || async {
            (status(&system, &token, &task).await == "approved").then_some(())
        })
        .await;
        assert_eq!(phone.console_errors().await, Vec::<String>::new(), "{lack}");
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_cannot_compare_texts_shows_the_new_one() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    block(&phone, &["*/assets/changes.js"]).await;
    keep_from_polling(&phone).await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Buy a chair").await;
    let text = json!({"description": "It costs a million."});
    change(&system, &token, &task, &text).await;
    phone.click("Approve").await;
    phone.sees("This task was just changed.").await;
    let shown =
        "return document.getElementById('change').innerText.includes('It costs a million.')";
    assert_eq!(phone.run(shown).await, true);
    assert_eq!(status(&system, &token, &task).await, "pending");
    read_change(&phone).await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_lacks_something_lists_creates_and_administers() {
    const ADMIN: &str = "admin@countersign.local";
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let phone = Browser::phone().await;
    let lacks = "delete window.Intl; delete URLSearchParams.prototype.size;
        delete HTMLFormElement.prototype.requestSubmit; delete HTMLDialogElement.prototype.showModal";
    run_first(&phone, lacks).await;
    phone
        .open(&format!("{}/?tab=constructor", system.http.base()))
        .await;
    sign_in(&phone, ADMIN, System::PASSWORD).await;
    phone.sees("nothing to decide.").await;
    write_task(&phone).await;
    let send = "document.getElementById('title').dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true }))";
    phone.run(send).await;
    phone.sees("Copy link").await;
    phone.click("Done").await;
    phone.sees("1 task").await;

    phone.follow("Admin").await;
    phone.follow("Deletions").await;
    assert!(phone.address().await.contains("view=deletions"));
    phone.follow("Users").await;
    phone.follow("ada@example.com").await;
    phone.click("Deactivate").await;
    phone.sees("Go back").await;
    takes_presses(&phone).await;
    phone
        .run("document.querySelector('dialog .reject').click()")
        .await;
    phone.sees("The account is deactivated.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_of_any_depth_is_shown() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let quotes = format!("{} deep", ">".repeat(2_000));
    // A description has at most 20,000 characters.
    let lists: String = (0..130)
        .map(|depth| format!("{}- deep\n", "  ".repeat(depth)))
        .collect();
    for text in [
        quotes.as_str(),
        &lists,
        &"[".repeat(5_000),
        &"*a".repeat(3_000),
    ] {
        let task = task_with(&system, &token, "Buy a chair", text).await;
        let phone = Browser::phone().await;
        phone.open(&link(&system, &task)).await;
        phone.sees("Buy a chair").await;
        assert!(!phone.text().await.contains("Maximum call stack"));
        phone.click("Approve").await;
        phone.sees("You approved this.").await;
        phone.assert_no_errors().await;
    }
    system.stop().await;
}
