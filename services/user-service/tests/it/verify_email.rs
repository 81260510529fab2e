//! `POST /user/verify-email`, and what depends on it.

use diesel::RunQueryDsl as _;
use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{Fixture, PASSWORD, Person};

const REQUIRED: [(&str, &str); 2] = [
    ("EMAIL_VERIFICATION", "required"),
    ("FORGOT_PASSWORD_LOG", "true"),
];

async fn verify(app: &Fixture, code: &str) -> Reply {
    let request = app.http.post("/user/verify-email");
    request.json(&json!({"code": code})).send().await
}

/// The claim of a token, without checking its signature.
fn is_verified(token: &str) -> bool {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload)
        .unwrap();
    let claims: Value = serde_json::from_slice(&payload).unwrap();
    claims
        .get("emailVerified")
        .and_then(Value::as_bool)
        .unwrap()
}

fn pending(app: &Fixture) -> usize {
    let rows = app.database.rows_that_hold("users", "verify-email");
    rows.iter()
        .filter(|row| row.starts_with("notifications: "))
        .count()
}

/// Stores a code for the address that a user has, as the notification worker does.
fn store_code(app: &Fixture, person: &Person, code: &str) {
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, email_key, expires) \
         SELECT sha256('{code}'), id, 'verify-email', 0, email_key, now() + interval '1 hour' \
         FROM users.users WHERE encode(id, 'hex') = '{}'",
        person.id
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

async fn sign_in(app: &Fixture, name: &str) -> Person {
    Person::of(&app.sign_in(name, PASSWORD).await.expect(200))
}

#[tokio::test]
async fn an_address_counts_after_its_code_was_returned() {
    let app = Fixture::start_with(&REQUIRED).await;
    let ada = app.sign_up("ada@example.com").await;
    assert!(!is_verified(&ada.token));
    assert_eq!(pending(&app), 1);
    store_code(&app, &ada, "first");
    verify(&app, "junk")
        .await
        .expect_problem(400, "invalid-code");
    let reply = verify(&app, "first").await.expect(200);
    assert_eq!(reply.json, json!({}));
    assert!(is_verified(&sign_in(&app, "ada@example.com").await.token));
    verify(&app, "first")
        .await
        .expect_problem(400, "invalid-code");
}

#[tokio::test]
async fn a_new_address_needs_its_own_code() {
    let app = Fixture::start_with(&REQUIRED).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    assert!(
        is_verified(&admin.token),
        "the address of the first administrator is trusted"
    );
    store_code(&app, &ada, "old");
    let change = json!({"email": "new@example.com"});
    let _ = app.update(&admin, &ada.id, &change).await.expect(200);
    assert_eq!(pending(&app), 2);
    verify(&app, "old")
        .await
        .expect_problem(400, "invalid-code");
    store_code(&app, &ada, "new");
    let _ = verify(&app, "new").await.expect(200);
    // The same mailbox in another case is not a change.
    let change = json!({"email": "New@example.com"});
    let _ = app.update(&admin, &ada.id, &change).await.expect(200);
    assert!(is_verified(&sign_in(&app, "new@example.com").await.token));
}

#[tokio::test]
async fn without_verification_every_address_counts_and_nothing_is_sent() {
    let app = Fixture::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let ada = app.sign_up("ada@example.com").await;
    assert!(is_verified(&ada.token));
    assert_eq!(pending(&app), 0);
}
