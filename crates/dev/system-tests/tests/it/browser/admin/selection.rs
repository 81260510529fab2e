//! Users: a new one, one that is found by the address, and what is done with several.

use crate::webdriver::Browser;
use serde_json::{Value, json};
use testkit::eventually;

use super::{confirm, has, is_focused, open, open_filters};
use crate::harness::System;

async fn select(phone: &Browser, name: &str) {
    let script = format!(
        "document.querySelector({}).click()",
        json!(format!("[aria-label='Select {name}']"))
    );
    phone.run(&script).await;
}

async fn is_active(system: &System, email: &str) -> Value {
    let path = format!("/users/{}", system.user_id(email).await);
    system.get(&path, &system.admin).await.json["isActive"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_created_and_found_by_the_address() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let phone = Browser::phone().await;
    open(&system, &phone, "").await;
    phone.click("New user").await;
    phone.sees("A few unrelated words").await;
    let dialog = "dialog label";
    has(&phone, 3, dialog).await;
    phone.run("document.getElementById('new-email').value = 'ada@example.com'; document.getElementById('new-password').value = 'correct horse'").await;
    phone.click("Create").await;
    phone
        .sees("There is already an account with this e-mail address.")
        .await;
    phone
        .run("document.getElementById('new-email').value = 'bob@example.com'")
        .await;
    phone.click("Create").await;
    phone.sees("The account is created.").await;
    has(&phone, 1, "tbody tr").await;
    phone.sees("bob@example.com").await;
    phone.fill("Search usernames", "").await;
    has(&phone, 3, "tbody tr").await;
    open_filters(&phone).await;
    phone.fill("E-mail address", "ada@example.com").await;
    has(&phone, 1, "tbody tr").await;
    let height = "return document.querySelector('tbody th a').getBoundingClientRect().height >= 24";
    assert_eq!(phone.run(height).await, true);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_users_are_deactivated_and_what_fails_stays_selected() {
    let system = System::start().await;
    for email in ["ada@example.com", "bob@example.com", "eve@example.com"] {
        system.sign_up(email).await;
    }
    let phone = Browser::phone().await;
    open(&system, &phone, "").await;
    has(&phone, 4, "tbody tr").await;
    // An administrator cannot select their own account.
    has(&phone, 3, "tbody th input[type=checkbox]").await;
    let buttons = "return document.querySelector('#selection .actions').checkVisibility()";
    assert_eq!(phone.run(buttons).await, false);
    for email in ["ada@example.com", "bob@example.com"] {
        select(&phone, email).await;
    }
    phone.sees("2 selected").await;
    phone.click("Deactivate").await;
    phone
        .sees("until they are activated. All their API keys end for good.")
        .await;
    has(&phone, 2, "dialog li").await;
    confirm(&phone, "Deactivate").await;
    phone.sees("2 of 2 done.").await;
    is_focused(&phone, "0 selected").await;
    has(&phone, 2, "tbody .status.bad").await;
    assert_eq!(is_active(&system, "bob@example.com").await, false);
    assert_eq!(is_active(&system, "eve@example.com").await, true);

    let id = system.user_id("eve@example.com").await;
    phone.devtools("Network.enable", &json!({})).await;
    let blocked = json!({"urls": [format!("*/users/{id}/revoke-tokens")]});
    phone.devtools("Network.setBlockedURLs", &blocked).await;
    phone
        .run("document.querySelector('#selection input').click()")
        .await;
    phone.sees("3 selected").await;
    phone.click("Sign out everywhere").await;
    confirm(&phone, "Sign out everywhere").await;
    phone
        .sees("2 of 3 done. The server cannot be reached.")
        .await;
    is_focused(&phone, "1 selected").await;
    let left =
        "return [...document.querySelectorAll('tbody input:checked')].map(({ value }) => value)";
    assert_eq!(phone.run(left).await, json!([id]));

    // Another list has another selection.
    phone.fill("Search usernames", "example.com").await;
    eventually("nothing to be selected", || async {
        (phone.count("tbody input:checked").await == 0).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}
