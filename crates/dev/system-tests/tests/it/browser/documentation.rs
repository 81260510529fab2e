//! The documentation: all operations, and requests that are sent from it.

use std::collections::BTreeSet;

use crate::webdriver::Browser;
use testkit::eventually;

use super::sign_in;
use crate::harness::System;

/// Waits for an element. Reading the text of this long page again and again would slow it down.
async fn has(phone: &Browser, selector: &str) {
    eventually(&format!("the page to have {selector}"), || async {
        (phone.count(selector).await > 0).then_some(())
    })
    .await;
}

async fn text_of(phone: &Browser, selector: &str) -> String {
    let script = format!("return document.querySelector(`{selector}`).innerText");
    phone.run(&script).await.as_str().unwrap().to_owned()
}

async fn press(phone: &Browser, selector: &str) {
    has(phone, selector).await;
    let script = format!("document.querySelector(`{selector}`).click()");
    phone.run(&script).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_shows_every_operation() {
    let system = System::start().await;
    let document = system.http.get("/openapi.json").send().await.expect(200);
    let paths = document.json["paths"].as_object().unwrap().iter();
    let documented: BTreeSet<String> = paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();

    let phone = Browser::phone().await;
    phone.open(&format!("{}/docs", system.http.base())).await;
    has(&phone, ".opblock").await;
    let shown = phone
        .run(
            "return [...document.querySelectorAll('.opblock')].map((operation) => \
             `${operation.querySelector('.opblock-summary-method').innerText} ${operation.querySelector('.opblock-summary-path').dataset.path}`)",
        )
        .await;
    let shown = shown.as_array().unwrap().iter();
    let shown: BTreeSet<String> = shown.map(|one| one.as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, documented);

    // The first operation that one can try is one of every user, and those of administrators are last.
    let order = phone
        .run(
            "return [...document.querySelector('.opblock-tag-section').querySelectorAll('.opblock-summary-path')].map(({ dataset }) => dataset.path)",
        )
        .await;
    let order: Vec<_> = order
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    assert!(order[0].starts_with("/people-task/tasks"), "{order:?}");
    let audit = order.iter().position(|path| *path == "/people-task/audit");
    let last_of_all = order
        .iter()
        .rposition(|path| path.starts_with("/people-task/tasks"));
    assert!(audit > last_of_all, "{order:?}");

    press(&phone, "[id$='-listUsers'] .opblock-summary-control").await;
    has(&phone, "[id$='-listUsers'] [data-param-name=offset]").await;
    let wide = "return document.documentElement.scrollWidth > innerWidth";
    assert_eq!(phone.run(wide).await, false, "the page is too wide");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_sends_requests_with_the_token_of_the_user() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let phone = Browser::phone().await;
    phone.open(&format!("{}/docs", system.http.base())).await;
    let refused = response_of_current_user(&phone).await;
    assert!(refused.contains("\"code\": \"token-missing\""), "{refused}");

    phone.open(system.http.base()).await;
    sign_in(&phone, "ada@example.com", System::PASSWORD).await;
    phone.sees("Your tasks").await;
    phone.follow("API documentation").await;
    let accepted = response_of_current_user(&phone).await;
    assert!(
        accepted.contains("\"email\": \"ada@example.com\""),
        "{accepted}"
    );
    let curl = text_of(&phone, "[id$='-currentUser'] .curl").await;
    assert!(
        curl.contains("Bearer $TOKEN") && !curl.contains("eyJ"),
        "{curl}"
    );
    let shown = response_of(&phone, "[id$='-signIn']", |operation| format!(
        "const text = document.querySelector(\"{operation} .body-param textarea\");
        Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(text, JSON.stringify({{ username: 'ada@example.com', password: 'correct horse' }}));
        text.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    ))
    .await;
    assert!(shown.contains("\"token\""), "{shown}");
    let curl = text_of(&phone, "[id$='-signIn'] .curl").await;
    assert!(
        curl.contains("ada@example.com") && !curl.contains("correct horse"),
        "{curl}"
    );
    phone.assert_no_errors().await;
    system.stop().await;
}

/// Sends `GET /user` and returns what the page then shows of the response.
async fn response_of_current_user(phone: &Browser) -> String {
    response_of(phone, "[id$='-currentUser']", |_| String::new()).await
}

/// Sends a request after a script has filled it in, and returns what the page then shows of the response.
async fn response_of(phone: &Browser, operation: &str, fill: impl Fn(&str) -> String) -> String {
    press(phone, &format!("{operation} .opblock-summary-control")).await;
    press(phone, &format!("{operation} .try-out__btn")).await;
    has(phone, &format!("{operation} .execute")).await;
    phone.run(&fill(operation)).await;
    press(phone, &format!("{operation} .execute")).await;
    let response = format!("{operation} .live-responses-table tbody > .response");
    has(phone, &response).await;
    text_of(phone, &response).await
}
