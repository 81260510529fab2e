//! Deletions: progress until the end, cancelling, and repeating.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::{eventually, lines};

use super::super::drafts::end_sessions;
use super::super::ended_sessions::{NEW_PASSWORD, sign_in_again};
use super::{ADMIN, confirm, control_engine, has, open};
use crate::harness::System;

async fn open_user(system: &System, phone: &Browser, email: &str) -> String {
    system.sign_up(email).await;
    let id = system.user_id(email).await;
    open(system, phone, &format!("?view=user&id={id}")).await;
    phone.sees(email).await;
    id
}

/// Begins the deletion of a user, for which the engine takes an hour.
async fn begin_long_deletion(system: &System, phone: &Browser) -> String {
    let id = open_user(system, phone, "ada@example.com").await;
    control_engine(system, &json!({"accepted": "1h"})).await;
    phone.click("Delete").await;
    confirm(phone, "Delete").await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_watched_until_it_is_completed() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    let id = open_user(&system, &phone, "ada@example.com").await;
    control_engine(&system, &json!({"accepted": "300ms"})).await;
    phone.click("Delete").await;
    phone
        .sees("ada@example.com is deleted with all tasks")
        .await;
    phone.click("Go back").await;
    phone.click("Delete").await;
    confirm(&phone, "Delete").await;
    phone.sees("In progress").await;
    phone.sees("Completed 8 of 8 steps").await;
    // What no longer exists is not offered.
    phone.sees("This account is deleted.").await;
    has(&phone, 0, "#view :is(form, button)").await;
    let gone = system
        .http
        .get(&format!("/users/{id}"))
        .bearer(&system.admin)
        .send()
        .await;
    gone.expect_problem(404, "not-found");
    phone.follow("Deletions").await;
    phone.sees("8 of 8 steps").await;
    phone.sees(&id).await;
    has(&phone, 0, "#view .bar > :not([hidden]) button").await;
    let own = system.user_id(ADMIN).await;
    let path = format!("{}/admin?view=user&id={own}", system.http.base());
    phone.open(&path).await;
    phone.sees("This is your own account.").await;
    has(&phone, 1, "#view button").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_cancelled_and_started_again() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    let id = begin_long_deletion(&system, &phone).await;
    phone.sees("In progress").await;
    let deleted = "UPDATE users.deletions SET deleted_tasks = 7 RETURNING user_id::text AS line";
    assert_eq!(lines(&mut system.database.admin(), deleted).len(), 1);
    phone.sees("7 tasks were deleted so far.").await;
    phone.click("Cancel the deletion").await;
    confirm(&phone, "Cancel the deletion").await;
    phone.sees("Cancelled").await;
    let user = system.get(&format!("/users/{id}"), &system.admin).await;
    assert_eq!(user.json["isActive"], false);

    control_engine(&system, &json!({"accepted": "0s"})).await;
    phone.click("Delete again").await;
    confirm(&phone, "Delete again").await;
    phone.sees("Completed 8 of 8 steps").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_watched_on_after_the_end_of_the_session() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    let id = begin_long_deletion(&system, &phone).await;
    phone.sees("In progress").await;
    end_sessions(&system, ADMIN).await;
    sign_in_again(&phone, ADMIN).await;
    let signed_in = system.sign_in(ADMIN, NEW_PASSWORD).await;
    let admin = signed_in.expect(200).text_of("token");
    let address = phone.address().await;
    let (_, ticket) = address.split_once("ticket=").unwrap();
    let path = format!("/users/{id}/delete-status/{ticket}");
    let cancel = system.http.delete(&path).bearer(&admin);
    let _ = cancel.send().await.expect(200);
    phone.sees("Cancelled").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_deletion_says_why_and_is_repeated() {
    let settings = [
        ("DELETE_MAX_ATTEMPTS", "1"),
        ("DELETE_RETRY_PAUSE", "100ms"),
    ];
    let system = System::start_with(&settings).await;
    let phone = Browser::phone().await;
    let id = open_user(&system, &phone, "ada@example.com").await;
    control_engine(&system, &json!({"down": true})).await;
    phone.click("Delete").await;
    confirm(&phone, "Delete").await;
    phone.sees("Failed").await;
    phone.sees("The step ").await;
    phone
        .run("document.querySelector('#deletion details').open = true")
        .await;
    phone.sees("503").await;
    phone.follow("Deletions").await;
    has(&phone, 1, "tbody tr").await;
    phone.sees("ada@example.com").await;
    has(&phone, 1, &format!("tbody a [title='{id}']")).await;
    phone.click("Delete again").await;
    phone
        .sees("The deletion of ada@example.com starts again")
        .await;
    phone.click("Go back").await;

    control_engine(&system, &json!({"down": false})).await;
    phone.click("Retry all that failed").await;
    phone.sees("1 deletion is in progress again.").await;
    eventually("the user to be deleted", || async {
        let path = format!("/users/{id}");
        let reply = system.http.get(&path).bearer(&system.admin).send().await;
        (reply.status == 404).then_some(())
    })
    .await;
    phone.reload().await;
    phone.sees("Completed").await;
    phone.assert_no_errors().await;
    system.stop().await;
}
