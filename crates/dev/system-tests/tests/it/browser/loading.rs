//! How pages load: what they ask for, and what a person sees if a part does not arrive.

use crate::loaded::loaded;
use crate::webdriver::Browser;
use serde_json::json;

use super::{APPROVER, REQUESTER, link, run_first, sign_in, task_with};
use crate::harness::System;

/// Lets requests fail whose URLs match one of these patterns.
pub(super) async fn block(browser: &Browser, patterns: &[&str]) {
    browser.devtools("Network.enable", &json!({})).await;
    let blocked = json!({"urls": patterns});
    browser.devtools("Network.setBlockedURLs", &blocked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_one_of_its_scripts_says_so_and_loads_again() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (base, secret) = (system.http.base(), &task.approver_secret);
    // The second one is loaded by another script.
    for missing in ["*/assets/tasks.js", "*/assets/texts/en.js"] {
        let phone = Browser::phone().await;
        block(&phone, &[missing]).await;
        let link = format!("{base}/tasks?taskId={}&secret={secret}", task.id);
        phone.open(&link).await;
        phone.sees("This page did not load completely.").await;
        block(&phone, &[]).await;
        phone.sees("Approve").await;
        assert_eq!(phone.count("#not-loaded:not([hidden])").await, 0);
        // So that it does the same the next time.
        let reloads = "return sessionStorage.getItem('countersign-reloads')";
        assert!(phone.run(reloads).await.is_null(), "{missing}");
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_does_not_arrive_is_asked_for_again() {
    const MISSING: &str = "The server cannot be reached.";
    const AGAIN: &str = "document.querySelector('#alert button').click()";
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    block(&phone, &["*/assets/sign-in.js"]).await;
    let page = format!("{}/tasks?taskId={}", system.http.base(), task.id);
    phone.open(&page).await;
    phone.sees(MISSING).await;
    block(&phone, &["*/assets/inbox.js"]).await;
    phone.run(AGAIN).await;
    sign_in(&phone, REQUESTER, System::PASSWORD).await;
    phone.follow("Tasks").await;
    phone.sees(MISSING).await;
    block(&phone, &[]).await;
    phone.run(AGAIN).await;
    phone.sees("nothing to decide.").await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_another_version_that_needs_what_the_page_lacks_is_not_used() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    phone.sees("Forgot your password?").await;
    let lacking = "delete globalThis.countersignModules['dom.js'].openDialog;
        return import('/assets/inbox.js').then(() => 'loaded', ({ message }) => message)";
    assert_eq!(phone.run(lacking).await, "dom.js has no openDialog");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_that_its_task_is_on_its_way() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    let slow = "const real = fetch;
        const held = new Promise((done) => { window.release = done; });
        window.fetch = (url, options) => held.then(() => real(url, { ...options, signal: null }))";
    run_first(&phone, slow).await;
    phone.open(&link(&system, &task)).await;
    assert_eq!(phone.count(".skeleton").await, 1);
    phone.sees("Loading …").await;
    phone.run("window.release()").await;
    phone.sees("Buy a chair").await;
    assert_eq!(phone.count(".skeleton").await, 0);
    assert!(!phone.text().await.contains("Loading …"));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_its_logo_is_not_loaded_again() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    block(&phone, &["*/assets/logo"]).await;
    phone.open(system.http.base()).await;
    phone.sees("Forgot your password?").await;
    assert_eq!(phone.count("#not-loaded:not([hidden])").await, 0);
    let loads = "return performance.getEntriesByType('navigation')[0].type";
    assert_eq!(phone.run(loads).await, "navigate");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_link_asks_for_its_modules_at_once() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "It **squeaks**.").await;
    let (base, secret) = (system.http.base(), &task.approver_secret);
    let phone = Browser::phone().await;
    let link = format!("{base}/tasks?taskId={}&secret={secret}", task.id);
    phone.open(&link).await;
    phone.sees("It squeaks.").await;
    let late = phone
        .run(
            "const named = [...document.querySelectorAll('link[href], script[src]')].map((one) => one.href ?? one.src);
             const loaded = performance.getEntriesByType('resource').map(({ name }) => name);
             return loaded.filter((name) => name.includes('/assets/') && !named.includes(name));",
        )
        .await;
    assert_eq!(late, json!([]));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_decision_takes_few_requests_and_bytes() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "It **squeaks**.").await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("It squeaks.").await;
    let by_link = loaded(&phone).await;
    // A person who is signed in, and whose browser has nothing of the page.
    phone.open(system.http.base()).await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("Buy a chair").await;
    let nothing = json!({"cacheDisabled": true});
    phone.devtools("Network.enable", &json!({})).await;
    phone.devtools("Network.setCacheDisabled", &nothing).await;
    phone.run("for (const key of Object.keys(sessionStorage)) if (key.includes('secret')) sessionStorage.removeItem(key)").await;
    let path = format!("{}/tasks?taskId={}", system.http.base(), task.id);
    phone.open(&path).await;
    phone.sees("Reassign").await;
    let signed_in = loaded(&phone).await;
    for loaded in [by_link, signed_in] {
        let number = |field: &str| loaded[field].as_u64().unwrap();
        assert!(number("requests") <= 14, "{loaded}");
        assert!(number("bytes") <= 51_000, "{loaded}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}
