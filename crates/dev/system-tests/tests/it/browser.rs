//! The pages, in a browser with the screen of a phone.

mod accessibility;
mod accounts;
mod admin;
mod changes;
mod damaged_links;
mod decisions;
mod documentation;
mod drafts;
mod ended_sessions;
mod firefox;
mod forms;
mod german;
mod hostile_texts;
mod in_place;
mod inbox;
mod keyboard;
mod keys;
mod loading;
mod mail_links;
mod old_browsers;
mod reach;
mod sessions;
mod task_text;
mod withdraw;

use std::time::Duration;

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use crate::harness::{System, Task};

const REQUESTER: &str = "requester@example.com";
const APPROVER: &str = "approver@example.com";

/// The link for the approver.
fn link(system: &System, task: &Task) -> String {
    let (base, id, secret) = (system.http.base(), &task.id, &task.approver_secret);
    format!("{base}/tasks#id={id}&secret={secret}")
}

async fn task_with(system: &System, token: &str, title: &str, description: &str) -> Task {
    system
        .create_task_from(
            token,
            &json!({
                "title": title, "description": description,
                "requester": REQUESTER, "approver": APPROVER,
            }),
        )
        .await
}

async fn sign_in(phone: &Browser, email: &str, password: &str) {
    phone.fill("E-mail address", email).await;
    phone.fill("Password", password).await;
    phone.click("Sign in").await;
}

/// A phone on a page of which a user signed in.
async fn signed_in(system: &System, path: &str, email: &str) -> Browser {
    let phone = Browser::phone().await;
    phone.open(&format!("{}{path}", system.http.base())).await;
    sign_in(&phone, email, System::PASSWORD).await;
    phone
}

/// Fills in the form for a new task.
async fn write_task(phone: &Browser) {
    phone.click("New task").await;
    phone.fill("Title", "Buy a chair").await;
    phone.fill("Approver (e-mail address)", APPROVER).await;
}

async fn dialog_closes(phone: &Browser) {
    eventually("the dialog to close", || async {
        (phone.count("dialog").await == 0).then_some(())
    })
    .await;
}

/// Waits until a press counts: one that comes sooner belongs to the press that opened the page.
async fn presses_count(phone: &Browser) {
    eventually("a press to count", || async {
        (phone.run("return performance.now() > 600").await == true).then_some(())
    })
    .await;
}

/// Waits until a press counts in what was just shown: one that comes sooner was meant for what was there before.
async fn takes_presses(phone: &Browser) {
    eventually("what was just shown to take presses", || async {
        (phone.count("[data-new]").await == 0).then_some(())
    })
    .await;
}

/// Presses a button as soon as a part of the page shows it, as the second press of a double click does. Afterwards
/// `window.isTaken` says whether that was a press.
async fn press_at_once(phone: &Browser, part: &str, button: &str) {
    let script = format!(
        "new MutationObserver((_, observer) => {{
           const button = document.querySelector({});
           if (!button) return;
           observer.disconnect();
           button.click();
           window.isTaken = button.disabled;
         }}).observe(document.querySelector({}), {{ childList: true }})",
        json!(button),
        json!(part)
    );
    phone.run(&script).await;
}

/// Waits until a press counts again: one that comes sooner belongs to the press before it.
async fn wait_for_another_press() {
    tokio::time::sleep(Duration::from_millis(800)).await;
}

async fn status(system: &System, token: &str, task: &Task) -> Value {
    let path = format!("/people-task/tasks/{}", task.id);
    let reply = system.http.get(&path).bearer(token).send().await;
    reply.expect(200).json["status"].clone()
}

/// Waits until the buttons that decide have taken the place of others, and a press of them counts.
pub(crate) async fn buttons_work(phone: &Browser) {
    eventually("the buttons that decide", || async {
        (phone.count("#decide:not([hidden])").await == 1).then_some(())
    })
    .await;
    wait_for_another_press().await;
}

/// Reads what is new, one part after the other, until the buttons that decide are back, and work.
async fn read_change(phone: &Browser) {
    let next = "document.querySelector('#read:not([hidden]) button')?.click()";
    eventually("the change to be read", || async {
        phone.run(next).await;
        (phone.count("#decide:not([hidden])").await == 1).then_some(())
    })
    .await;
    wait_for_another_press().await;
}

/// Lets the page look at once whether its task has changed, as it does when it is online again.
async fn poll(phone: &Browser) {
    phone.run("dispatchEvent(new Event('online'))").await;
}

/// Lets pages that are opened later look only when [`poll`] says so, as those in the background do. Otherwise a change may take
/// away the buttons that a test is about to press.
async fn keep_from_polling(phone: &Browser) {
    let hidden = "Object.defineProperty(document, 'visibilityState', { value: 'hidden' })";
    run_first(phone, hidden).await;
}

/// Runs a script in each page that is opened later, before those of the page.
async fn run_first(phone: &Browser, script: &str) {
    let script = json!({"source": script});
    phone
        .devtools("Page.addScriptToEvaluateOnNewDocument", &script)
        .await;
}

/// The answer to a request that arrives, but whose response is lost.
const LOST: &str = "async (send) => { await send(); throw new TypeError('lost'); }";

/// Changes what the page learns of its requests that begin with this method and path. Each of `answers` is for one of them, and a
/// function of what sends it.
async fn answer(phone: &Browser, requests: &str, answers: &[&str]) {
    let script = format!(
        "const real = window.fetch; const answers = [{}]; window.sent = 0;
         window.fetch = async (url, options) => {{
           const send = () => real(url, options);
           if (!`${{options.method}} ${{url}}`.startsWith({})) return send();
           window.sent += 1;
           const answer = answers.shift();
           return answer ? answer(send) : send();
         }};",
        answers.join(", "),
        json!(requests)
    );
    phone.run(&script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_approves_with_one_click() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "The old one squeaks.").await;
    system.register_webhook(&token, &task.id, "one-click").await;

    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Buy a chair").await;
    phone.sees("The old one squeaks.").await;
    phone.sees(REQUESTER).await;
    let address = phone.address().await;
    assert!(!address.contains(&task.approver_secret), "{address}");
    phone.reload().await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    assert_eq!(phone.count("article button").await, 0);

    assert_eq!(status(&system, &token, &task).await, "approved");
    let call = system.wait_for_webhook("one-click").await;
    assert_eq!(call["body"]["id"], task.id.as_str());
    assert_eq!(call["body"]["status"], "approved");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_the_link_decides_nothing() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    // Mail scanners fetch links, and some open them in a browser.
    let in_query = format!("/tasks?id={}&secret={}", task.id, task.approver_secret);
    let _ = system.http.get(&in_query).send().await.expect(200);
    let phone = Browser::phone().await;
    for url in [
        link(&system, &task),
        format!("{}{in_query}", system.http.base()),
    ] {
        phone.open(&url).await;
        phone.sees("Approve").await;
        let address = phone.address().await;
        assert!(!address.contains(&task.approver_secret), "{address}");
    }
    assert_eq!(status(&system, &token, &task).await, "pending");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_in_the_tab_of_another_task() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let chair = task_with(&system, &token, "Buy a chair", "").await;
    let table = task_with(&system, &token, "Buy a table", "").await;
    let phone = Browser::phone().await;
    // Only the fragments differ, so the browser does not load the page again for the second one.
    for (task, title) in [(&chair, "Buy a chair"), (&table, "Buy a table")] {
        phone.open(&link(&system, task)).await;
        phone.sees(title).await;
        let address = phone.address().await;
        assert!(!address.contains(&task.approver_secret), "{address}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_comes_too_late_shows_the_earlier_one() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let (first, second) = tokio::join!(Browser::phone(), Browser::phone());
    for phone in [&first, &second] {
        keep_from_polling(phone).await;
        phone.open(&link(&system, &task)).await;
        phone.sees("Buy a chair").await;
    }
    first.click("Reject").await;
    first.sees("You rejected this.").await;
    second.click("Approve").await;
    second
        .sees("Someone else was faster: “Buy a chair” was already rejected.")
        .await;
    eventually("the page to show the current status", || async {
        (second.count(".outcome.rejected").await == 1).then_some(())
    })
    .await;
    assert_eq!(second.count("article button").await, 0);
    assert_eq!(status(&system, &token, &task).await, "rejected");
    first.assert_no_errors().await;
    second.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_replaced_on_the_page_of_the_link() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let _ = system
        .http
        .post("/user/forgot-password")
        .json(&json!({"email": "ada@example.com"}))
        .send()
        .await
        .expect(200);
    let message = system
        .wait_for_request("kind=forgot-password&email=ada@example.com")
        .await;
    let link = message["body"]["link"].as_str().unwrap();
    let link = link.replace("http://localhost:8080", system.http.base());
    let code = message["body"]["code"].as_str().unwrap();

    let phone = Browser::phone().await;
    phone.open(&link).await;
    phone.sees("Choose a new password").await;
    assert!(!phone.address().await.contains(code));
    set_password(&phone, "new password", "new pasword").await;
    phone.sees("The passwords do not match.").await;
    set_password(&phone, "1234", "1234").await;
    phone.sees("at least 5 characters").await;
    set_password(&phone, "new password", "new password").await;
    phone.sees("Your password has been changed.").await;
    let _ = system
        .sign_in("ada@example.com", "new password")
        .await
        .expect(200);

    phone.open(&link).await;
    set_password(&phone, "another one", "another one").await;
    phone.sees("This code is invalid or has expired.").await;
    let _ = system
        .sign_in("ada@example.com", "new password")
        .await
        .expect(200);
    phone.assert_no_errors().await;
    system.stop().await;
}

async fn set_password(phone: &Browser, password: &str, repeated: &str) {
    phone.fill("New password", password).await;
    phone.fill("Repeat new password", repeated).await;
    phone.click("Set password").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_e_mail_address_is_confirmed_on_the_linked_page() {
    let system = System::start_with(&[("EMAIL_VERIFICATION", "required")]).await;
    system.sign_up("ada@example.com").await;
    let message = system
        .wait_for_request("kind=forgot-password&email=ada@example.com")
        .await;
    let link = message["body"]["link"].as_str().unwrap();
    let link = link.replace("http://localhost:8080", system.http.base());

    let phone = Browser::phone().await;
    phone.open(&link).await;
    phone.fill("Password", "a wrong password").await;
    phone.click("Confirm").await;
    phone.sees("The current password is wrong.").await;
    phone.fill("Password", System::PASSWORD).await;
    phone.click("Confirm").await;
    phone.sees("Your e-mail address is confirmed.").await;
    phone.open(&link).await;
    phone.fill("Password", System::PASSWORD).await;
    phone.click("Confirm").await;
    phone.sees("This code is invalid or has expired.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_languages_have_the_same_texts() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone.open(&format!("{}/", system.http.base())).await;
    let missing = phone
        .run(
            "return Promise.all(['en', 'de'].map((name) => import(`/assets/texts/${name}.js`)))
                .then((modules) => modules.map(({ texts }) => Object.keys(texts)))
                .then(([en, de]) => [...en.filter((key) => !de.includes(key)), ...de.filter((key) => !en.includes(key))])",
        )
        .await;
    assert_eq!(missing, json!([]));
    phone.assert_no_errors().await;
    system.stop().await;
}
