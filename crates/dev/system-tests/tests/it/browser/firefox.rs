//! Another browser's engine shows a task, and decides it.

use crate::firefox_browser::Firefox;
use testkit::eventually;

use super::{REQUESTER, link, status, task_with};
use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_decided_in_firefox() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "It **squeaks**.").await;
    let mut browser = Firefox::start().await;
    browser.open(&link(&system, &task));
    shows(&mut browser, "It squeaks.").await;
    browser.press("approve");
    shows(&mut browser, "You approved this.").await;
    assert_eq!(status(&system, &token, &task).await, "approved");
    system.stop().await;
}

/// Waits until the page shows a text, and a press counts.
async fn shows(browser: &mut Firefox, text: &str) {
    let browser = std::sync::Mutex::new(browser);
    eventually(&format!("Firefox to show “{text}”"), || async {
        let shown = browser
            .lock()
            .unwrap()
            .run("return performance.now() > 600 ? document.body.innerText : ''");
        shown.as_str().unwrap().contains(text).then_some(())
    })
    .await;
}
