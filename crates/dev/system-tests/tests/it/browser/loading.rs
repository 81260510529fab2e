//! How pages load: what they ask for, and what a person sees if a part does not arrive.

use crate::webdriver::Browser;
use serde_json::json;

use super::{REQUESTER, task_with};
use crate::harness::System;

/// Lets requests fail whose URLs match one of these patterns.
async fn block(browser: &Browser, patterns: &[&str]) {
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
