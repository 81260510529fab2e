//! The examples of the pages in `docs` work on a running system.

mod flow_engine;
pub(crate) mod page;
mod runner;
#[expect(unreachable_pub, reason = "as the page shows them")]
mod rust_example;
mod webhooks;

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::System;
use runner::{Language, installed, run};

/// Runs the blocks of one language of a page on a system of their own.
async fn check(name: &str, language: Language) {
    if !installed(language.tools()) {
        return;
    }
    let system = System::start().await;
    let engine = system.webhook_url().replace("/webhooks/flow", "");
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join(".local")).unwrap();
    let stack = json!({"gateway": system.http.base(), "demoEngine": engine});
    fs::write(folder.path().join(".local/stack.json"), stack.to_string()).unwrap();
    let replaced = [
        ("http://localhost:8080", system.http.base()),
        ("http://localhost:8090", &engine),
    ];
    let environment = [("ADMIN_PASSWORD", System::PASSWORD)];
    run(name, language, folder.path(), &replaced, &environment);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_decision_is_made_as_described() {
    check("first-decision", Language::Shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_with_curl_as_described() {
    check("api-guide", Language::Shell).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_with_python_as_described() {
    check("api-guide", Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_with_javascript_as_described() {
    check("api-guide", Language::JavaScript).await;
}
