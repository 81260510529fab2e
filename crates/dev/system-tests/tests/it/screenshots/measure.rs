//! How fast pages load: requests, bytes, and the time until something is shown.

use crate::loaded::loaded;
use crate::webdriver::{Browser, Screen};
use rig::outln;
use serde_json::{Value, json};

use super::data::Example;

/// Loads of each page, each in a new browser: a first visit with an empty cache, and a second one.
const LOADS: usize = 5;

/// A network as the developer tools of Chromium emulate it.
struct Network {
    name: &'static str,
    latency_ms: f64,
    bytes_per_second: f64,
}

const NETWORKS: [Network; 3] = [
    Network {
        name: "loopback",
        latency_ms: 0.0,
        bytes_per_second: -1.0,
    },
    Network {
        name: "fast 3G",
        latency_ms: 562.5,
        bytes_per_second: 180_000.0,
    },
    Network {
        name: "slow 3G",
        latency_ms: 2_000.0,
        bytes_per_second: 50_000.0,
    },
];

/// Measures the start page and the page of a decision, and prints a table.
pub(crate) async fn run(example: &Example) {
    outln!("| page | network | visit | requests | bytes | first contentful paint | text shown |");
    outln!("|---|---|---|---|---|---|---|");
    let start = format!("{}/", example.gateway);
    for (name, url, text) in [
        ("`/`", &start, "Forgot your password?"),
        ("decision", &example.pending.approver_link, "Spare bulb"),
    ] {
        for network in &NETWORKS {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for _ in 0..LOADS {
                let browser = Browser::with(Screen::DESKTOP).await;
                browser
                    .limit_network(network.latency_ms, network.bytes_per_second)
                    .await;
                first.push(load(&browser, url, text).await);
                browser.open("about:blank").await;
                second.push(load(&browser, url, text).await);
            }
            print(name, network, "first", &first);
            print(name, network, "second", &second);
        }
    }
}

/// Opens a page, and waits for a text of it.
async fn load(browser: &Browser, url: &str, text: &str) -> Value {
    browser.open(url).await;
    browser.sees(text).await;
    loaded(browser).await
}

fn print(name: &str, network: &Network, visit: &str, loads: &[Value]) {
    let median = |field: &str| {
        let mut values: Vec<f64> = loads
            .iter()
            .filter_map(|load| load.get(field).and_then(Value::as_f64))
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    outln!(
        "| {name} | {} | {visit} | {} | {} | {:.0} ms | {:.0} ms |",
        network.name,
        median("requests"),
        json!(median("bytes")),
        median("paint"),
        median("shown"),
    );
}
