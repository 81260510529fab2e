//! The page of administrators.

mod deletions;
mod selection;
mod users;
mod webhooks;

use crate::webdriver::{Browser, Screen};
use serde_json::{Value, json};
use testkit::{Http, eventually};

use super::accessibility::check;
use super::{answer, keep_from_polling, poll, takes_presses};
use crate::harness::System;

const ADMIN: &str = "admin@countersign.local";

/// Opens a view as the administrator.
async fn open(system: &System, phone: &Browser, query: &str) {
    phone
        .open(&format!("{}/admin{query}", system.http.base()))
        .await;
    sign_in(phone, ADMIN).await;
    phone.sees("Audit log").await;
}

async fn sign_in(phone: &Browser, email: &str) {
    phone.fill("E-mail address", email).await;
    phone.fill("Password", System::PASSWORD).await;
    phone.click("Sign in").await;
}

/// Confirms what the dialog asks.
async fn confirm(phone: &Browser, name: &str) {
    let button = "document.querySelector('dialog[open] .reject')";
    eventually("the dialog to ask", || async {
        let text = phone.run(&format!("return {button}?.innerText")).await;
        (text == name).then_some(())
    })
    .await;
    takes_presses(phone).await;
    phone.run(&format!("{button}.click()")).await;
}

/// Chooses or sets the value of the field with this identifier, once it is shown.
async fn choose(phone: &Browser, id: &str, value: &str) {
    let script = format!(
        "const field = document.getElementById({}); if (!field) return false;
        field.value = {}; field.dispatchEvent(new Event('change')); return true",
        json!(id),
        json!(value)
    );
    eventually(&format!("the field {id} to be shown"), || async {
        (phone.run(&script).await == true).then_some(())
    })
    .await;
}

/// Waits until a number of elements match a selector.
async fn has(phone: &Browser, number: u64, css: &str) {
    eventually(&format!("{number} × {css}"), || async {
        (phone.count(css).await == number).then_some(())
    })
    .await;
}

/// Waits until what has the focus has this text.
async fn is_focused(phone: &Browser, text: &str) {
    let focused = "return document.activeElement.innerText";
    eventually(&format!("the focus to be on {text}"), || async {
        (phone.run(focused).await == text).then_some(())
    })
    .await;
}

/// Changes how the flow engine behaves.
async fn control_engine(system: &System, change: &Value) {
    let url = system.webhook_url();
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let engine = Http::to(address.parse().unwrap());
    let _ = engine.put("/control").json(change).send().await.expect(200);
}

/// Opens the filters, which are folded on a phone.
async fn open_filters(phone: &Browser) {
    phone
        .run("document.querySelector('details.fold').open = true")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_for_administrators() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let phone = Browser::phone().await;
    phone.open(&format!("{}/admin", system.http.base())).await;
    sign_in(&phone, "ada@example.com").await;
    phone.sees("This page is for administrators.").await;
    assert_eq!(phone.count("[href='/admin'], table").await, 0);
    phone.click("Sign out").await;

    sign_in(&phone, ADMIN).await;
    phone.follow("Admin").await;
    phone.sees("ada@example.com").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_and_the_audit_log_are_shown() {
    let system = System::start().await;
    let token = system.sign_up("ada@example.com").await;
    let task = system
        .create_task(&token, "ada@example.com", "bob@example.com")
        .await;
    let phone = Browser::phone().await;
    open(&system, &phone, "?view=queues").await;
    for text in [
        "webhook.due-deliveries",
        "user.deletions",
        "user.notifications",
        "Connected",
    ] {
        phone.sees(text).await;
    }
    has(&phone, 3, "td[data-label='Dead letters']").await;
    // Numbers that are not the newest ones are not shown without a word.
    let failed = "() => new Response('', { status: 503 })";
    answer(&phone, "GET /people-task/queues", &[failed]).await;
    poll(&phone).await;
    phone.sees("The server responded with status 503.").await;
    poll(&phone).await;
    has(&phone, 0, "#alert p").await;
    phone.follow("Audit log").await;
    phone.sees("Account created").await;
    phone.sees("Signed in").await;
    phone.sees("Password").await;
    let hint = "return document.getElementById('after-help').textContent.startsWith('In your time zone, ')";
    assert_eq!(phone.run(hint).await, true);
    let option = "return document.querySelector('option[value=user-updated]').label";
    assert_eq!(phone.run(option).await, "Account changed");
    open_filters(&phone).await;
    phone.fill("Action", "user-created").await;
    has(&phone, 1, "tbody tr").await;
    let id = system.user_id("ada@example.com").await;
    phone.sees("ada@example.com").await;
    assert_eq!(phone.count(&format!("tbody a [title='{id}']")).await, 1);
    phone.fill("Action", "").await;
    choose(&phone, "of", "tasks").await;
    phone.sees("Task created").await;
    phone.fill("Subject’s identifier", &task.id).await;
    has(&phone, 1, "tbody tr").await;
    choose(&phone, "after", "2300-01-01T00:00").await;
    phone.sees("Nothing found.").await;
    phone.fill("Subject’s identifier", "nonsense").await;
    phone.sees("24").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_of_some_days_is_downloaded() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let id = system.user_id("ada@example.com").await;
    let phone = Browser::phone().await;
    // An end that is past would leave nothing.
    let path = "?view=audit&action=user-created&before=2020-01-01T00:00";
    open(&system, &phone, path).await;
    phone.sees("Nothing found.").await;
    phone.click("Last 7 days").await;
    has(&phone, 1, "tbody tr").await;
    let address = phone.address().await;
    assert!(address.contains("after=") && !address.contains("before="));
    // The file has what is listed.
    let blobs = "window.blobs = []; const make = URL.createObjectURL;
        URL.createObjectURL = (blob) => { blobs.push(blob); return make.call(URL, blob); }";
    phone.run(blobs).await;
    phone.click("Download as CSV").await;
    eventually("the file to be made", || async {
        let text = phone
            .run("return window.blobs[0]?.text() ?? Promise.resolve('')")
            .await;
        let lines = text.as_str().unwrap().lines();
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        (lines.len() == 2 && lines[1].contains("user-created") && lines[1].contains(&id))
            .then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_the_audit_log_means_the_same_times_everywhere() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    let zone = json!({"timezoneId": "Asia/Tokyo"});
    phone.devtools("Emulation.setTimezoneOverride", &zone).await;
    open(&system, &phone, "?view=audit&after=2030-01-01T00:00:00Z").await;
    phone.sees("Nothing found.").await;
    let after = "return document.getElementById('after').value";
    assert_eq!(phone.run(after).await, "2030-01-01T09:00");
    choose(&phone, "before", "2030-02-01T09:00").await;
    let address = phone.address().await.replace("%3A", ":");
    for time in ["after=2030-01-01T00:00:00Z", "before=2030-02-01T00:00:00Z"] {
        assert!(address.contains(time), "{address}");
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_has_each_entry_once_while_others_are_written() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let phone = Browser::phone().await;
    keep_from_polling(&phone).await;
    open(&system, &phone, "?view=audit&action=user-created").await;
    has(&phone, 1, "tbody tr").await;
    // As if only one entry fitted into the first response, before another one is written.
    let body = json!({"username": "grace@example.com", "password": System::PASSWORD});
    let script = format!(
        "window.blobs = []; URL.createObjectURL = (blob) => {{ blobs.push(blob); return '#'; }};
         const real = window.fetch; let isFirst = true;
         window.fetch = async (url, options) => {{
           const response = await real(url, options);
           if (!url.startsWith('/audit?') || !isFirst) return response;
           isFirst = false;
           const headers = {{ 'Content-Type': 'application/json' }};
           await real('/user', {{ method: 'POST', headers, body: JSON.stringify({body}) }});
           return new Response(await response.text(), {{ headers: {{ Link: '</audit?offset=1>; rel=\"next\"' }} }});
         }}"
    );
    phone.run(&script).await;
    phone.click("Download as CSV").await;
    eventually("the file to be made", || async {
        (phone.run("return blobs.length").await == 1).then_some(())
    })
    .await;
    let text = phone.run("return blobs[0].text()").await;
    let lines = text.as_str().unwrap().lines().count();
    assert_eq!(lines, 2, "{text}");
    let created = "/audit?filter=action:user-created";
    let written = system.get(created, &system.admin).await.json;
    assert_eq!(written.as_array().unwrap().len(), 2);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_focus_follows_what_is_opened() {
    let system = System::start().await;
    system.sign_up("ada@example.com").await;
    let id = system.user_id("ada@example.com").await;
    let phone = Browser::phone().await;
    open(&system, &phone, "").await;
    phone.follow("ada@example.com").await;
    phone.sees("All users").await;
    is_focused(&phone, "ada@example.com").await;
    assert!(
        phone
            .address()
            .await
            .ends_with(&format!("view=user&id={id}"))
    );
    phone.run("[...document.querySelectorAll('button')].find((one) => one.innerText === 'Delete').focus()").await;
    // Enter opens the dialog, whose first button destroys nothing, and Escape closes it.
    phone.press('\u{e007}').await;
    is_focused(&phone, "Go back").await;
    phone.press('\u{e00c}').await;
    has(&phone, 0, "dialog").await;
    is_focused(&phone, "Delete").await;
    let unnamed = "return [...document.querySelectorAll('table, nav, input, select, button, a')]
        .filter((one) => one.checkVisibility({ visibilityProperty: true })).filter((one) => !(one.ariaLabel || one.labels?.length || one.innerText?.trim())).length";
    assert_eq!(phone.run(unnamed).await, 0);
    phone.run("history.back()").await;
    is_focused(&phone, "Users").await;
    has(&phone, 2, "tbody tr").await;
    assert_eq!(phone.run(unnamed).await, 0);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_is_accessible() {
    let system = System::start().await;
    let token = system.sign_up("ada@example.com").await;
    let task = system
        .create_task(&token, "ada@example.com", "bob@example.com")
        .await;
    system
        .register_webhook(&token, &task.id, "accessible")
        .await;
    let approve = format!("/people-task/tasks/{}/approve", task.id);
    let _ = system.put(&approve, &token, &json!({})).await;
    let _ = system.wait_for_webhook("accessible").await;
    let id = system.user_id("ada@example.com").await;
    // So that it is listed.
    let host = json!({"host": "127.0.0.1"});
    let pause = "/people-task/deliveries/pause";
    let _ = system.post(pause, &system.admin, &host).await;
    let user = format!("?view=user&id={id}");
    for screen in [Screen::PHONE, Screen::DESKTOP] {
        let browser = Browser::with(screen).await;
        open(&system, &browser, "").await;
        check(&browser, "ada@example.com").await;
        browser
            .run("document.querySelector('#selection input').click()")
            .await;
        check(&browser, "1 selected").await;
        open_filters(&browser).await;
        check(&browser, "The whole value.").await;
        browser.click("New user").await;
        check(&browser, "A few unrelated words").await;
        for (query, text) in [
            (user.as_str(), "Sign out everywhere"),
            ("?view=deletions", "Nothing found."),
            ("?view=hosts", "127.0.0.1"),
            ("?view=deliveries&host=127.0.0.1", "Resume"),
            ("?view=audit", "Account created"),
            ("?view=queues", "webhook.due-deliveries"),
        ] {
            browser
                .open(&format!("{}/admin{query}", system.http.base()))
                .await;
            check(&browser, text).await;
        }
        browser
            .open(&format!("{}/admin{user}", system.http.base()))
            .await;
        browser.click("Delete").await;
        check(&browser, "This cannot be undone.").await;
        browser.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_languages_have_the_same_texts() {
    let system = System::start().await;
    let phone = Browser::phone().await;
    phone.open(&format!("{}/", system.http.base())).await;
    let missing = phone
        .run(
            "return Promise.all(['en', 'de'].map((name) => import(`/assets/texts/admin-${name}.js`)))
                .then((modules) => modules.map(({ texts }) => Object.keys(texts)))
                .then(([en, de]) => [...en.filter((key) => !de.includes(key)), ...de.filter((key) => !en.includes(key))])",
        )
        .await;
    assert_eq!(missing, json!([]));
    phone.assert_no_errors().await;
    system.stop().await;
}
