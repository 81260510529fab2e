//! What the pages say in German about dates, addresses and what is wrong, in the time zone of the browser.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::{REQUESTER, task_with, wait_for_another_press};
use crate::harness::System;

/// A phone in Berlin.
async fn german_phone(system: &System) -> Browser {
    let phone = Browser::phone().await;
    phone.speak("de-DE,de").await;
    let zone = json!({"timezoneId": "Europe/Berlin"});
    phone.devtools("Emulation.setTimezoneOverride", &zone).await;
    phone.open(system.http.base()).await;
    phone
}

async fn sign_in(phone: &Browser, email: &str) {
    phone.fill("E-Mail-Adresse", email).await;
    phone.fill("Passwort", System::PASSWORD).await;
    phone.click("Anmelden").await;
}

/// Chooses a date, which people type in many ways.
async fn choose_date(phone: &Browser, date: &str) {
    let script = format!(
        "const field = document.getElementById('decisionBy'); field.value = {};
        field.dispatchEvent(new Event('input', {{ bubbles: true }}))",
        json!(date)
    );
    phone.run(&script).await;
}

/// Waits until the remark at a field says this where it is seen and read aloud.
async fn remarks(phone: &Browser, id: &str, text: &str) {
    phone.sees(text).await;
    let script = format!(
        "const remark = document.getElementById('{id}-remark'), {{ top, bottom }} = remark.getBoundingClientRect();
        return remark.role === 'alert' && top >= 0 && bottom <= innerHeight && remark.innerText.includes({})",
        json!(text)
    );
    eventually("the remark to be in view", || async {
        (phone.run(&script).await == true).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_and_addresses_are_remarked_on_in_german() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Ein Stuhl", "").await;
    let phone = german_phone(&system).await;
    sign_in(&phone, REQUESTER).await;
    phone.click("Neue Aufgabe").await;
    phone.sees("In Ihrer Zeitzone, Europe/Berlin.").await;
    let bounds = "const { min, max } = document.getElementById('decisionBy'); return [min, max]";
    let expected = json!(["0001-01-01T00:00", "9999-12-31T23:59:59"]);
    assert_eq!(phone.run(bounds).await, expected);
    phone.fill("Titel", "Ein Tisch").await;
    phone
        .fill("Entscheidende Person (E-Mail)", "bob@example.com")
        .await;
    for (date, remark) in [
        ("2020-01-01T12:00", "Das ist vergangen"),
        (
            "2099-03-29T02:30",
            "diese Zeit gibt es nicht. Es wäre 29. März 2099, 03:30 MESZ",
        ),
        (
            "2099-10-25T02:30",
            "Gemeint ist die erste, 25. Okt. 2099, 02:30 MESZ",
        ),
    ] {
        choose_date(&phone, date).await;
        phone.click("Erstellen").await;
        remarks(&phone, "decisionBy", remark).await;
        phone.sees("Trotzdem erstellen").await;
    }
    choose_date(&phone, "2099-05-01T12:00").await;
    phone
        .fill("Entscheidende Person (E-Mail)", "bob@localhost")
        .await;
    phone.click("Erstellen").await;
    remarks(&phone, "approver", "keine vollständige Domain").await;
    wait_for_another_press().await;
    phone.click("Trotzdem erstellen").await;
    phone.click("Fertig").await;
    phone.follow("Ein Tisch").await;
    phone.sees("1. Mai 2099, 12:00 MESZ").await;
    phone.sees("Erweitert").await;

    // A short zone name is on the task of every reader.
    let path = format!("/people-task/tasks/{}", task.id);
    let due = json!({"decisionBy": "2099-01-31 11:00:00"});
    let _ = system.put(&path, &token, &due).await;
    phone
        .open(&format!("{}/tasks?taskId={}", system.http.base(), task.id))
        .await;
    phone.sees("31. Jan. 2099, 12:00 MEZ").await;

    // In the evening, a day and a half later is the day after tomorrow, and in the morning it is tomorrow.
    let soon =
        "return new Date(Date.now() + 36.5 * 3_600_000).toISOString().replace(/\\.\\d+/, '')";
    let soon = phone.run(soon).await;
    let due = json!({"decisionBy": soon});
    let _ = system.put(&path, &token, &due).await.expect(200);
    phone.reload().await;
    phone.sees("in 1 Tag").await;
    assert!(!phone.text().await.contains("übermorgen"));

    // The latest date that a task can have is in the year 10000 here, which no field takes.
    let due = json!({"decisionBy": "9999-12-31 23:59:59"});
    let _ = system.put(&path, &token, &due).await;
    phone.reload().await;
    phone.click("Bearbeiten").await;
    phone.sees("Speichern").await;
    let shown = phone.run("return document.getElementById('decisionBy').value");
    assert_eq!(shown.await, "9999-12-31T23:59:59");
    phone.fill("Titel", "Ein Sofa").await;
    phone.click("Speichern").await;
    phone.sees("Ein Sofa").await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_in_german() {
    let system = System::start().await;
    let _ = system.sign_up("ada@example.com").await;
    let phone = german_phone(&system).await;
    phone.click("Konto anlegen").await;
    phone.fill("E-Mail-Adresse", "bob@example.com").await;
    phone.fill("Passwort", "1234").await;
    phone.click("Konto anlegen").await;
    phone
        .sees("Das Passwort braucht mindestens 5 Zeichen.")
        .await;
    phone.open(system.http.base()).await;
    sign_in(&phone, "admin@countersign.local").await;
    phone.follow("Admin").await;
    phone.follow("ada@example.com").await;
    for (field, value, text) in [
        ("Tarif", " ", "Bitte ausfüllen."),
        (
            "Rolle",
            "a b",
            "Ohne Leerzeichen, Anführungszeichen und Backslash",
        ),
    ] {
        phone.fill(field, value).await;
        phone.click("Speichern").await;
        phone.sees(text).await;
        phone.reload().await;
    }
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administrators_page_writes_numbers_in_german() {
    let system = System::start().await;
    let phone = german_phone(&system).await;
    phone.open(&format!("{}/admin", system.http.base())).await;
    let text = "return globalThis.countersignModules?.['texts.js']?.t('deletedTasks', { count: 12345 }, '')";
    eventually("the texts of administrators", || async {
        (phone.run(text).await == "Bisher wurden 12.345 Aufgaben gelöscht.").then_some(())
    })
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_try_again_is_not_too_early() {
    let system = System::start().await;
    let phone = german_phone(&system).await;
    phone.sees("Anmelden").await;
    let times = "Date.now = () => +new Date(2030, 0, 1, 10, 4, 40);
        return [20, 30].map(globalThis.countersignModules['times.js'].timeOfDay)";
    assert_eq!(phone.run(times).await, json!(["10:05", "10:06"]));
    phone.assert_no_errors().await;
    system.stop().await;
}
