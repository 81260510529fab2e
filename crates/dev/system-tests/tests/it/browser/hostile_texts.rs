//! Titles, descriptions and comments come from anyone: they are shown, and never run.

use crate::webdriver::Browser;
use serde_json::json;
use testkit::eventually;

use super::{APPROVER, REQUESTER, link, task_with};
use crate::harness::System;

const IMAGE: &str = "<img src=x onerror=\"document.title='run'\">";
const SCRIPT: &str = "<script>document.title='run'</script>";

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_shown_as_text() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    system.sign_up(APPROVER).await;
    let task = task_with(&system, &token, IMAGE, SCRIPT).await;

    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees(IMAGE).await;
    phone.sees(SCRIPT).await;
    phone.click("Add a comment").await;
    phone.fill("Comment (optional)", SCRIPT).await;
    phone.click("Approve").await;
    phone.sees("You approved this.").await;
    assert_eq!(phone.count("main img, main script").await, 0);
    assert_eq!(phone.run("return document.title").await, IMAGE);
    assert_eq!(phone.console_errors().await, Vec::<String>::new());

    // Even if markup got into the page, the policy would prevent it from running.
    let insert = format!(
        "document.querySelector('main').innerHTML = {}",
        json!(IMAGE)
    );
    phone.run(&insert).await;
    let error = eventually("the policy to block it", || async {
        phone.console_errors().await.into_iter().next()
    })
    .await;
    assert!(error.contains("Content Security Policy"), "{error}");
    assert_eq!(phone.run("return document.title").await, IMAGE);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_cannot_run_load_or_disguise_anything() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let long = "W".repeat(300);
    let description = format!(
        "[script](javascript:document.title='run') [data](data:text/html,x) [near](/docs)\n\n\
         [coded](java&#115;cript:alert) <a href=\"javascript:alert(1)\" onclick=\"alert(1)\">raw</a>\n\n\
         ![picture](https://tracker.example/pixel.png) [fine](https://example.com/page)\n\n\
         <svg><style><img title=\"</style><img src=x onerror=alert(1)>\"></svg>\n\n\
         שלום עולם \u{202e}reversed\n\n`{long}`\n\n```\n{long}\n```\n\n{long}"
    );
    let title = format!("\u{202e}{long}");
    let task = task_with(&system, &token, &title, &description).await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("reversed").await;
    let links = phone
        .run("return [...document.querySelectorAll('#description a[href]')].map((link) => [link.getAttribute('href'), link.rel])")
        .await;
    let safe = "noopener noreferrer nofollow";
    assert_eq!(
        links,
        json!([
            ["https://tracker.example/pixel.png", safe],
            ["https://example.com/page", safe]
        ])
    );
    let bad = "#content :is(img, svg, style, script, iframe, [onclick], [onerror], [style])";
    assert_eq!(phone.count(bad).await, 0);
    let wide = "return document.documentElement.scrollWidth > innerWidth";
    assert_eq!(phone.run(wide).await, false, "the page is too wide");
    let loaded = "return performance.getEntriesByType('resource').map(({ name }) => name)
        .filter((name) => !name.startsWith(location.origin))";
    assert_eq!(phone.run(loaded).await, json!([]));
    // A text from the right to the left does not turn what is around it.
    let direction = "return getComputedStyle(document.querySelector('article h1')).unicodeBidi";
    assert_eq!(phone.run(direction).await, "isolate");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_more_cells_than_characters_is_shown_as_text() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let columns = 2_500;
    let (header, line) = ("|a".repeat(columns), "|-".repeat(columns));
    // The parser would make 12 million cells of the first, and look 3,300 times at the rest of the second.
    let wide = format!("{header}\n{line}\n{}", "a\n".repeat(4_900));
    let many = format!("{}a|b|c", "|a\n|-\n".repeat(3_300));
    let phone = Browser::phone().await;
    let task = task_with(&system, &token, "Buy a chair", &wide).await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Buy a chair").await;
    phone.sees("Approve").await;
    assert_eq!(phone.count("td").await, 0);
    let render = format!(
        "return import('/assets/markdown.js').then(({{ render }}) => {{
            const began = performance.now();
            render({});
            return performance.now() - began;
        }})",
        json!(many)
    );
    let milliseconds = phone.run(&render).await.as_f64().unwrap();
    assert!(milliseconds < 2_000.0, "{milliseconds}");
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_decided_on_is_shown() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let description = "[Lunch](https://example.com/lunch \"and a title\") [12 €](and-an-address)\n\n\
         [//]: # (and a definition)\n\n```and words\n12 €\n```\n\n|Lunch|\n|-|\n|12 €|and a cell|\n\n\
         1. Lunch\n1. Tea\n7. Chairs\n\n<tel:+49301>\n\n[](an-empty-link)\n\nDinner\n---\n|Tea|\n|-|\n|3 €|";
    let task = task_with(&system, &token, "Lunch", description).await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    for hidden in [
        "a title",
        "an-address",
        "a definition",
        "words",
        "a cell",
        "empty-link",
    ] {
        phone.sees(hidden).await;
    }
    let heading = "return document.querySelector('#description :is(h2, h3, h4)').innerText";
    assert_eq!(phone.run(heading).await, "Dinner");
    assert_eq!(phone.count("#description td").await, 1);
    let numbers =
        "return [...document.querySelectorAll('#description li')].map((item) => item.value)";
    // Those without one count on.
    assert_eq!(phone.run(numbers).await, json!([0, 0, 7]));
    let shown = "return document.querySelector('#description').innerText.split('tel:').length";
    assert_eq!(phone.run(shown).await, 2);
    phone.assert_no_errors().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_whose_text_is_another_address_says_where_it_leads() {
    let system = System::start().await;
    let token = system.sign_up(REQUESTER).await;
    let description = "- [https://bank.example/login](https://one.example/)\n- [**www.bank.example**](https://two.example/)\n\
         - https://bank.example@three.example/\n- [https://bank.example](mailto:ada@four.example)\n\
         - [\u{200b}https://bank.example](https://five.example)\n- [Our bank](https://bank.example/)\n- https://bank.example/login\n- [www.bank.example](https://www.bank.example/)";
    let task = task_with(&system, &token, "Buy a chair", description).await;
    let phone = Browser::phone().await;
    phone.open(&link(&system, &task)).await;
    phone.sees("Approve").await;
    let lines =
        "return [...document.querySelectorAll('#description li')].map((line) => line.innerText)";
    assert_eq!(
        phone.run(lines).await,
        json!([
            "https://bank.example/login (one.example)",
            "www.bank.example (two.example)",
            "https://bank.example@three.example/ (three.example)",
            "https://bank.example (mailto:ada@four.example)",
            "\u{200b}https://bank.example (five.example)",
            "Our bank",
            "https://bank.example/login",
            "www.bank.example",
        ])
    );
    phone.assert_no_errors().await;
    system.stop().await;
}
