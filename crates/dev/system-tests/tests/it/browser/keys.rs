//! The page of a person's API keys, and those of a user for administrators.

use serde_json::json;
use testkit::eventually;

use super::accessibility::check;
use super::{APPROVER, LOST, answer, press_at_once, sign_in, signed_in};
use crate::harness::System;
use crate::webdriver::Browser;

const ADMIN: &str = "admin@countersign.local";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_makes_a_key_that_works_and_ends_it() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let phone = Browser::phone().await;
    phone.open(&format!("{}/account", system.http.base())).await;
    sign_in(&phone, APPROVER, System::PASSWORD).await;
    phone.follow("API keys").await;
    phone.sees("There are no API keys.").await;
    phone.fill("Name", "Invoices in n8n").await;
    phone.click("Make a key").await;
    phone.sees("it is not shown again").await;
    check(&phone, "Invoices in n8n").await;
    let key = phone
        .run("return document.querySelector('#new-key').value")
        .await;
    let key = key.as_str().unwrap().to_owned();
    let _ = system.get("/people-task/tasks-count", &key).await;
    phone.click("End").await;
    phone.sees("The key has ended.").await;
    phone.sees("There are no API keys.").await;
    eventually("the key to be refused", || async {
        let reply = system.http.get("/people-task/tasks-count").bearer(&key);
        (reply.send().await.status == 401).then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click_ends_one_key() {
    let system = System::start().await;
    let token = system.sign_up(APPROVER).await;
    for name in ["Invoices", "Orders"] {
        let body = json!({"name": name, "scopes": ["tasks:read"]});
        let _ = system.post("/user/keys", &token, &body).await;
    }
    let phone = signed_in(&system, "/keys", APPROVER).await;
    phone.sees("Orders").await;
    press_at_once(&phone, "#content > div > div", ".keys button").await;
    phone.click("End").await;
    phone.sees("The key has ended.").await;
    assert_eq!(phone.run("return window.isTaken").await, false);
    assert_eq!(phone.count(".keys > li").await, 1);
    assert_eq!(phone.count("h1:focus").await, 1);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_with_five_digits_is_refused_by_the_form() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let phone = signed_in(&system, "/keys", APPROVER).await;
    phone.fill("Name", "Invoices in n8n").await;
    let end = "const end = document.getElementById('expires'); end.value =";
    phone.run(&format!("{end} '12345-01-01'")).await;
    phone.click("Make a key").await;
    let refused = "return document.getElementById('expires').validity.rangeOverflow";
    assert_eq!(phone.run(refused).await, true);
    phone.run(&format!("{end} '9999-12-30'")).await;
    // The text of the key is shown, whatever becomes of the list.
    answer(&phone, "GET /user/keys", &[LOST]).await;
    phone.click("Make a key").await;
    phone.sees("it is not shown again").await;
    phone.sees("The server cannot be reached.").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_new_key_is_said() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let phone = signed_in(&system, "/keys", APPROVER).await;
    phone.fill("Name", "Invoices in n8n").await;
    let press = "document.querySelectorAll('fieldset input:checked').forEach((box) => box.click())";
    phone.run(press).await;
    phone.click("Make a key").await;
    phone.sees("Choose at least one.").await;
    let described = "#scopes[aria-describedby=scopes-error] > #scopes-error";
    assert_eq!(phone.count(described).await, 1);
    let past = "document.querySelector('#scope-tasks-read').click();
        document.getElementById('expires').value = '2020-01-01'";
    phone.run(past).await;
    phone.click("Make a key").await;
    phone.sees("This day is over.").await;
    for (problem, text) in [
        ("503 overloaded", "This server is busy."),
        ("502 bad-gateway", "A part of this server failed."),
    ] {
        let (status, code) = problem.split_once(' ').unwrap();
        let failed =
            format!("() => new Response('{{\"code\": \"{code}\"}}', {{ status: {status} }})");
        answer(&phone, "POST /user/keys", &[failed.as_str()]).await;
        phone.click("Make a key").await;
        phone.sees(text).await;
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_creation_got_no_response_is_listed() {
    let system = System::start().await;
    system.sign_up(APPROVER).await;
    let phone = signed_in(&system, "/keys", APPROVER).await;
    phone.fill("Name", "Invoices in n8n").await;
    answer(&phone, "POST /user/keys", &[LOST]).await;
    phone.click("Make a key").await;
    phone.sees("The server cannot be reached.").await;
    phone.sees("Invoices in n8n").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_makes_a_key_for_a_service_account() {
    let system = System::start().await;
    let body = json!({"email": "flows@example.com", "service": true});
    let made = system.post("/user", &system.admin, &body).await;
    let id = made.json["user"]["id"].as_str().unwrap().to_owned();
    let phone = Browser::phone().await;
    let page = format!("{}/admin?view=user&id={id}", system.http.base());
    phone.open(&page).await;
    sign_in(&phone, ADMIN, System::PASSWORD).await;
    phone.sees("Service account").await;
    phone
        .run("document.querySelector('details summary').click()")
        .await;
    phone.sees("There are no API keys.").await;
    phone.fill("Name", "Flows").await;
    phone
        .run("document.querySelector('#scope-tasks-decide').click()")
        .await;
    phone.click("Make a key").await;
    phone.sees("it is not shown again").await;
    let keys = system
        .get(&format!("/users/{id}/keys"), &system.admin)
        .await;
    let scopes = json!(["tasks:read", "tasks:write", "tasks:decide"]);
    assert_eq!(keys.json[0]["scopes"], scopes);
    phone.assert_no_errors().await;
    system.stop().await;
}
