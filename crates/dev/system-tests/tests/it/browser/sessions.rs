//! A browser that stays signed in.

use crate::webdriver::{Browser, Screen};
use serde_json::{Value, json};
use testkit::eventually;

use super::accessibility::check;
use super::drafts::end_sessions;
use super::{
    APPROVER, REQUESTER, keep_from_polling, link, poll, press_at_once, presses_count, run_first,
    sign_in, signed_in, status, takes_presses, task_with,
};
use crate::harness::System;

const STAY: &str = "document.getElementById('stay').click()";
pub(super) const NOTHING: &str = "nothing to decide.";

/// Signs in, and stays signed in.
async fn stay(phone: &Browser, email: &str) {
    phone.sees("Keep me signed in on this device").await;
    phone.run(STAY).await;
    sign_in(phone, email, System::PASSWORD).await;
}

/// A system, and a browser in which its approver stays signed in.
pub(super) async fn staying(phone: Browser) -> (System, Browser) {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    phone.open(system.http.base()).await;
    stay(&phone, APPROVER).await;
    phone.sees(NOTHING).await;
    (system, phone)
}

/// The cookies of the browser.
pub(super) async fn cookies(phone: &Browser) -> Vec<Value> {
    let all = phone.devtools("Storage.getCookies", &json!({})).await;
    all["cookies"].as_array().unwrap().clone()
}

/// Asks for a token with a cookie, as a program can that has copied it.
async fn replay(system: &System, cookie: &Value) -> u16 {
    let pair = format!(
        "{}={}",
        cookie["name"].as_str().unwrap(),
        cookie["value"].as_str().unwrap()
    );
    let request = system.http.post("/session/token").header("cookie", &pair);
    let request = request.header("sec-fetch-site", "same-origin");
    request.json(&json!({})).send().await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_tab_is_signed_in() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    stay(&phone, APPROVER).await;
    phone.sees("Buy a chair").await;

    let [cookie] = cookies(&phone).await.try_into().unwrap();
    assert_eq!(cookie["path"], "/session");
    assert_eq!(cookie["httpOnly"], true);
    assert_eq!(cookie["sameSite"], "Strict");
    // Only the developer's own machine is without TLS.
    assert_eq!(cookie["secure"], false);
    let readable = "return document.cookie + JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage })";
    let readable = phone.run(readable).await;
    let readable = readable.as_str().unwrap();
    // Tokens begin with this.
    assert!(!readable.contains("eyJ"), "{readable}");

    phone.open_tab().await;
    let url = format!("{}/tasks?taskId={}", system.http.base(), task.id);
    phone.open(&url).await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    phone.follow("Tasks").await;
    phone.sees(NOTHING).await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_choice_a_new_tab_asks_to_sign_in() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let phone = signed_in(&system, "/", APPROVER).await;
    phone.sees(NOTHING).await;
    assert_eq!(cookies(&phone).await, Vec::<Value>::new());
    phone.open_tab().await;
    phone.open(system.http.base()).await;
    phone.sees("Forgot your password?").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_does_not_decide_as_a_person_who_signed_in_to_another_tab() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = Browser::phone().await;
    let url = format!("{}/tasks?taskId={}", system.http.base(), task.id);
    keep_from_polling(&phone).await;
    phone.open(&url).await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("Approve").await;
    phone.run("window.isOld = true").await;
    let first = phone.open_tab().await;
    phone.open(system.http.base()).await;
    stay(&phone, REQUESTER).await;
    phone.sees(NOTHING).await;
    phone.go_to_tab(&first).await;
    phone.click("Approve").await;
    is_loaded_again(&phone).await;
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.assert_no_errors().await;
    system.stop().await;
}

/// Waits until the page of a tab is loaded again that was marked by `window.isOld`.
async fn is_loaded_again(phone: &Browser) {
    eventually("the page to be loaded again", || async {
        let old = phone.run("return window.isOld ?? false").await;
        (old == false).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_while_a_page_is_loaded_again_decides_as_nobody() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let path = format!("/tasks?taskId={}", task.id);
    let phone = signed_in(&system, &path, APPROVER).await;
    phone.sees("Approve").await;
    presses_count(&phone).await;
    // The last moment at which the page can be used.
    let press = "window.isOld = true; sessionStorage.sent = 0; const real = window.fetch;
        window.fetch = (url, options) => {
          if (options.method === 'PUT') sessionStorage.sent = 1;
          return real(url, options);
        };
        addEventListener('beforeunload', () => {
          document.getElementById('approve').click();
          sessionStorage.pressed = document.getElementById('approve').disabled;
        })";
    phone.run(press).await;
    let first = phone.open_tab().await;
    phone.open(system.http.base()).await;
    stay(&phone, REQUESTER).await;
    phone.sees(NOTHING).await;
    phone.go_to_tab(&first).await;
    poll(&phone).await;
    is_loaded_again(&phone).await;
    // The other person decides in place of the approver.
    phone.sees("Decide yourself").await;
    let pressed = "return [sessionStorage.pressed, sessionStorage.sent]";
    assert_eq!(phone.run(pressed).await, json!(["true", "0"]));
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_of_the_person_who_signed_in_to_it_last() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let path = format!("/tasks?taskId={}", task.id);
    let phone = signed_in(&system, &path, REQUESTER).await;
    phone.sees("Decide yourself").await;
    keep_from_polling(&phone).await;
    phone.reload().await;
    phone.sees("Decide yourself").await;
    phone.run("window.isOld = true").await;
    end_sessions(&system, REQUESTER).await;
    phone.click("Withdraw").await;
    phone.sees("Your session has ended.").await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees("You are signed in again.").await;
    let first = phone.open_tab().await;
    phone.open(system.http.base()).await;
    phone.sees("Keep me signed in on this device").await;
    phone.run(STAY).await;
    sign_in(&phone, REQUESTER, "a new password").await;
    phone.sees(NOTHING).await;
    phone.go_to_tab(&first).await;
    assert_eq!(phone.run("return window.isOld").await, true);
    poll(&phone).await;
    is_loaded_again(&phone).await;
    phone.sees("Decide yourself").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_cannot_stay_signed_in_is_not_offered_to() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    for lack in [
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError'); } })",
        "Object.defineProperty(window, 'isSecureContext', { get: () => false })",
    ] {
        let phone = Browser::phone().await;
        run_first(&phone, lack).await;
        phone.open(system.http.base()).await;
        phone.sees("Forgot your password?").await;
        assert_eq!(phone.count("#stay").await, 0, "{lack}");
        sign_in(&phone, APPROVER, System::PASSWORD).await;
        phone.sees(NOTHING).await;
        phone.reload().await;
        phone.sees(NOTHING).await;
        phone.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tabs_at_once_stay_signed_in() {
    let (system, phone) = staying(Browser::with(Screen::DESKTOP).await).await;
    // As a browser does that is started again with its tabs.
    let open = "return [1, 2, 3, 4].map(() => window.open(location.href)).length";
    assert_eq!(phone.run(open).await, 4);
    for tab in phone.tabs().await {
        phone.go_to_tab(&tab).await;
        phone.sees(NOTHING).await;
    }
    // Pages that are left before they have a token.
    for _ in 0..10 {
        phone.run("location.reload()").await;
    }
    phone.sees(NOTHING).await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_cookie_ends_the_session_for_both() {
    let (system, phone) = staying(Browser::phone().await).await;
    let copied = cookies(&phone).await.remove(0);
    phone.reload().await;
    phone.sees(NOTHING).await;
    assert_ne!(cookies(&phone).await[0]["value"], copied["value"]);
    assert_eq!(replay(&system, &copied).await, 401);
    phone.reload().await;
    phone.sees("Forgot your password?").await;
    assert_eq!(cookies(&phone).await, Vec::<Value>::new());
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_signs_all_tabs_out() {
    let (system, phone) = staying(Browser::phone().await).await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    phone.open(&link(&system, &task)).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", "Too expensive.").await;
    let kept = "return Object.keys(sessionStorage).length";
    assert_eq!(phone.run(kept).await, 2);
    let copied = cookies(&phone).await.remove(0);
    let first = phone.open_tab().await;
    phone.open(system.http.base()).await;
    phone.sees("Buy a chair").await;
    phone.click("Sign out").await;
    phone.sees("Forgot your password?").await;
    assert_eq!(cookies(&phone).await, Vec::<Value>::new());
    assert_eq!(replay(&system, &copied).await, 401);
    // What it showed and kept is gone, too.
    phone.go_to_tab(&first).await;
    phone.sees("Forgot your password?").await;
    assert!(!phone.text().await.contains("Buy a chair"));
    assert_eq!(phone.run(kept).await, 0);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_another_browser_out() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let (phone, desk) = tokio::join!(Browser::phone(), Browser::with(Screen::DESKTOP));
    for browser in [&phone, &desk] {
        browser.open(system.http.base()).await;
        stay(browser, APPROVER).await;
        browser.sees(NOTHING).await;
    }
    phone.follow("Account").await;
    phone.follow("Where you are signed in").await;
    check(&phone, "This browser").await;
    assert_eq!(phone.count(".sessions > li").await, 2);
    takes_presses(&phone).await;
    // The second press of a double click would be of the button of this browser.
    press_at_once(&phone, "#content", ".sessions button").await;
    let other = "[...document.querySelectorAll('.sessions > li')]
        .find((one) => !one.querySelector('.status')).querySelector('button').click()";
    phone.run(other).await;
    phone.sees("That browser is signed out.").await;
    assert_eq!(phone.count(".sessions > li").await, 1);
    eventually("the other browser to be signed out", || async {
        desk.reload().await;
        let text = desk.text().await;
        text.contains("Forgot your password?").then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    desk.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_keeps_only_this_browser_signed_in() {
    let (system, phone) = staying(Browser::phone().await).await;
    let copied = cookies(&phone).await.remove(0);
    phone.follow("Account").await;
    phone.fill("Current password", System::PASSWORD).await;
    phone.fill("New password", "new password").await;
    phone.fill("Repeat new password", "new password").await;
    phone.click("Change password").await;
    phone.sees("All other devices are signed out.").await;
    assert_eq!(replay(&system, &copied).await, 401);
    phone.open_tab().await;
    phone.open(system.http.base()).await;
    phone.sees(NOTHING).await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_use_the_session() {
    let (system, phone) = staying(Browser::phone().await).await;
    let before = cookies(&phone).await;
    // The same server by another name is another site. This document has no policy that would refuse the requests.
    let other = system.http.base().replace("127.0.0.1", "localhost");
    phone.open(&format!("{other}/healthz")).await;
    let script = format!(
        "return Promise.all(['POST', 'DELETE'].map((method) => fetch('{0}/session' + (method === 'POST' ? '/token' : ''),
            {{ method, mode: method === 'POST' ? 'no-cors' : 'cors', credentials: 'include', body: '{{}}' }})
            .then(({{ type }}) => type, () => 'refused')))",
        system.http.base()
    );
    assert_eq!(phone.run(&script).await, json!(["opaque", "refused"]));
    assert_eq!(cookies(&phone).await, before);
    phone.open(system.http.base()).await;
    phone.sees(NOTHING).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_show_ours_in_a_frame() {
    let (system, phone) = staying(Browser::phone().await).await;
    let before = cookies(&phone).await;
    for path in ["/", "/tasks", "/sessions"] {
        let framed = format!("<iframe src='{}{path}'></iframe>", system.http.base());
        phone.open(&format!("data:text/html,{framed}")).await;
        phone.go_to_frame().await;
        eventually("the browser to refuse the frame", async || {
            phone
                .address()
                .await
                .starts_with("chrome-error:")
                .then_some(())
        })
        .await;
        let ours = phone.count(".brand, #footer").await;
        assert_eq!(ours, 0, "{path}");
    }
    assert_eq!(cookies(&phone).await, before);
    system.stop().await;
}
