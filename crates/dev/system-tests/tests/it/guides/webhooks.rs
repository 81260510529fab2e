//! The functions of `docs/webhooks.md` accept real calls of webhooks and refuse forged ones.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tempfile::TempDir;

use super::page::{program, root};
use super::runner::{Language, bounded, installed, run};
use super::rust_example::{verify, verify_with_keys};
use crate::harness::System;

/// What each function says of each call: the real one, and those that [`Call::forgeries`] returns.
const EXPECTED: &str = "yes yes\nno no\nno no\nno no\nno no\nno no\n";

/// A call of a webhook.
#[derive(Clone)]
struct Call {
    headers: BTreeMap<String, String>,
    body: String,
}

/// A call, and what the examples verify it with.
struct Received {
    secret: String,
    keys: Vec<String>,
    call: Call,
    signing_key: Ed25519KeyPair,
}

impl Call {
    /// Signs a call as Countersign does.
    fn signed(id: &str, age: i64, body: &str, secret: &str, key: &Ed25519KeyPair) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let timestamp = i64::try_from(now.as_secs()).unwrap() - age;
        let with_secret = Webhook::new(secret).unwrap();
        let with_secret = with_secret.sign(id, timestamp, body.as_bytes()).unwrap();
        let with_key = key.sign(format!("{id}.{timestamp}.{body}").as_bytes());
        let signature = format!("v1a,{} {with_secret}", STANDARD.encode(with_key));
        let headers = [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signature),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        Self {
            headers: headers.into(),
            body: body.to_owned(),
        }
    }

    fn with_header(&self, name: &str, value: &str) -> Self {
        let mut call = self.clone();
        call.headers.insert(name.to_owned(), value.to_owned());
        call
    }
}

impl Received {
    /// Decides a task whose webhook the page's commands register, and waits for the call.
    async fn from(system: &System) -> Self {
        let token = system.sign_up("ada@example.com").await;
        let task = system
            .create_task(&token, "ada@example.com", "grace@example.com")
            .await;
        let folder = TempDir::new().unwrap();
        let secret_file = folder.path().join("secret");
        let keep = format!("SECRET=\"$(tee {} <<<\"$(", secret_file.display());
        let engine = system.webhook_url().replace("/webhooks/flow", "");
        let environment = [
            ("BASE", system.http.base()),
            ("RECEIVER", &engine),
            ("TOKEN", &token),
            ("ID", &task.id),
        ];
        // The test needs the secret that the page makes.
        let replaced = [(
            "SECRET=\"whsec_$(openssl rand -base64 32)\"",
            &*format!("{keep}echo whsec_$(openssl rand -base64 32))\")\""),
        )];
        run(
            "webhooks",
            Language::Shell,
            folder.path(),
            &replaced,
            &environment,
        );
        let path = format!("/people-task/tasks/{}/approve", task.id);
        let _ = system.put(&path, &token, &json!({})).await;
        let call = system.wait_for_webhook(&task.id).await;
        let keys = system
            .http
            .get("/.well-known/webhook-keys.json")
            .send()
            .await;
        let keys = keys.expect(200).json["keys"].clone();
        let keys = keys.as_array().unwrap().iter();
        Self {
            secret: fs::read_to_string(secret_file).unwrap().trim().to_owned(),
            keys: keys.map(|key| text(&key["whpk"])).collect(),
            call: Call {
                headers: serde_json::from_value(call["headers"].clone()).unwrap(),
                body: text(&call["text"]),
            },
            signing_key: signing_key(&system.setting("WEBHOOK_SIGNING_KEY")),
        }
    }

    /// The real call, and calls that must be refused: with another body, with another identifier, too old, signed by
    /// others, and not signed.
    fn calls(&self) -> Vec<Call> {
        let Self { call, secret, .. } = self;
        let id = &call.headers["webhook-id"];
        let other_body = Call {
            body: call.body.replace("approved", "rejected"),
            ..call.clone()
        };
        let other_secret = format!("whsec_{}", STANDARD.encode([7; 32]));
        let other_key = signing_key(testkit::ed25519_pem().expose());
        assert_ne!(
            other_key.public_key().as_ref(),
            self.signing_key.public_key().as_ref()
        );
        let calls = vec![
            call.clone(),
            other_body,
            call.with_header("webhook-id", "6b0211b15a326b85ddc6477a"),
            Call::signed(id, 600, &call.body, secret, &self.signing_key),
            Call::signed(id, 0, &call.body, &other_secret, &other_key),
            call.with_header("webhook-signature", "v1,AAAA v1a,AAAA"),
        ];
        let fresh = Call::signed(id, 0, &call.body, secret, &self.signing_key);
        assert_eq!(
            said_by_rust(self, &fresh),
            "yes yes\n",
            "the forgeries are not like calls"
        );
        calls
    }

    /// The calls as the drivers read them.
    fn write(&self, folder: &Path) -> PathBuf {
        let calls = self.calls().into_iter();
        let calls = calls.map(|call| json!({"headers": call.headers, "body": call.body}));
        let calls: Vec<_> = calls.collect();
        let given = json!({"secret": self.secret, "keys": self.keys, "calls": calls});
        let file = folder.join("calls.json");
        fs::write(&file, given.to_string()).unwrap();
        file
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn signing_key(pem: &str) -> Ed25519KeyPair {
    let encoded: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let key = STANDARD.decode(encoded).unwrap();
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key).unwrap()
}

fn said_by_rust(received: &Received, call: &Call) -> String {
    let headers: HeaderMap = call
        .headers
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::try_from(name).unwrap(),
                HeaderValue::try_from(value).unwrap(),
            )
        })
        .collect();
    let body = call.body.as_bytes();
    let said = |accepted| if accepted { "yes" } else { "no" };
    let with_secret = said(verify(&received.secret, &headers, body).is_ok());
    let with_keys = said(verify_with_keys(&received.keys, &headers, body).is_ok());
    format!("{with_secret} {with_keys}\n")
}

/// Whether a library can be installed. A registry that cannot be reached fails no test.
fn is_installed(output: &Output, library: &str) -> bool {
    let installed = output.status.success();
    if !installed {
        let errors = String::from_utf8_lossy(&output.stderr);
        let _ = writeln!(
            io::stderr(),
            "skipped: {library} cannot be installed: {errors}"
        );
    }
    installed
}

fn assert_expected(language: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, EXPECTED, "{language}: {errors}");
}

fn check_python(received: &Received, folder: &Path) {
    let libraries = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let mut install = bounded("python3");
    install.args(["-m", "pip", "install", "--quiet", "--target"]);
    install
        .arg(&libraries)
        .args(["standardwebhooks", "cryptography"]);
    let is_there =
        libraries.join("standardwebhooks").exists() && libraries.join("cryptography").exists();
    if !is_there && !is_installed(&install.output().unwrap(), "standardwebhooks of PyPI") {
        return;
    }
    let source = program("webhooks", "python") + include_str!("drivers/python.py");
    fs::write(folder.join("program.py"), source).unwrap();
    let mut command = bounded("python3");
    command
        .arg(folder.join("program.py"))
        .env("PYTHONPATH", libraries);
    assert_expected(
        "Python",
        &command.arg(received.write(folder)).output().unwrap(),
    );
}

fn check_javascript(received: &Received, folder: &Path) {
    let libraries = Path::new(env!("CARGO_TARGET_TMPDIR")).join("javascript");
    let mut install = bounded("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
    install.arg(&libraries).arg("standardwebhooks");
    let is_there = libraries.join("node_modules/standardwebhooks").exists();
    if !is_there && !is_installed(&install.output().unwrap(), "standardwebhooks of npm") {
        return;
    }
    // Modules are found in the folders above a program.
    let program_file = libraries.join("program.mjs");
    let source = program("webhooks", "js") + include_str!("drivers/javascript.mjs");
    fs::write(&program_file, source).unwrap();
    let mut command = bounded("node");
    command.arg(program_file).arg(received.write(folder));
    assert_expected("JavaScript", &command.output().unwrap());
}

fn check_go(received: &Received, folder: &Path, libraries: &str) {
    let source = program("webhooks", "go");
    let files = source.split("package main\n").skip(1);
    for (number, file) in files.enumerate() {
        fs::write(
            folder.join(format!("page{number}.go")),
            format!("package main\n{file}"),
        )
        .unwrap();
    }
    fs::write(folder.join("main.go"), include_str!("drivers/go.go")).unwrap();
    let module = "github.com/standard-webhooks/standard-webhooks/libraries";
    let manifest = format!(
        "module example\n\ngo 1.21\n\nrequire {module} v0.0.0\n\nreplace {module} => {libraries}/libraries\n"
    );
    fs::write(folder.join("go.mod"), manifest).unwrap();
    let mut command = bounded("go");
    command.args(["run", "."]).arg(received.write(folder));
    assert_expected("Go", &command.current_dir(folder).output().unwrap());
}

fn check_php(received: &Received, folder: &Path, libraries: &str) {
    let start = format!("<?php\nrequire '{libraries}/libraries/php/init.php';\n");
    let source = start + &program("webhooks", "php") + include_str!("drivers/php.php");
    fs::write(folder.join("program.php"), source).unwrap();
    let mut command = bounded("php");
    command
        .arg(folder.join("program.php"))
        .arg(received.write(folder));
    assert_expected("PHP", &command.output().unwrap());
}

#[test]
fn the_rust_functions_that_are_tested_are_those_of_the_page() {
    let file = root().join("crates/dev/system-tests/tests/it/guides/rust_example.rs");
    let tested = fs::read_to_string(file).unwrap();
    let shown = program("webhooks", "rust");
    assert_eq!(
        tested, shown,
        "copy the blocks of docs/webhooks.md to rust_example.rs"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn real_webhooks_are_accepted_and_forged_ones_refused_in_python_javascript_and_rust() {
    if !installed(&["bash", "curl", "jq", "openssl"]) {
        return;
    }
    let system = System::start().await;
    let received = Received::from(&system).await;
    let calls = received.calls();
    let said: String = calls
        .iter()
        .map(|call| said_by_rust(&received, call))
        .collect();
    assert_eq!(said, EXPECTED, "Rust");
    let folder = TempDir::new().unwrap();
    if installed(&["python3"]) {
        check_python(&received, folder.path());
    }
    if installed(&["node", "npm"]) {
        check_javascript(&received, folder.path());
    }
    system.stop().await;
}

/// The libraries of Go and PHP are in registries that not every machine reaches.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs go, php, and a checkout of the libraries of Standard Webhooks that STANDARD_WEBHOOKS names"]
async fn real_webhooks_are_accepted_and_forged_ones_refused_in_go_and_php() {
    let libraries = std::env::var("STANDARD_WEBHOOKS").unwrap();
    for tool in ["go", "php"] {
        let help = Command::new(tool).arg("help").output();
        assert!(help.is_ok(), "{tool} is not installed");
    }
    let system = System::start().await;
    let received = Received::from(&system).await;
    let folder = TempDir::new().unwrap();
    check_go(&received, folder.path(), &libraries);
    check_php(&received, folder.path(), &libraries);
    system.stop().await;
}
