//! API keys, which the gateway exchanges for tokens.

use std::time::Duration;

use actix_web::http::StatusCode;
use auth::{ApiKey, KeyScope, Subject};
use futures_util::future::join_all;
use serde_json::json;
use testkit::{Reply, eventually};
use values::{CredentialId, EmailAddress, FromText as _, UserId};

use crate::fixture::Fixture;

const TASKS: &str = "/people-task/tasks";

/// A gateway whose user service knows one key, with these scopes.
async fn with_key(scopes: &[KeyScope], settings: &[(&str, &str)]) -> (Fixture, ApiKey) {
    let fixture = Fixture::with(settings).await;
    let key = ApiKey::generate(CredentialId::generate());
    give_token(&fixture, &key, scopes);
    (fixture, key)
}

fn give_token(fixture: &Fixture, key: &ApiKey, scopes: &[KeyScope]) -> String {
    let email = EmailAddress::from_text("ada@example.com").unwrap();
    let subject = Subject {
        id: UserId::generate(),
        username: email.clone(),
        email,
        scope: vec!["user".to_owned()],
        epoch: 1,
        incarnation: testkit::INCARNATION.to_owned(),
        email_verified: true,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    };
    let lifetime = Duration::from_secs(300);
    let token = fixture
        .signer
        .sign_for(subject.of_key(key.id(), scopes), lifetime);
    let token = token.expose().to_owned();
    fixture
        .users
        .with(|state| state.key_token = Some((token.clone(), 300)));
    token
}

async fn get(fixture: &Fixture, key: &str, path: &str) -> Reply {
    fixture.http.get(path).bearer(key).send().await
}

fn exchanges(fixture: &Fixture) -> usize {
    fixture.users.with(|state| state.exchanges)
}

#[tokio::test]
async fn a_service_gets_the_token_of_a_key_and_never_the_key() {
    let (fixture, key) = with_key(&[KeyScope::TasksRead], &[]).await;
    let token = give_token(&fixture, &key, &[KeyScope::TasksRead]);
    assert_eq!(get(&fixture, key.expose(), TASKS).await.status, 200);
    let received = fixture.tasks.last();
    assert_eq!(
        received.header("authorization"),
        Some(format!("Bearer {token}").as_str())
    );
    // A public route takes no key, and its service does not see any.
    let forgot = fixture
        .http
        .post("/user/forgot-password")
        .bearer(key.expose());
    assert_eq!(forgot.json(&json!({})).send().await.status, 200);
    assert_eq!(fixture.users.last().header("authorization"), None);
    let secrets = format!("{:?}", fixture.users.with(|state| state.received.clone()));
    assert!(!secrets.contains("csk_"));
}

#[tokio::test]
async fn requests_at_the_same_time_wait_for_one_exchange() {
    let (fixture, key) = with_key(&[KeyScope::TasksRead], &[]).await;
    let requests = (0..50).map(|_| get(&fixture, key.expose(), TASKS));
    for reply in join_all(requests).await {
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    // One more if the minute has changed meanwhile.
    assert!(exchanges(&fixture) <= 2, "{}", exchanges(&fixture));
}

#[tokio::test]
async fn a_key_is_refused_where_its_scopes_do_not_reach_before_the_service_is_asked() {
    let (fixture, key) = with_key(&[KeyScope::TasksRead], &[]).await;
    let decide = fixture
        .http
        .put(&format!("{TASKS}/65f0c0ffee65f0c0ffee65f0/approve"));
    let refused = decide.bearer(key.expose()).json(&json!({})).send().await;
    refused.expect_problem(403, "insufficient-scope");
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(challenge.contains(r#"scope="tasks:decide""#), "{challenge}");
    let closed = get(&fixture, key.expose(), "/user/keys").await;
    closed.expect_problem(403, "key-not-accepted");
    assert_eq!(fixture.tasks.count() + fixture.users.count(), 0);
}

#[tokio::test]
async fn a_text_that_is_no_key_is_refused_and_remembered() {
    let fixture = Fixture::start().await;
    let key = ApiKey::generate(CredentialId::generate());
    for _ in 0..5 {
        let refused = get(&fixture, key.expose(), TASKS).await;
        refused.expect_problem(401, "invalid-key");
    }
    assert_eq!(exchanges(&fixture), 1);
    let wrong_checksum = key.expose().replace(&key.expose()[60..], "0000");
    get(&fixture, &wrong_checksum, TASKS)
        .await
        .expect_problem(401, "invalid-key");
    get(&fixture, "csk_short", TASKS)
        .await
        .expect_problem(401, "invalid-key");
    assert_eq!(
        exchanges(&fixture),
        1,
        "a wrong checksum needs no user service"
    );
    assert_eq!(fixture.tasks.count(), 0);
}

#[tokio::test]
async fn a_key_that_is_off_is_asked_about_again_soon() {
    let fixture = Fixture::start().await;
    let key = ApiKey::generate(CredentialId::generate());
    let off = (StatusCode::UNAUTHORIZED, 1);
    fixture.users.with(|state| state.key_refusal = Some(off));
    get(&fixture, key.expose(), TASKS)
        .await
        .expect_problem(401, "invalid-key");
    give_token(&fixture, &key, &[KeyScope::TasksRead]);
    eventually("the key that was confirmed", || async {
        let reply = get(&fixture, key.expose(), TASKS).await;
        (reply.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_network_that_tries_many_texts_must_wait_and_asks_the_user_service_no_more() {
    let settings = [
        ("RATE_LIMIT_CREDENTIALS_PER_MINUTE", "1"),
        ("RATE_LIMIT_CREDENTIALS_BURST", "3"),
    ];
    let fixture = Fixture::with(&settings).await;
    let mut refused = 0;
    for _ in 0..10 {
        let key = ApiKey::generate(CredentialId::generate());
        let reply = get(&fixture, key.expose(), TASKS).await;
        if reply.status == 429 {
            reply.expect_problem(429, "too-many-attempts");
            refused += 1;
        }
    }
    assert_eq!((exchanges(&fixture), refused), (4, 6));
}

#[tokio::test]
async fn a_mistyped_key_in_a_loop_counts_once_and_keeps_no_other_key_of_its_network_waiting() {
    let settings = [
        ("RATE_LIMIT_CREDENTIALS_PER_MINUTE", "1"),
        ("RATE_LIMIT_CREDENTIALS_BURST", "3"),
    ];
    let (fixture, key) = with_key(&[KeyScope::TasksRead], &settings).await;
    for _ in 0..10 {
        let reply = get(&fixture, "csk_mistyped", TASKS).await;
        reply.expect_problem(401, "invalid-key");
    }
    let _ = get(&fixture, key.expose(), TASKS).await.expect(200);
}

#[tokio::test]
async fn a_token_that_a_service_refuses_is_exchanged_once_more_unnoticed() {
    let (fixture, key) = with_key(&[KeyScope::TasksWrite], &[]).await;
    fixture.tasks.with(|state| state.refusals = 1);
    let create = || {
        fixture
            .http
            .post(TASKS)
            .bearer(key.expose())
            .json(&json!({"title": "a"}))
    };
    assert_eq!(create().send().await.status, 200);
    assert_eq!(fixture.tasks.count(), 2);
    fixture.tasks.with(|state| state.refusals = 10);
    let reply = create().send().await;
    assert_eq!(reply.status, 401, "there is one more try, and no loop");
    assert_eq!(fixture.tasks.count(), 4);
}

#[tokio::test]
async fn a_known_key_goes_on_while_the_user_service_is_away_and_an_unknown_one_waits() {
    let metrics = telemetry::metrics_recorder();
    let (fixture, key) = with_key(&[KeyScope::TasksRead], &[]).await;
    assert_eq!(get(&fixture, key.expose(), TASKS).await.status, 200);
    fixture.users.stop().await;
    for _ in 0..5 {
        assert_eq!(get(&fixture, key.expose(), TASKS).await.status, 200);
    }
    let unknown = ApiKey::generate(CredentialId::generate());
    for _ in 0..5 {
        let reply = get(&fixture, unknown.expose(), TASKS).await;
        reply.expect_problem(503, "keys-unavailable");
    }
    assert!(!metrics.render().contains("outcome=\"refused"));
}

#[tokio::test]
async fn keys_of_one_address_can_have_limits_of_their_own() {
    let settings = [("RATE_LIMIT_BY", "key"), ("RATE_LIMIT_PER_SECOND", "1")];
    let (fixture, key) = with_key(&[KeyScope::TasksRead], &settings).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(get(&fixture, key.expose(), TASKS).await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    let last = get(&fixture, key.expose(), TASKS).await;
    assert!(
        last.status == 200 || last.text.contains("with your API key"),
        "{}",
        last.text
    );
}
