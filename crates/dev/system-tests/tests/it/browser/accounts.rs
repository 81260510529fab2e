//! Accounts: signing up, forgotten and changed passwords, and the webhooks of a person's tasks.

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use super::accessibility::open_webhooks;
use super::drafts::value_of;
use super::{LOST, REQUESTER, answer, press_at_once, set_password, sign_in, signed_in, task_with};
use crate::harness::System;

const EMAIL: &str = "ada@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_up_and_changes_the_password() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    phone.click("Create an account").await;
    phone.sees("Sign in instead").await;
    phone.fill("E-mail address", EMAIL).await;
    phone.fill("Password", System::PASSWORD).await;
    phone.click("Create an account").await;
    phone.sees("nothing to decide.").await;
    assert_eq!(phone.count("h1:focus").await, 1);

    phone.follow("Account").await;
    phone.sees(EMAIL).await;
    change_password(&phone, "wrong", "new password").await;
    phone.sees("The current password is wrong.").await;
    change_password(&phone, System::PASSWORD, "new password").await;
    phone.sees("All other devices are signed out.").await;
    // This one is still signed in.
    phone.follow("Tasks").await;
    phone.sees("nothing to decide.").await;
    let old = system.sign_in(EMAIL, System::PASSWORD).await;
    old.expect_problem(401, "invalid-credentials");
    let _ = system.sign_in(EMAIL, "new password").await.expect(200);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_whose_change_got_no_response_may_be_set() {
    let system = System::start().await;
    system.sign_up(EMAIL).await;
    let phone = signed_in(&system, "/account", EMAIL).await;
    phone.sees(EMAIL).await;
    answer(&phone, "POST /user/change-password", &[LOST]).await;
    change_password(&phone, System::PASSWORD, "new password").await;
    phone.sees("The server cannot be reached.").await;
    phone.click("Change password").await;
    phone.sees("The new password may already be set").await;
    sign_in(&phone, EMAIL, "new password").await;
    phone.sees("Where you are signed in").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

async fn change_password(phone: &Browser, old: &str, new: &str) {
    phone.fill("Current password", old).await;
    phone.fill("New password", new).await;
    phone.fill("Repeat new password", new).await;
    phone.click("Change password").await;
}

/// The title of the page, and the form that its address names.
async fn form(phone: &Browser) -> Value {
    let script =
        "return [document.title.split(' · ')[0], new URLSearchParams(location.search).get('form')]";
    phone.run(script).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_form_has_an_address_and_the_e_mail_address_is_carried() {
    let system = System::start().await;
    let (base, id) = (system.http.base(), "0123456789abcdef01234567");
    let phone = Browser::phone().await;
    for page in [
        "/".to_owned(),
        "/account".to_owned(),
        "/sessions".to_owned(),
        "/admin?view=audit".to_owned(),
        format!("/tasks?taskId={id}"),
    ] {
        phone.open(&format!("{base}{page}")).await;
        phone.fill("E-mail address", EMAIL).await;
        phone.click("Forgot your password?").await;
        phone.sees("Send me a link").await;
        assert_eq!(value_of(&phone, "username").await, EMAIL, "{page}");
        let forgot = json!(["Forgot your password?", "forgot-password"]);
        assert_eq!(form(&phone).await, forgot, "{page}");
        phone.run("history.back()").await;
        phone.sees("Create an account").await;
        assert_eq!(form(&phone).await, json!(["Sign in", null]), "{page}");
        assert_eq!(phone.address().await, format!("{base}{page}"));
        assert_eq!(value_of(&phone, "username").await, EMAIL, "{page}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_sign_in_says_what_is_wrong_with_which_field() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone
        .open(&format!("{}/?form=sign-up", system.http.base()))
        .await;
    phone.fill("E-mail address", EMAIL).await;
    phone.fill("Password", "1234").await;
    phone.click("Create an account").await;
    phone
        .sees("The password needs at least 5 characters.")
        .await;
    assert_eq!(phone.count("#password[aria-invalid]").await, 1);
    let focused = "return document.activeElement.id";
    assert_eq!(phone.run(focused).await, "password");

    phone.open(system.http.base()).await;
    eventually("the account to be locked", || async {
        sign_in(&phone, EMAIL, "wrong password").await;
        let text = phone.text().await;
        text.contains("Too many attempts. Try again at ")
            .then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_has_an_account_is_refused() {
    let system = System::start().await;
    system.sign_up(EMAIL).await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    phone.click("Create an account").await;
    phone.sees("Sign in instead").await;
    phone.fill("E-mail address", EMAIL).await;
    phone.fill("Password", "another password").await;
    phone.click("Create an account").await;
    phone.sees("There is already an account").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_forgot_the_password_signs_in_with_a_new_one() {
    let system = System::start().await;
    system.sign_up(EMAIL).await;
    let phone = Browser::phone().await;
    phone.open(system.http.base()).await;
    phone.click("Forgot your password?").await;
    phone.sees("Send me a link").await;
    phone.fill("E-mail address", EMAIL).await;
    phone.click("Send me a link").await;
    phone.sees("a message with a link is on its way").await;

    let query = format!("kind=forgot-password&email={EMAIL}");
    let message = system.wait_for_request(&query).await;
    let link = message["body"]["link"].as_str().unwrap();
    let link = link.replace("http://localhost:8080", system.http.base());
    phone.open(&link).await;
    set_password(&phone, "new password", "new password").await;
    phone.sees("Your password has been changed.").await;
    phone.follow("Sign in").await;
    sign_in(&phone, EMAIL, "new password").await;
    phone.sees("nothing to decide.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

/// The link of the mail that confirms the address of a new account.
async fn confirmation_link(system: &System, email: &str) -> String {
    let query = format!("kind=forgot-password&email={email}");
    let message = system.wait_for_request(&query).await;
    let link = message["body"]["link"].as_str().unwrap();
    link.replace("http://localhost:8080", system.http.base())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_is_signed_in_confirms_the_address_without_a_password() {
    let system = System::start_with(&[("EMAIL_VERIFICATION", "required")]).await;
    let phone = Browser::phone().await;
    for email in [EMAIL, REQUESTER] {
        system.sign_up(email).await;
    }
    phone.open(system.http.base()).await;
    sign_in(&phone, EMAIL, System::PASSWORD).await;
    phone.sees("Your e-mail address is not confirmed").await;
    phone
        .open(&confirmation_link(&system, REQUESTER).await)
        .await;
    phone.sees("You are signed in.").await;
    phone.click("Confirm").await;
    phone.sees("You are signed in with another account.").await;
    phone.open(&confirmation_link(&system, EMAIL).await).await;
    phone.click("Confirm").await;
    phone.sees("Your e-mail address is confirmed.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_takes_over_the_account_that_a_stranger_made() {
    let system = System::start_with(&[("EMAIL_VERIFICATION", "required")]).await;
    let stranger = system.sign_up(EMAIL).await;
    let phone = Browser::phone().await;
    phone.open(&confirmation_link(&system, EMAIL).await).await;
    phone
        .click("I did not create this account, or I don’t know its password")
        .await;
    phone.sees("signs out everyone who uses the account").await;
    phone.fill("New password", "new password").await;
    phone.fill("Repeat new password", "other password").await;
    phone.click("Set password and confirm").await;
    phone.sees("The passwords do not match.").await;
    phone.fill("Repeat new password", "new password").await;
    phone.click("Set password and confirm").await;
    phone.sees("your new password is set").await;
    phone.follow("Sign in").await;
    sign_in(&phone, EMAIL, "new password").await;
    phone.sees("nothing to decide.").await;
    eventually("the stranger to be signed out", || async {
        let reply = system.http.get("/user").bearer(&stranger).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creator_adds_a_webhook_and_sends_its_delivery_again() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    phone.follow("Created by me").await;
    phone.follow("Buy a chair").await;
    open_webhooks(&phone).await;
    phone.sees("No webhooks.").await;
    let url = format!("{}?correlationId=again", system.webhook_url());
    phone.fill("URL", &url).await;
    phone.click("Add").await;
    phone.sees("correlationId=again").await;

    let path = format!("/people-task/tasks/{}/approve", task.id);
    let _ = system.put(&path, &token, &json!({})).await;
    system.wait_for_webhook("again").await;
    eventually("the delivery to be shown", || async {
        phone.reload().await;
        open_webhooks(&phone).await;
        phone.sees("correlationId=again").await;
        phone.text().await.contains("Delivered").then_some(())
    })
    .await;
    phone.sees("1 attempt").await;
    phone.click("Send again").await;
    eventually("the receiver to get it again", || async {
        let calls = system.received("kind=webhook&correlationId=again").await;
        (calls.len() == 2).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deliveries_of_one_webhook_have_names() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let body = json!({
        "title": "Buy a chair", "requester": REQUESTER, "approver": EMAIL,
        "decisionBy": "2020-01-31 12:00:00",
    });
    let task = system.create_task_from(&token, &body).await;
    let url = format!("{}?correlationId=named", system.webhook_url());
    let body = json!({"taskId": task.id, "url": url, "events": ["due", "approved"]});
    let _ = system.post("/people-task/webhooks", &token, &body).await;
    let _ = system.wait_for_webhook("named").await;
    let path = format!("/people-task/tasks/{}/approve", task.id);
    let _ = system.put(&path, &token, &json!({})).await;
    eventually("the receiver to get the decision, too", || async {
        let calls = system.received("kind=webhook&correlationId=named").await;
        (calls.len() == 2).then_some(())
    })
    .await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    open_webhooks(&phone).await;
    let rows = "return [...document.querySelectorAll('.hooks [role=group]')].map((row) => {
        const name = document.getElementById(row.getAttribute('aria-labelledby')).innerText;
        return `${name.split(' · ')[0]}: ${row.querySelector('button').innerText}`;
    }).sort()";
    eventually("both deliveries to be shown", || async {
        let shown = phone.run(rows).await;
        (shown == json!(["Approved: Send again", "Due: Send again"])).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click_removes_one_webhook() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    for name in ["first", "second"] {
        system.register_webhook(&token, &task.id, name).await;
    }
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    open_webhooks(&phone).await;
    phone.sees("correlationId=second").await;
    let remove = ".hooks > li > .actions button";
    press_at_once(&phone, "details.card > div", remove).await;
    phone.click("Remove").await;
    phone.sees("The webhook is removed.").await;
    assert_eq!(phone.run("return window.isTaken").await, false);
    assert_eq!(phone.count(".hooks > li").await, 1);
    assert_eq!(phone.count("details.card h2:focus").await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creator_sees_how_a_webhook_is_called_and_sends_a_test() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let body = json!({
        "taskId": task.id, "url": format!("{}?correlationId=tried", system.webhook_url()),
        "headers": {"X-Key": "the-key-of-the-engine"}, "body": {"answer": "{{status}}"}, "success": {"pointer": "/none"},
        "events": ["cancelled"],
    });
    let _ = system.post("/people-task/webhooks", &token, &body).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    phone.follow("Created by me").await;
    phone.follow("Buy a chair").await;
    open_webhooks(&phone).await;
    phone.sees("How it is called").await;
    let open = "for (const one of document.querySelectorAll('.hooks details')) one.open = true; return true";
    let _ = phone.run(open).await;
    phone.sees("{{status}}").await;
    phone.sees("x-key").await;
    phone.sees("\"cancelled\"").await;
    phone
        .sees("An engine that does not look at it goes on")
        .await;
    assert!(!phone.text().await.contains("the-key-of-the-engine"));
    phone.click("Send now").await;
    phone.sees("No success").await;
    phone.sees("the answer has no `/none`").await;
    let calls = system.received("kind=webhook&correlationId=tried").await;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["body"], json!({"answer": "test"}));
    super::accessibility::check(&phone, "No success").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_for_another_account_leaves_this_one_signed_in() {
    let system = System::start().await;
    system.sign_up(EMAIL).await;
    let phone = signed_in(&system, "/account", EMAIL).await;
    phone.sees(EMAIL).await;
    let link = format!("{}/verify-email?code=c0de", system.http.base());
    phone.open(&link).await;
    phone.sees("You are signed in. Confirm").await;
    let answers = [
        "async () => Response.json({ code: 'forbidden' }, { status: 403 })",
        "async () => Response.json({})",
    ];
    answer(&phone, "POST /user/verify-email", &answers).await;
    phone.click("Confirm").await;
    phone.sees("You are signed in with another account.").await;
    let no_password = "I did not create this account, or I don’t know its password";
    phone.click(no_password).await;
    phone.fill("New password", "new password").await;
    phone.fill("Repeat new password", "new password").await;
    phone.click("Set password and confirm").await;
    phone.sees("your new password is set.").await;
    phone.follow("Account").await;
    phone.sees(EMAIL).await;
    phone.sees("Sign out").await;
    phone.assert_no_errors().await;
    system.stop().await;
}
