//! What a page loaded.

use serde_json::Value;

use crate::webdriver::Browser;

/// What counts is what came from the network. Bodies are counted as they are sent, compressed.
const LOADED: &str = "const all = [performance.getEntriesByType('navigation'), performance.getEntriesByType('resource')].flat();
    const entries = all.filter(({ transferSize }) => transferSize > 0);
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    return {
      requests: entries.length,
      bytes: entries.reduce((sum, entry) => sum + entry.encodedBodySize, 0),
      paint: paint?.startTime ?? 0,
      shown: performance.now(),
    };";

/// The number of requests, their bytes, when something was painted, and the time now, in milliseconds since the page was opened.
pub(crate) async fn loaded(browser: &Browser) -> Value {
    browser.run(LOADED).await
}
