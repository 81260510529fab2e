//! The end of a session, wherever a person writes: they sign in above the page, and what they wrote is there.

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use super::accessibility::open_webhooks;
use super::drafts::{ESCAPE, end_sessions, value_of};
use super::sessions::{NOTHING, cookies, staying};
use super::{
    APPROVER, REQUESTER, dialog_closes, poll, run_first, sign_in, signed_in, takes_presses,
    task_with, write_task,
};
use crate::harness::System;

const ADMIN: &str = "admin@countersign.local";
pub(super) const NEW_PASSWORD: &str = "a new password";
const AGAIN: &str = "You are signed in again.";

/// Signs in within the dialog that asks for it. Forms below it have fields with the same names.
pub(super) async fn sign_in_again(phone: &Browser, email: &str) {
    phone.sees("Your session has ended.").await;
    // The labels of the dialog would be those of the fields below it.
    let twice = "const ids = [...document.querySelectorAll('dialog [id]')].map(({ id }) => id);
        return ids.filter((id) => document.querySelectorAll(`#${id}`).length > 1)";
    assert_eq!(phone.run(twice).await, json!([]));
    takes_presses(phone).await;
    let script = format!(
        "const form = [...document.querySelectorAll('dialog form')].pop();
         form.elements.username.value = '{email}'; form.elements.password.value = '{NEW_PASSWORD}';
         form.querySelector('button:not([type])').click()"
    );
    phone.run(&script).await;
    phone.sees(AGAIN).await;
}

/// Presses the button of a form that sends it.
pub(super) async fn send(phone: &Browser, form: &str) {
    takes_presses(phone).await;
    let script = format!("document.querySelector('{form} button:not([type])').click()");
    phone.run(&script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_a_webhook_survives_the_end_of_the_session() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    open_webhooks(&phone).await;
    let url = format!("{}?correlationId=again", system.webhook_url());
    phone.fill("URL", &url).await;
    end_sessions(&system, REQUESTER).await;
    send(&phone, "details.card").await;
    sign_in_again(&phone, REQUESTER).await;
    assert_eq!(value_of(&phone, "webhook-url").await, url.as_str());
    phone.click("Add").await;
    phone.sees("correlationId=again").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_behind_a_dialog_leaves_it_open_after_the_end_of_the_session() {
    let system = System::start().await;
    system.sign_up(REQUESTER).await;
    let phone = signed_in(&system, "/", REQUESTER).await;
    write_task(&phone).await;
    end_sessions(&system, REQUESTER).await;
    poll(&phone).await;
    let refused = "return performance.getEntriesByType('resource')
        .filter(({ name, responseStatus }) => name.includes('/people-task/tasks?') && responseStatus === 401).length";
    eventually("the list to be loaded again", async || {
        (phone.run(refused).await != 0).then_some(())
    })
    .await;
    assert_eq!(value_of(&phone, "title").await, "Buy a chair");
    send(&phone, "dialog").await;
    sign_in_again(&phone, REQUESTER).await;
    phone.click("Create").await;
    phone.sees("Copy link").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_waits_for_a_decision_learns_that_the_session_has_ended() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let phone = signed_in(&system, &format!("/tasks?taskId={}", task.id), REQUESTER).await;
    phone.sees("Decide yourself").await;
    end_sessions(&system, REQUESTER).await;
    poll(&phone).await;
    phone.sees("Your session has ended.").await;
    assert_eq!(phone.count("form h1:focus").await, 1);
    sign_in(&phone, REQUESTER, NEW_PASSWORD).await;
    phone.sees("Decide yourself").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_loses_no_edit_and_no_new_address() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let id = system.user_id("ada@example.com").await;
    let phone = signed_in(&system, &format!("/admin?view=user&id={id}"), ADMIN).await;
    phone.fill("Plan", "gold").await;
    // What is not saved survives other buttons, too.
    phone.click("Deactivate").await;
    takes_presses(&phone).await;
    phone
        .run("document.querySelector('dialog[open] .reject').click()")
        .await;
    phone.sees("The account is deactivated.").await;
    assert_eq!(value_of(&phone, "plan").await, "gold");
    end_sessions(&system, ADMIN).await;
    phone.click("Save").await;
    sign_in_again(&phone, ADMIN).await;
    assert_eq!(value_of(&phone, "plan").await, "gold");
    phone.click("Save").await;
    phone.sees("The changes are saved.").await;

    phone.follow("All users").await;
    phone.click("New user").await;
    let fill =
        "const field = document.getElementById('new-email'); field.value = 'grace@example.com';
        field.dispatchEvent(new Event('input'))";
    phone.run(fill).await;
    phone.press(ESCAPE).await;
    dialog_closes(&phone).await;
    phone.click("New user").await;
    assert_eq!(value_of(&phone, "new-email").await, "grace@example.com");
    assert_eq!(value_of(&phone, "new-password").await, Value::from(""));
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_could_not_be_ended_is_ended_after_the_next_sign_in() {
    let phone = Browser::phone().await;
    let refuse = "const real = window.fetch;
        window.fetch = (url, options) => {
          const refused = Number(localStorage.refused ?? 0);
          if (options?.method !== 'DELETE' || refused === 2) return real(url, options);
          localStorage.refused = refused + 1;
          return Promise.resolve(new Response('', { status: 503 }));
        }";
    run_first(&phone, refuse).await;
    let (system, phone) = staying(phone).await;
    assert_eq!(cookies(&phone).await.len(), 1);
    phone.click("Sign out").await;
    phone.sees("Forgot your password?").await;
    eventually("the second refusal", async || {
        (phone.run("return localStorage.refused").await == "2").then_some(())
    })
    .await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.sees(NOTHING).await;
    eventually("the session to be ended", async || {
        cookies(&phone).await.is_empty().then_some(())
    })
    .await;
    // It ended none but that one.
    phone.reload().await;
    phone.sees(NOTHING).await;
    phone.assert_no_errors().await;
    system.stop().await;
}
