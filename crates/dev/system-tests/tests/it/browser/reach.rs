//! The buttons are in reach from the first screen on, and cover nothing that has the focus.

use std::time::Duration;

use crate::webdriver::{Browser, Screen};
use serde_json::json;
use testkit::eventually;

use super::changes::change;
use super::{
    REQUESTER, keep_from_polling, link, read_change, run_first, sign_in, status, task_with,
};
use crate::harness::System;

const SCREENS: [Screen; 5] = [
    screen(360, 740),
    Screen::PHONE,
    screen(1440, 900),
    LOW[0],
    LOW[1],
];
/// 400 % of 1440 × 900 and of 1280 × 1024.
const LOW: [Screen; 2] = [screen(360, 225), screen(320, 256)];

const fn screen(width: u32, height: u32) -> Screen {
    Screen {
        width,
        height,
        pixel_ratio: 1.0,
        is_touched: false,
    }
}

/// The buttons that are outside of the screen, or that something covers.
const OUT_OF_REACH: &str = "return ['approve', 'reject'].filter((id) => {
    const { left, right, top, bottom } = document.getElementById(id).getBoundingClientRect();
    const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return top < 0 || bottom > innerHeight || above?.closest('button')?.id !== id;
})";
/// How far the two buttons are from each other.
const DISTANCE: &str = "const [a, b] = ['approve', 'reject'].map((id) => document.getElementById(id).getBoundingClientRect());
    return Math.max(b.left - a.right, b.top - a.bottom)";
/// The share of each element with a focus that the buttons cover.
const COVERED: &str = "const bar = document.getElementById('decide');
    return [...document.querySelectorAll('main a, main textarea, main pre')].filter((one) => {
      one.focus();
      const { top, bottom } = one.getBoundingClientRect();
      const edge = Math.min(innerHeight, bar.contains(one) ? innerHeight : bar.getBoundingClientRect().top);
      return Math.min(bottom, edge) - Math.max(top, 0) < Math.min((bottom - top) * 0.9, 60);
    }).map((one) => one.outerHTML.slice(0, 60))";

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_are_on_the_first_screen_and_cover_no_focus() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let text = "A line with [a link](https://example.com).\n\n".repeat(300);
    let task = task_with(&system, &token, "Buy a chair", &text).await;
    for screen in SCREENS {
        let browser = Browser::with(screen).await;
        browser.open(&link(&system, &task)).await;
        browser.sees("a link").await;
        assert_eq!(browser.run(OUT_OF_REACH).await, json!([]), "{screen:?}");
        assert!(
            browser.run(DISTANCE).await.as_f64().unwrap() >= 24.0,
            "{screen:?}"
        );
        browser.click("Add a comment").await;
        assert_eq!(browser.run(COVERED).await, json!([]), "{screen:?}");
        assert_eq!(browser.run(OUT_OF_REACH).await, json!([]), "{screen:?}");
        let wide = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.run(wide).await, false, "{screen:?}");
        browser.assert_no_errors().await;
    }
    system.stop().await;
}

/// Waits until the result of a script is this.
async fn becomes(browser: &Browser, script: &str, expected: bool) {
    eventually(&format!("{script} to be {expected}"), || async {
        (browser.run(script).await == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_say_that_the_text_goes_on_until_its_end_was_in_view() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let blank = "\u{a0}\n\n".repeat(60);
    let text = format!("Lunch, 12 €\n\n{blank}and a laptop, 3,500 €");
    let task = task_with(&system, &token, "Lunch", &text).await;
    let is_said = "return Boolean(document.getElementById('more')?.checkVisibility())";
    for screen in [Screen::PHONE, LOW[1]] {
        let browser = Browser::with(screen).await;
        browser.open(&link(&system, &task)).await;
        becomes(&browser, is_said, true).await;
        assert_eq!(browser.run(OUT_OF_REACH).await, json!([]), "{screen:?}");
        browser.run("scrollBy(0, innerHeight / 2)").await;
        becomes(&browser, is_said, true).await;
        let end = "document.querySelector('#description > :last-child')";
        let show = format!("{end}.scrollIntoView({{ block: 'center', behavior: 'instant' }})");
        browser.run(&show).await;
        becomes(&browser, is_said, false).await;
        // It was read.
        browser.run("scrollTo(0, 0)").await;
        becomes(&browser, is_said, false).await;
        browser.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_never_say_that_a_short_text_goes_on() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Lunch", "12 €").await;
    let phone = Browser::phone().await;
    let watch = "new MutationObserver(() => {
          window.isSaid ||= Boolean(document.querySelector('#more:not([hidden])'));
        }).observe(document, { subtree: true, childList: true, attributes: true })";
    run_first(&phone, watch).await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    let is_gone = "return !document.getElementById('more')";
    becomes(&phone, is_gone, true).await;
    assert_eq!(phone.run("return window.isSaid").await, false);
    phone.assert_no_errors().await;
    system.stop().await;
}

/// The share of the screen's height that an element covers.
async fn share(browser: &Browser, css: &str) -> f64 {
    let script = format!(
        "const {{ top, bottom }} = document.querySelector({}).getBoundingClientRect();
         return Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0)) / innerHeight",
        json!(css)
    );
    browser.run(&script).await.as_f64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_low_screen_the_buttons_leave_room_to_write_and_to_read_a_change() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let text = "A line with [a link](https://example.com).\n\n".repeat(30);
    for screen in LOW {
        let task = task_with(&system, &token, "Buy a chair", &text).await;
        let browser = Browser::with(screen).await;
        keep_from_polling(&browser).await;
        browser.open(&link(&system, &task)).await;
        browser.click("Add a comment").await;
        assert!(share(&browser, "#decide").await < 0.4, "{screen:?}");
        assert!(share(&browser, "#comment").await > 0.25, "{screen:?}");
        browser.fill("Comment (optional)", "Fine.").await;

        let path = format!("/people-task/tasks/{}", task.id);
        let longer = format!("{text}\n\n{}", "Another line.\n\n".repeat(20));
        let changes = json!({"description": longer});
        let _ = system.put(&path, &token, &changes).await.expect(200);
        browser.click("Approve").await;
        browser.sees("This task was just changed.").await;
        assert_eq!(status(&system, &token, &task).await, "pending");
        assert!(share(&browser, "#read").await < 0.4, "{screen:?}");
        assert!(share(&browser, "#change").await > 0.25, "{screen:?}");
        read_change(&browser).await;
        browser.click("Approve").await;
        browser.sees("You approved this.").await;
        browser.sees("Fine.").await;
        browser.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_low_screen_what_is_behind_a_button_is_not_read() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let task = task_with(&system, &token, "Buy a chair", "").await;
    let browser = Browser::with(LOW[1]).await;
    keep_from_polling(&browser).await;
    browser.open(&link(&system, &task)).await;
    browser.sees("Approve").await;
    let longer = json!({"description": "Another line.\n\n".repeat(20)});
    change(&system, &token, &task, &longer).await;
    browser.click("Approve").await;
    browser.sees("Read the change").await;
    let behind = "const { top } = document.querySelector('#change .end').getBoundingClientRect();
        scrollBy({ top: top - innerHeight + 10, behavior: 'instant' })";
    browser.run(behind).await;
    // For longer than a change must have been in view.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(browser.count("#decide[hidden]").await, 1);
    read_change(&browser).await;
    browser.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_low_screen_a_notice_is_in_view() {
    let system = System::start().await;
    system.sign_up(REQUESTER).await;
    let browser = Browser::with(LOW[1]).await;
    browser
        .open(&format!("{}/account", system.http.base()))
        .await;
    sign_in(&browser, REQUESTER, System::PASSWORD).await;
    browser.fill("Current password", System::PASSWORD).await;
    browser.fill("New password", "new password").await;
    browser.fill("Repeat new password", "new password").await;
    browser.click("Change password").await;
    browser.sees("All other devices are signed out.").await;
    assert!(share(&browser, "#state .notice").await > 0.1);
    browser.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_and_a_comment_are_in_view_together() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    for height in [490, 600, 740] {
        let task = task_with(&system, &token, "Buy a chair", "It squeaks.").await;
        let browser = Browser::with(screen(360, height)).await;
        keep_from_polling(&browser).await;
        browser.open(&link(&system, &task)).await;
        browser.click("Add a comment").await;
        browser.fill("Comment (optional)", "Fine.").await;
        let longer = json!({"description": "Another line.\n\n".repeat(60)});
        change(&system, &token, &task, &longer).await;
        browser.click("Approve").await;
        browser.sees("Read the change").await;
        for (part, least) in [("#change", 0.2), ("#comment", 0.08), ("#read", 0.05)] {
            let share = share(&browser, part).await;
            assert!(share > least, "{height}: {part} {share}");
        }
        let covered = "return ['#comment', '#read button'].filter((part) => {
            const one = document.querySelector(part);
            const { left, right, top, bottom } = one.getBoundingClientRect();
            return document.elementFromPoint((left + right) / 2, (top + bottom) / 2) !== one;
          })";
        assert_eq!(browser.run(covered).await, json!([]), "{height}");
        read_change(&browser).await;
        assert_eq!(browser.run(OUT_OF_REACH).await, json!([]), "{height}");
        browser.assert_no_errors().await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_low_screen_the_buttons_of_a_dialog_cover_no_field() {
    let system = System::start().await;
    system.sign_up(REQUESTER).await;
    for screen in LOW {
        let browser = Browser::with(screen).await;
        browser.open(system.http.base()).await;
        sign_in(&browser, REQUESTER, System::PASSWORD).await;
        browser.click("New task").await;
        browser.sees("You can use Markdown.").await;
        let covered = "return [...document.querySelectorAll('dialog :is(input, textarea)')].filter((field) => {
            field.focus();
            const { left, right, top, bottom } = field.getBoundingClientRect();
            const middle = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
            return document.elementFromPoint((left + right) / 2, middle) !== field;
          }).map(({ id }) => id)";
        assert_eq!(browser.run(covered).await, json!([]), "{screen:?}");
        browser.assert_no_errors().await;
    }
    system.stop().await;
}
