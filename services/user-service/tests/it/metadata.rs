//! Metadata of users, whose numbers are not changed.

use serde_json::json;
use testkit::Reply;

use crate::fixture::{Fixture, PASSWORD, Person};

#[tokio::test]
async fn extreme_numbers_in_metadata_are_kept() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let metadata = json!({"a": [f64::MAX, {"b": f64::MIN}], "c": 5e-324, "d": u64::MAX});
    let body = json!({"email": "eve@example.com", "password": PASSWORD, "metadata": metadata});
    let person = Person::of(&app.post(&admin, "/user", &body).await.expect(200));
    let path = format!("/users/{}", person.id);
    let user = app.get(&admin, &path).await.expect(200).json;
    assert_eq!(user["metadata"], metadata);
    let users = app.get(&admin, "/users").await.expect(200).json;
    assert_eq!(users.as_array().map(Vec::len), Some(2));
}

async fn put_metadata(app: &Fixture, admin: &Person, user: &Person, metadata: &str) -> Reply {
    let put = app.http.put(&format!("/users/{}", user.id));
    let put = put
        .bearer(&admin.token)
        .header("content-type", "application/json");
    put.body(format!(r#"{{"metadata": {metadata}}}"#))
        .send()
        .await
}

#[tokio::test]
async fn numbers_in_metadata_come_back_equal() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    for (sent, returned) in [
        ("1.0", json!(1.0)),
        ("1e2", json!(100.0)),
        ("0.1", json!(0.1)),
        ("1.10", json!(1.1)),
        ("-0", json!(0.0)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0.30000000000000004", json!(0.300_000_000_000_000_04)),
    ] {
        let metadata = format!(r#"{{"a": [{{"b": {sent}}}]}}"#);
        let user = put_metadata(&app, &admin, &ada, &metadata)
            .await
            .expect(200);
        assert_eq!(user.json["metadata"]["a"][0]["b"], returned, "{sent}");
    }
}

#[tokio::test]
async fn metadata_that_would_be_changed_is_refused() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    for (metadata, code) in [
        (r#"{"a": 18446744073709551616}"#, "inexact-number"),
        (
            r#"{"a": {"b": [0.12345678901234567891]}}"#,
            "inexact-number",
        ),
        (r#"{"a": 1e400}"#, "inexact-number"),
        (r#"{"a": [-1e-400]}"#, "inexact-number"),
        (r#"{"a": 1, "b": {"c": 1, "c": 2}}"#, "duplicate-name"),
        (r#"{"a": "\u0000"}"#, "nul-character"),
    ] {
        let reply = put_metadata(&app, &admin, &ada, metadata).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["metadata"], "{metadata}");
        assert_eq!(reply.json["errors"][0]["code"], code, "{metadata}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
    for metadata in [r#"{"a": "\ud800"}"#, &deep] {
        let reply = put_metadata(&app, &admin, &ada, metadata).await;
        reply.expect_problem(400, "malformed-json");
    }
}
