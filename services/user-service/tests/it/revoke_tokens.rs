//! `POST /users/:userId/revoke-tokens`.

use serde_json::json;

use crate::fixture::{Fixture, PASSWORD};

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
