//! How a task reads: its title, tables and lists, on paper, and with other colours.

use crate::webdriver::{Browser, Screen};
use serde_json::{Value, json};
use testkit::eventually;

use super::{REQUESTER, link, poll, task_with};
use crate::harness::System;

const DESCRIPTION: &str = "## Why

| Item | Price |
|---|---:|
| A chair for the conference room | EUR 1.899,00 |
| b | US$ 1,899 |
| c | **1,899.00 €** |
| d | 3.000 km |
| e | 450 € netto |

| פריט | מחיר |
|---|---|
| כיסא | 12 ש\u{5f4}ח |

- ראשון
- שני

Done:

- [x] asked
- [ ] paid

[![The chair](https://example.com/chair.png)](https://example.com/chair)";

async fn reads(browser: &Browser, script: &str, expected: Value) {
    assert_eq!(browser.run(script).await, expected, "{script}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_lists_and_images_of_a_description_read_well() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", DESCRIPTION).await;
    let phone = Browser::phone().await;
    phone
        .prefer(&[("prefers-color-scheme", "dark"), ("forced-colors", "none")])
        .await;
    phone
        .open(&format!("{}&action=reject", link(&system, &task)))
        .await;
    phone.sees("450 € netto").await;
    // The title has the focus, so that it is read aloud.
    reads(&phone, "return document.activeElement.tagName", json!("H1")).await;
    let prices = "return [...document.querySelectorAll('table:not([dir=rtl]) td:last-child')].map((cell) =>
        [getComputedStyle(cell).textAlign, getComputedStyle(cell).whiteSpace, cell.innerText.includes('\\n')].join())";
    reads(&phone, prices, json!(vec!["end,nowrap,false"; 5])).await;
    let directions = "return [...document.querySelectorAll('#description :is(table, ul)')].map(({ dir }) => dir)";
    reads(&phone, directions, json!(["ltr", "rtl", "rtl", "ltr"])).await;
    let marker = "return getComputedStyle(document.querySelector('.choice')).listStyleType";
    reads(&phone, marker, json!("none")).await;
    let links = "return [...document.querySelectorAll('#description a')].map((link) => [link.href, link.innerText, link.children[0]?.className])";
    let linked = json!([["https://example.com/chair", "The chair", "image"]]);
    reads(&phone, links, linked).await;
    let shadow = "return getComputedStyle(document.querySelector('.scroll')).backgroundImage.includes('rgba(0, 0, 0, 0.7)')";
    reads(&phone, shadow, json!(true)).await;

    // The decision that the link proposes differs by more than its colour.
    phone.prefer(&[("forced-colors", "active")]).await;
    let borders = "return ['approve', 'reject'].map((id) => getComputedStyle(document.getElementById(id)).borderTopWidth)";
    reads(&phone, borders, json!(["2px", "5px"])).await;
    phone.prefer(&[("forced-colors", "none")]).await;

    phone.run("document.getElementById('skip').focus()").await;
    phone.press('\u{e007}').await;
    reads(
        &phone,
        "return document.activeElement.tagName",
        json!("MAIN"),
    )
    .await;

    phone
        .devtools("Emulation.setEmulatedMedia", &json!({"media": "print"}))
        .await;
    phone.run("dispatchEvent(new Event('beforeprint'))").await;
    let text = phone.text().await;
    assert!(text.contains("Printed on ") && text.contains(&task.id));
    assert!(!text.contains(&task.approver_secret) && !text.contains("Approve\n"));
    reads(
        &phone,
        "return [...document.querySelectorAll('button, #menu')].filter((one) => one.checkVisibility()).length",
        json!(0),
    )
    .await;
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_title_is_folded_only_where_it_takes_many_lines() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let title = |times: usize| {
        "a chair for the room of Ada "
            .repeat(times)
            .trim()
            .to_owned()
    };
    let (long, middle) = (title(9), title(5));
    let long = task_with(&system, &token, &long, "").await;
    let middle = task_with(&system, &token, &middle, "").await;
    for (screen, task, is_folded) in [
        (Screen::PHONE, &long, true),
        (Screen::PHONE, &middle, false),
        (Screen::DESKTOP, &long, false),
    ] {
        let browser = Browser::with(screen).await;
        browser.open(&link(&system, task)).await;
        browser.sees("Approve").await;
        let button =
            "[...document.querySelectorAll('button')].find((one) => one.innerText === 'Show all')";
        let shown = format!("return Boolean({button}?.checkVisibility())");
        eventually("the title to fit", || async {
            (browser.run(&shown).await == is_folded).then_some(())
        })
        .await;
        let hidden = "const title = document.querySelector('h1'); return title.scrollHeight > title.clientHeight";
        reads(&browser, hidden, json!(is_folded)).await;
        if !is_folded {
            continue;
        }
        browser.click("Show all").await;
        reads(&browser, hidden, json!(false)).await;
        reads(
            &browser,
            "return document.activeElement.tagName",
            json!("H1"),
        )
        .await;
        // Where it is only repeated, it is short.
        browser.speak("de").await;
        browser.reload().await;
        browser.sees("Genehmigen").await;
        let approve = format!("/people-task/tasks/{}/approve", task.id);
        let _ = system.put(&approve, &token, &json!({})).await;
        poll(&browser).await;
        browser.sees("…“ wurde gerade genehmigt.").await;
        let length = "return document.getElementById('state').innerText.length < 120";
        reads(&browser, length, json!(true)).await;
        browser.assert_no_errors().await;
    }
    system.stop().await;
}
