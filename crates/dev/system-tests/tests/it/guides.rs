//! The examples of the pages in `docs` work on a running system.

mod flow_engine;
pub(crate) mod page;
mod runner;
#[expect(unreachable_pub, reason = "as the page shows them")]
mod rust_example;
mod webhooks;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::command_line::{self, CommandLine};
use crate::harness::System;
use runner::{Language, run};

/// The pages whose examples are run. `command-line` has those of `command_line.rs`.
const TESTED: [&str; 6] = [
    "api-guide",
    "command-line",
    "first-decision",
    "flow-engine",
    "operating",
    "webhooks",
];

/// Runs the commands of a page on a system of their own.
async fn check_commands(page: &str) {
    if !Language::Shell.is_installed() {
        return;
    }
    let system = System::start().await;
    let environment = [("ADMIN_PASSWORD", System::PASSWORD)];
    check(&system, page, Language::Shell, &environment);
    system.stop().await;
}

/// Runs the blocks of the guide to the API that use a client, on a system of their own. The client has a user's key.
async fn check_client(language: Language) {
    if !language.is_installed() {
        return;
    }
    let system = System::start().await;
    let token = system.sign_up("ada@example.com").await;
    let scopes = ["tasks:read", "tasks:write", "tasks:decide", "users:read"];
    let wanted = json!({"name": "The guide", "scopes": scopes});
    let (_, key) = system.make_key(&token, &wanted).await;
    let environment = [
        ("COUNTERSIGN_URL", system.http.base()),
        ("COUNTERSIGN_KEY", key.as_str()),
    ];
    check(&system, "api-guide", language, &environment);
    system.stop().await;
}

/// Runs the blocks of one language of a page on a system.
fn check(system: &System, page: &str, language: Language, environment: &[(&str, &str)]) {
    let engine = system.webhook_url().replace("/webhooks/flow", "");
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join(".local")).unwrap();
    let stack = json!({"gateway": system.http.base(), "demoEngine": engine});
    fs::write(folder.path().join(".local/stack.json"), stack.to_string()).unwrap();
    let replaced = [
        ("http://localhost:8080", system.http.base()),
        ("http://localhost:8090", &engine),
    ];
    run(page, language, folder.path(), &replaced, environment);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_decision_is_made_as_described() {
    check_commands("first-decision").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_with_curl_as_described() {
    check_commands("api-guide").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_with_python_as_described() {
    check_client(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_works_with_javascript_as_described() {
    check_client(Language::JavaScript).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_is_operated_as_described() {
    if !Language::Shell.is_installed() {
        return;
    }
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let folder = TempDir::new().unwrap();
    symlink(command_line::program(), folder.path().join("countersign")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", folder.path().display());
    let own = cli.environment().chain([("PATH", path.as_str())]);
    let environment: Vec<_> = own.collect();
    let replaced = [("http://localhost:8080", system.http.base())];
    let page = "operating";
    run(
        page,
        Language::Shell,
        folder.path(),
        &replaced,
        &environment,
    );
    system.stop().await;
}

#[test]
fn the_examples_for_engines_are_files_that_are_played() {
    let check = page::root().join("clients/engines-test/check-snippets");
    let output = Command::new(check).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

#[test]
fn the_examples_of_every_page_are_run() {
    let pages = fs::read_dir(page::root().join("docs")).unwrap();
    for page in pages {
        let name = page.unwrap().file_name().into_string().unwrap();
        // The examples for engines are played by clients/engines-test.
        let name = name.strip_suffix(".md");
        if let Some(name) = name.filter(|name| !["README", "engines"].contains(name)) {
            let has_examples = page::blocks(name).iter().any(|block| block.is_run);
            assert!(
                !has_examples || TESTED.contains(&name),
                "no test runs docs/{name}.md"
            );
        }
    }
    for block in page::blocks("command-line") {
        assert!(!block.is_run, "no test runs this block: {}", block.text);
    }
}
