//! The buttons are in reach from the first screen on, and cover nothing that has the focus.

use crate::webdriver::{Browser, Screen};
use serde_json::json;

use super::{REQUESTER, link, task_with};
use crate::harness::System;

const SCREENS: [Screen; 5] = [
    screen(360, 740),
    Screen::PHONE,
    screen(1440, 900),
    // 400 % of a screen of 1440 × 900.
    screen(360, 225),
    screen(320, 256),
];

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
