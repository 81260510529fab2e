//! `POST /users/:userId/revoke-tokens`, and tokens of which it is not known yet that they are revoked.

use diesel::connection::SimpleConnection as _;
use serde_json::json;

use crate::fixture::{Fixture, PASSWORD};
use crate::verify_email::{REQUIRED, store_code};

/// Raises the epochs of all users without the trigger that adds them to the feed of revocations: their tokens are not yet
/// known as revoked.
pub(crate) fn raise_epochs_unnoticed(app: &Fixture) {
    let raise = "ALTER TABLE users.users DISABLE TRIGGER users_note_raised_epoch;
        UPDATE users.users SET epoch = epoch + 1";
    app.admin_connection().batch_execute(raise).unwrap();
}

#[tokio::test]
async fn the_tokens_of_one_user_are_revoked() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let (ada, bob) = (
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    let path = format!("/users/{}/revoke-tokens", ada.id);
    let revoked = app.http.post(&path).bearer(&admin.token).send().await;
    assert_eq!(revoked.expect(200).json["id"], ada.id.as_str());
    let refused = app.get(&ada, "/user").await;
    refused.expect_problem(401, "token-revoked");
    let _ = app.get(&bob, "/user").await.expect(200);
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
    let audit = app.get(&admin, "/audit?filter=action:tokens-revoked").await;
    assert_eq!(audit.json[0]["subject"], ada.id.as_str());
    assert_eq!(audit.json[0]["actor"], admin.id.as_str());
    assert_eq!(audit.json[1], json!(null));
}

#[tokio::test]
async fn only_an_administrator_may_and_the_user_must_exist() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let path = format!("/users/{}/revoke-tokens", ada.id);
    let refused = app.http.post(&path).bearer(&ada.token).send().await;
    refused.expect_problem(403, "insufficient-scope");
    let unknown = format!("/users/{}/revoke-tokens", "0".repeat(24));
    let missing = app.http.post(&unknown).bearer(&admin.token).send().await;
    missing.expect_problem(404, "not-found");
}

#[tokio::test]
async fn a_token_of_an_earlier_epoch_makes_no_key_and_confirms_no_address() {
    let app = Fixture::start_with(&REQUIRED).await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "code");
    raise_epochs_unnoticed(&app);
    app.assert_token(&ada, true).await;
    for (path, body) in [
        ("/user/keys", json!({"name": "n8n"})),
        ("/user/verify-email", json!({"code": "code"})),
    ] {
        let refused = app.post(&ada, path, &body).await;
        refused.expect_problem(401, "token-revoked");
    }
}
