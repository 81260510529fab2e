//! Users: finding one among many, changing and deactivating it.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::{choose, confirm, has, open, open_filters, poll, takes_presses};
use crate::harness::System;

/// Creates users as the administrator, with values that must not become markup.
async fn create_users(system: &System, number: usize) {
    for n in 1..=number {
        let body = json!({
            "username": format!("user-{n}@example.com"), "password": System::PASSWORD,
            "plan": "<img src=x onerror=alert(1)>", "vendor": ["<b>Acme</b>"],
            "metadata": {"firstName": "<script>alert(1)</script>"},
        });
        let _ = system.post("/user", &system.admin, &body).await;
    }
}

async fn is_refused(system: &System, token: &str) {
    eventually("the token to be refused", || async {
        let reply = system.http.get("/user").bearer(token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_found_changed_and_deactivated() {
    let system = System::start().await;
    create_users(&system, 60).await;
    let token = system.sign_up("ada@example.com").await;
    let phone = Browser::phone().await;
    open(&system, &phone, "").await;
    has(&phone, 25, "tbody tr").await;
    phone.sees("62 in all").await;
    phone.follow("Next page").await;
    phone.sees("Rows 26 to 50").await;
    phone.follow("Next page").await;
    has(&phone, 12, "tbody tr").await;
    for (offset, number, range) in [
        ("999999", 12, "Rows 51 to 62"),
        ("99999999", 12, "Rows 51 to 62"),
        ("abc", 25, "Rows 1 to 25"),
    ] {
        let path = format!("{}/admin?offset={offset}", system.http.base());
        phone.open(&path).await;
        has(&phone, number, "tbody tr").await;
        phone.sees(range).await;
    }
    phone.fill("Search usernames", "ADA@").await;
    has(&phone, 1, "tbody tr").await;
    phone.sees("1 in all").await;

    phone.follow("ada@example.com").await;
    phone.sees("All users").await;
    phone.fill("Plan", "gold").await;
    phone.click("Save").await;
    phone.sees("The changes are saved.").await;
    let id = system.user_id("ada@example.com").await;
    let path = format!("/users/{id}");
    assert_eq!(system.get(&path, &system.admin).await.json["plan"], "gold");
    // A new plan signs nobody out.
    let _ = system.get("/user", &token).await;
    phone.fill("Username", "user-1@example.com").await;
    phone.click("Save").await;
    phone
        .sees("There is already an account with this e-mail address.")
        .await;
    assert_eq!(phone.count("#username[aria-invalid]").await, 1);

    phone.click("Deactivate").await;
    phone.click("Go back").await;
    let _ = system.get("/user", &token).await;
    phone.click("Deactivate").await;
    confirm(&phone, "Deactivate").await;
    phone.sees("The account is deactivated.").await;
    is_refused(&system, &token).await;
    phone.click("Activate").await;
    phone.sees("The account is active.").await;
    let signed_in = system.sign_in("ada@example.com", System::PASSWORD).await;
    let token = signed_in.expect(200).text_of("token");
    phone.click("Sign out everywhere").await;
    confirm(&phone, "Sign out everywhere").await;
    phone.sees("The user is signed out.").await;
    is_refused(&system, &token).await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_makes_a_service_account() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    open(&system, &phone, "").await;
    phone.click("New user").await;
    phone.sees("A few unrelated words").await;
    takes_presses(&phone).await;
    let write = "document.getElementById('new-email').value = 'flows@example.com';
        document.getElementById('new-password').value = 'what is not sent';
        document.querySelector('dialog [type=checkbox]').click()";
    phone.run(write).await;
    assert_eq!(phone.count("dialog .field[hidden] #new-password").await, 1);
    phone.click("Create").await;
    phone.sees("The account is created.").await;
    has(&phone, 1, "tbody tr").await;
    phone.follow("flows@example.com").await;
    phone.sees("Service account").await;
    let path = format!("/users/{}", system.user_id("flows@example.com").await);
    let user = system.get(&path, &system.admin).await.json;
    assert_eq!(user["service"], true);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_list_says_of_itself_is_told_once() {
    let system = System::start().await;
    create_users(&system, 2).await;
    let phone = Browser::phone().await;
    open(&system, &phone, "").await;
    phone.sees("3 in all").await;
    has(&phone, 1, "#summary[aria-atomic=false]").await;
    let watch = "new MutationObserver(() => { window.isToldAgain = true; })
        .observe(document.getElementById('summary'), { childList: true, characterData: true, subtree: true })";
    phone.run(watch).await;
    poll(&phone).await;
    has(&phone, 0, "#list[aria-busy]").await;
    assert!(phone.run("return window.isToldAgain").await.is_null());
    phone.sees("3 in all").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_one_field_leaves_the_others_as_they_are() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let id = system.user_id("ada@example.com").await;
    let path = format!("/users/{id}");
    let set = json!({"scope": ["a,b"], "vendor": ["Acme, Inc."], "plan": " gold"});
    let _ = system.put(&path, &system.admin, &set).await;
    let phone = Browser::phone().await;
    open(&system, &phone, &format!("?view=user&id={id}")).await;
    phone.fill("E-mail address", "grace@example.com").await;
    phone.click("Save").await;
    phone.sees("The changes are saved.").await;
    let user = system.get(&path, &system.admin).await.json;
    assert_eq!(user["email"], "grace@example.com");
    for field in ["scope", "vendor", "plan"] {
        assert_eq!(user[field], set[field], "{field}");
    }
    phone.fill("Vendor", "").await;
    phone.fill("Scope", "c, d").await;
    phone.click("Save").await;
    eventually("the changes to be saved", || async {
        let user = system.get(&path, &system.admin).await.json;
        (user["vendor"].is_null() && user["scope"] == json!(["c", "d"])).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_filtered_and_sorted_and_their_texts_are_no_markup() {
    let system = System::start().await;
    create_users(&system, 3).await;
    let phone = Browser::phone().await;
    open(&system, &phone, "?sort=username:1").await;
    has(&phone, 4, "tbody tr").await;
    let first = "return document.querySelector('tbody tr th').innerText";
    assert_eq!(phone.run(first).await, "admin@countersign.local");
    choose(&phone, "order", "username:-1").await;
    eventually("the order to be reversed", || async {
        (phone.run(first).await == "user-3@example.com").then_some(())
    })
    .await;
    assert_eq!(phone.count("th[aria-sort=descending]").await, 1);
    phone.sees("<img src=x onerror=alert(1)>").await;
    // A phone that is turned round has room for the filters.
    let open = "return document.querySelector('details.fold').open";
    assert_eq!(phone.run(open).await, false);
    let turned = json!({"width": 1024, "height": 390, "deviceScaleFactor": 2, "mobile": true});
    phone
        .devtools("Emulation.setDeviceMetricsOverride", &turned)
        .await;
    eventually("the filters to be open", || async {
        (phone.run(open).await == true).then_some(())
    })
    .await;
    phone
        .devtools("Emulation.clearDeviceMetricsOverride", &json!({}))
        .await;
    open_filters(&phone).await;
    phone.fill("Scope", "admin").await;
    has(&phone, 1, "tbody tr").await;
    phone.fill("Scope", "").await;
    phone.fill("Vendor", "<b>Acme</b>").await;
    has(&phone, 3, "tbody tr").await;
    assert!(phone.address().await.contains("vendor="));
    phone.reload().await;
    has(&phone, 3, "tbody tr").await;

    phone.follow("user-2@example.com").await;
    phone.sees("<script>alert(1)</script>").await;
    assert_eq!(
        phone.count("#content :is(img, b, script, [onerror])").await,
        0
    );
    let wide = "return document.documentElement.scrollWidth > innerWidth";
    assert_eq!(phone.run(wide).await, false, "the page is too wide");
    phone.assert_no_errors().await;
    system.stop().await;
}
