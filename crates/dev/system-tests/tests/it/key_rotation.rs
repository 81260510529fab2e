//! Operators rotate the signing keys with a command: tokens stay valid, and receivers can still verify.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::harness::System;

/// An operator's folder of secrets.
struct Secrets(tempfile::TempDir);

impl Secrets {
    fn make() -> Self {
        let secrets = Self(tempfile::tempdir().unwrap());
        secrets.command("make-secrets", &[]);
        secrets
    }

    fn rotate(&self, which: &str, step: &str) {
        self.command("rotate-keys", &[which, step]);
    }

    fn command(&self, name: &str, arguments: &[&str]) {
        let mut command = Command::new(deploy().join(name));
        let output = command.args(arguments).arg(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
    }

    fn path(&self, file: &str) -> String {
        self.0.path().join(file).to_str().unwrap().to_owned()
    }
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy")
}

async fn start_with(secrets: &Secrets) -> System {
    let files = [
        ("TOKEN_SIGNING_KEY", ""),
        (
            "TOKEN_SIGNING_KEY_FILE",
            &secrets.path("token_signing_key.pem"),
        ),
        (
            "TOKEN_PREVIOUS_KEY_FILE",
            &secrets.path("token_previous_key.pem"),
        ),
        ("WEBHOOK_SIGNING_KEY", ""),
        (
            "WEBHOOK_SIGNING_KEY_FILE",
            &secrets.path("webhook_signing_key.pem"),
        ),
        (
            "WEBHOOK_PREVIOUS_SIGNING_KEY_FILE",
            &secrets.path("webhook_previous_signing_key.pem"),
        ),
    ];
    System::start_with(&files).await
}

fn key_of(token: &str) -> String {
    let head = token.split('.').next().unwrap();
    let head: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(head).unwrap()).unwrap();
    head["kid"].as_str().unwrap().to_owned()
}

async fn published(system: &System, path: &str) -> Vec<Value> {
    let keys = system.http.get(path).send().await.expect(200);
    keys.json["keys"].as_array().unwrap().clone()
}

async fn status_of(system: &System, token: &str) -> u16 {
    system.http.get("/user").bearer(token).send().await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_key_keeps_existing_tokens_valid() {
    let secrets = Secrets::make();
    let mut system = start_with(&secrets).await;
    let before = system.sign_up("ada@example.com").await;

    secrets.rotate("token", "rotate");
    system.restart_with(&[]).await;
    assert_eq!(status_of(&system, &before).await, 200);
    let after = system
        .sign_in("ada@example.com", System::PASSWORD)
        .await
        .expect(200)
        .text_of("token");
    assert_ne!(key_of(&after), key_of(&before), "a new key signs");
    let kids: Vec<_> = published(&system, "/.well-known/jwks.json").await;
    let kids: Vec<_> = kids
        .iter()
        .map(|key| key["kid"].as_str().unwrap())
        .collect();
    assert_eq!(kids, [key_of(&after), key_of(&before)]);

    secrets.rotate("token", "switch");
    system.restart_with(&[]).await;
    assert_eq!(
        [
            status_of(&system, &before).await,
            status_of(&system, &after).await
        ],
        [200, 200],
        "taking a switch back keeps tokens valid, too"
    );

    secrets.rotate("token", "switch");
    secrets.rotate("token", "drop");
    system.restart_with(&[]).await;
    assert_eq!(status_of(&system, &after).await, 200);
    let refused = system.http.get("/user").bearer(&before).send().await;
    refused.expect_problem(401, "invalid-token");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_key_verifies_but_does_not_sign() {
    let secrets = Secrets::make();
    let mut system = start_with(&secrets).await;
    let before = system.sign_up("ada@example.com").await;
    secrets.rotate("token", "prepare");
    system.restart_with(&[]).await;
    let now = system.sign_in("ada@example.com", System::PASSWORD).await;
    assert_eq!(key_of(&now.text_of("token")), key_of(&before));
    let keys = published(&system, "/.well-known/jwks.json").await;
    assert_eq!(
        keys.len(),
        2,
        "all replicas publish the next key before it signs"
    );
    secrets.rotate("token", "switch");
    system.restart_with(&[]).await;
    let then = system.sign_in("ada@example.com", System::PASSWORD).await;
    assert_eq!(key_of(&then.text_of("token")), keys[1]["kid"]);
    assert_eq!(status_of(&system, &before).await, 200);
    system.stop().await;
}

/// Whether one of the published keys made one of the signatures of a received webhook.
fn verifies(call: &Value, keys: &[Value]) -> bool {
    let header = |name: &str| call["headers"][name].as_str().unwrap();
    let signed = format!(
        "{}.{}.{}",
        header("webhook-id"),
        header("webhook-timestamp"),
        call["text"].as_str().unwrap()
    );
    let signatures = header("webhook-signature").split(' ');
    signatures
        .filter_map(|signature| signature.strip_prefix("v1a,"))
        .map(|signature| STANDARD.decode(signature).unwrap())
        .any(|signature| {
            keys.iter().any(|key| {
                let public = key["whpk"].as_str().unwrap();
                let public = STANDARD
                    .decode(public.strip_prefix("whpk_").unwrap())
                    .unwrap();
                UnparsedPublicKey::new(&ED25519, public)
                    .verify(signed.as_bytes(), &signature)
                    .is_ok()
            })
        })
}

/// Makes a decision and returns the delivered webhook.
async fn deliver(system: &System, correlation: &str) -> Value {
    let ada = "ada@example.com";
    let token = system.sign_in(ada, System::PASSWORD).await.text_of("token");
    let task = system
        .create_task(&token, ada, "approver@example.com")
        .await;
    system.register_webhook(&token, &task.id, correlation).await;
    let path = format!("/people-task/tasks/{}/approve", task.id);
    let body = json!({"secret": task.approver_secret});
    let _ = system.http.put(&path).json(&body).send().await.expect(200);
    system.wait_for_webhook(correlation).await
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_verify_with_the_published_keys_during_a_rotation() {
    let secrets = Secrets::make();
    let mut system = start_with(&secrets).await;
    let _ = system.sign_up("ada@example.com").await;
    let path = "/.well-known/webhook-keys.json";
    let first = published(&system, path).await;
    assert!(verifies(&deliver(&system, "first").await, &first));

    secrets.rotate("webhook", "rotate");
    system.restart_with(&[]).await;
    let both = published(&system, path).await;
    let call = deliver(&system, "both").await;
    assert_eq!((first.len(), both.len()), (1, 2));
    assert!(verifies(&call, &first), "a receiver with the old key");
    assert!(verifies(&call, &both[..1]), "a receiver with the new key");

    secrets.rotate("webhook", "drop");
    system.restart_with(&[]).await;
    let call = deliver(&system, "last").await;
    assert!(verifies(&call, &both[..1]));
    assert!(!verifies(&call, &first), "the old key no longer signs");
    system.stop().await;
}

#[test]
fn an_interrupted_rotation_loses_no_key_and_is_completed_by_the_next_run() {
    let secrets = Secrets::make();
    secrets.rotate("token", "prepare");
    let read = |file: &str| std::fs::read_to_string(secrets.path(file)).unwrap();
    let (key, second) = ("token_signing_key.pem", "token_previous_key.pem");
    let (old, new) = (read(key), read(second));
    // The state after a switch was killed between the two renames.
    std::fs::write(secrets.path(".token_signing_key.pem.new"), &new).unwrap();
    std::fs::write(secrets.path(".token_signing_key.pem.ready"), "").unwrap();
    let second_path = secrets.path(second);
    std::fs::remove_file(&second_path).unwrap();
    std::fs::write(&second_path, &old).unwrap();
    secrets.rotate("token", "status");
    assert_eq!((read(key), read(second)), (new, old));
}

#[test]
fn a_key_in_use_cannot_be_dropped_by_mistake() {
    let secrets = Secrets::make();
    secrets.rotate("token", "prepare");
    let refused = |step: &str| {
        let mut command = Command::new(deploy().join("rotate-keys"));
        let command = command.args(["token", step]).arg(secrets.0.path());
        !command.output().unwrap().status.success()
    };
    assert!(
        refused("prepare") && refused("rotate"),
        "there is a second key already"
    );
    secrets.rotate("token", "drop");
    assert!(refused("switch"), "there is no second key");
}
