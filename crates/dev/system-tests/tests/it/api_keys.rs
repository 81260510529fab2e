//! API keys, from their creation to the services that see only tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Http, Reply, eventually};
use tokio::task::JoinHandle;

use crate::harness::System;
use crate::revocation::last_acceptance;

const ADA: &str = "ada@example.com";
const TASKS: &str = "/people-task/tasks";
const COUNT: &str = "/people-task/tasks-count";

async fn count_tasks(gateway: &Http, key: &str) -> Reply {
    gateway.get(COUNT).bearer(key).send().await
}

/// Makes requests with a key until it is told to stop, and expects that each succeeds. Returns their number.
fn keep_using(gateway: &Http, key: &str, stop: &Arc<AtomicBool>) -> JoinHandle<u32> {
    let (gateway, key, stop) = (gateway.clone(), key.to_owned(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut requests = 0;
        while !stop.load(Ordering::Relaxed) {
            let _ = count_tasks(&gateway, &key).await.expect(200);
            requests += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        requests
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_creates_and_reads_tasks_with_a_key_and_decides_only_with_one_that_says_so() {
    let system = System::start().await;
    let ada = system.sign_up(ADA).await;
    let (id, key) = system.make_key(&ada, &json!({"name": "flow"})).await;
    let task = system.create_task(&key, ADA, ADA).await;
    let path = format!("{TASKS}/{}", task.id);
    let read = system.get(&path, &key).await;
    assert_eq!(read.text_of("status"), "pending");
    let approve = format!("{path}/approve");
    let refused = system.http.put(&approve).bearer(&key).json(&json!({}));
    refused
        .send()
        .await
        .expect_problem(403, "insufficient-scope");
    let plugin = format!("/plugins/appmixer/utils/tasks/tasks/{}", task.id);
    let _ = system.get(&plugin, &key).await;
    let refused = system
        .http
        .put(&format!("{plugin}/approve"))
        .bearer(&key)
        .json(&json!({}));
    refused
        .send()
        .await
        .expect_problem(403, "insufficient-scope");
    let scopes = json!({"name": "decides", "scopes": ["tasks:decide"]});
    let (deciding, text) = system.make_key(&ada, &scopes).await;
    let decided = system.put(&approve, &text, &json!({})).await;
    assert_eq!(decided.text_of("status"), "approved");

    for (action, key) in [("task-created", &id), ("task-approved", &deciding)] {
        let path = format!("/people-task/audit?filter=action:{action}");
        let entry = system.get(&path, &system.admin).await.json[0].clone();
        assert_eq!(entry["detail"]["key"], json!(key), "{action}");
        assert_eq!(entry["actorKind"], json!("user"));
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_key_acts_as_one_only_with_that_scope() {
    let system = System::start().await;
    let ada = system.sign_up(ADA).await;
    let task = system.create_task(&ada, ADA, "grace@example.com").await;
    let path = format!("{TASKS}/{}", task.id);
    let scopes = json!({"name": "a", "scopes": ["tasks:read", "users:read"]});
    let (_, plain) = system.make_key(&system.admin, &scopes).await;
    let reply = system.http.get(&path).bearer(&plain).send().await;
    reply.expect_problem(404, "not-found");
    for admins in [
        "/users",
        "/audit",
        "/people-task/audit",
        "/people-task/queues",
    ] {
        let reply = system.http.get(admins).bearer(&plain).send().await;
        reply.expect_problem(403, "insufficient-scope");
    }
    let scopes = json!({"name": "a", "scopes": ["tasks:read", "users:read", "admin"]});
    let (_, key) = system.make_key(&system.admin, &scopes).await;
    for readable in [path.as_str(), "/users", "/audit", "/people-task/audit"] {
        let _ = system.get(readable, &key).await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_at_every_gateway_within_a_second_under_load() {
    let system = System::start().await;
    let second = system.start_another_gateway().await;
    let ada = system.sign_up(ADA).await;
    let (id, key) = system.make_key(&ada, &json!({"name": "a"})).await;
    let mut callers = Vec::new();
    for gateway in [&system.http, &second] {
        let _ = count_tasks(gateway, &key).await.expect(200);
        for _ in 0..8 {
            let caller =
                last_acceptance(gateway.clone(), key.clone(), "invalid-key", Duration::ZERO);
            callers.push(tokio::spawn(caller));
        }
    }
    let end = system.http.delete(&format!("/user/keys/{id}")).bearer(&ada);
    let _ = end.send().await.expect(200);
    let committed = Instant::now();
    for caller in callers {
        let late = caller.await.unwrap().saturating_duration_since(committed);
        assert!(
            late < Duration::from_secs(1),
            "accepted {late:?} after the end"
        );
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_notice_neither_short_tokens_nor_new_passwords_of_the_owner() {
    let system = System::start_with(&[("TOKEN_TTL", "2s")]).await;
    let ada = system.sign_up(ADA).await;
    let (_, key) = system.make_key(&ada, &json!({"name": "a"})).await;
    let stop = Arc::<AtomicBool>::default();
    let callers: Vec<_> = (0..4)
        .map(|_| keep_using(&system.http, &key, &stop))
        .collect();
    let mut token = system.sign_in(ADA, System::PASSWORD).await.text_of("token");
    let mut password = System::PASSWORD.to_owned();
    for number in 0..20 {
        let next = format!("password {number}");
        let body = json!({"oldPassword": password, "newPassword": next});
        let changed = system.post("/user/change-password", &token, &body).await;
        token = changed.text_of("token");
        password = next;
        // Tokens end meanwhile.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.unwrap() > 50);
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_outlast_the_rotation_of_the_keys_that_sign_tokens() {
    let mut system = System::start().await;
    let ada = system.sign_up(ADA).await;
    let (_, key) = system.make_key(&ada, &json!({"name": "a"})).await;
    let _ = system.get(COUNT, &key).await;
    let next = testkit::ed25519_pem();
    system
        .restart_with(&[("TOKEN_SIGNING_KEY", next.expose())])
        .await;
    let _ = system.get(COUNT, &key).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_goes_on_while_the_user_service_is_away() {
    let mut system = System::start().await;
    let ada = system.sign_up(ADA).await;
    let (_, key) = system.make_key(&ada, &json!({"name": "a"})).await;
    let (_, unknown) = system.make_key(&ada, &json!({"name": "b"})).await;
    let _ = system.create_task(&key, ADA, ADA).await;
    system.stop_user_service().await;
    for _ in 0..20 {
        let _ = system.create_task(&key, ADA, ADA).await;
    }
    let reply = count_tasks(&system.http, &unknown).await;
    assert_eq!(reply.status, 503, "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_mailed_when_they_get_a_key_and_before_it_expires() {
    let (system, mails) = System::start_with_mail(&[]).await;
    let _ = system.sign_up(ADA).await;
    let id = system.user_id(ADA).await;
    let expires = (chrono::Utc::now() + chrono::Duration::days(30)).to_rfc3339();
    let body = json!({"name": "Invoices", "expires": expires});
    let made = system
        .post(&format!("/users/{id}/keys"), &system.admin, &body)
        .await;
    let subject = |text: &'static str| {
        let mails = &mails;
        async move {
            eventually(text, || async {
                let mut sent = mails.mails().into_iter();
                sent.find(|mail| mail.text.contains(text))
            })
            .await
        }
    };
    let mail = subject("Subject: An API key was made for your account").await;
    assert!(mail.text.contains("Invoices") && !mail.text.contains("csk_"));
    assert!(mail.text.contains("https://countersign.example.com/keys"));
    let _ = made.expect(200);
    assert_eq!(mails.mails().len(), 1);
    let mut connection = system.database.admin();
    let due =
        "UPDATE users.credentials SET notice_due = now() WHERE kind = 'key' RETURNING name AS line";
    assert_eq!(testkit::lines(&mut connection, due), ["Invoices"]);
    let mail = subject("Subject: An API key expires soon").await;
    assert!(mail.text.contains("Invoices"));
    let left = "SELECT count(*)::text AS line FROM users.credentials WHERE notice_due IS NOT NULL";
    assert_eq!(testkit::lines(&mut connection, left), ["0"]);
    system.stop().await;
}
