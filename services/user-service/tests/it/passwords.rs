//! `POST /user/change-password`, `/user/reset-password`, `/user/forgot-password` and its `/reset`.

use diesel::QueryableByName;
use diesel::RunQueryDsl as _;
use diesel::sql_types::{BigInt, Nullable, Text};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{Fixture, PASSWORD, Person};

const NEW: &str = "battery staple";
const LOG: [(&str, &str); 1] = [("FORGOT_PASSWORD_LOG", "true")];

async fn change(app: &Fixture, person: &Person, old: &str, new: &str) -> Reply {
    let body = json!({"oldPassword": old, "newPassword": new});
    app.post(person, "/user/change-password", &body).await
}

async fn forgot(app: &Fixture, email: &str) -> Reply {
    let request = app.http.post("/user/forgot-password");
    request.json(&json!({"email": email})).send().await
}

pub(crate) async fn reset_forgotten(app: &Fixture, code: &str, password: &str) -> Reply {
    let request = app.http.post("/user/forgot-password/reset");
    request
        .json(&json!({"code": code, "password": password}))
        .send()
        .await
}

/// Stores a code of a user's current generation, as the notification worker does when it sends one.
pub(crate) fn store_code(app: &Fixture, person: &Person, code: &str, lifetime: &str) {
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires) \
         SELECT sha256('{code}'), id, 'forgot-password', code_generation, now() + interval '{lifetime}' \
         FROM users.users WHERE encode(id, 'hex') = '{}'",
        person.id
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn changing_a_password_revokes_all_tokens_except_the_new_one() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let other = Person::of(&app.sign_in("ada@example.com", PASSWORD).await.expect(200));
    let reply = change(&app, &ada, PASSWORD, NEW).await.expect(200);
    assert_eq!(reply.fields(), ["token"]);
    app.assert_token(&ada, false).await;
    app.assert_token(&other, false).await;
    let new = Person {
        token: reply.text_of("token"),
        ..ada
    };
    app.assert_token(&new, true).await;
    app.sign_in("ada@example.com", PASSWORD)
        .await
        .expect_problem(401, "invalid-credentials");
    let _ = app.sign_in("ada@example.com", NEW).await.expect(200);
}

#[tokio::test]
async fn a_wrong_old_password_changes_nothing() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    change(&app, &ada, "wrong", NEW)
        .await
        .expect_problem(400, "wrong-password");
    change(&app, &ada, &"x".repeat(100), NEW)
        .await
        .expect_problem(400, "wrong-password");
    // The new password is validated before the old one is checked.
    let reply = change(&app, &ada, "wrong", "1234").await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["newPassword"]);
    let reply = app.post(&ada, "/user/change-password", &json!({})).await;
    assert_eq!(reply.bad_fields(), ["oldPassword", "newPassword"]);
    app.assert_token(&ada, true).await;
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
}

#[tokio::test]
async fn concurrent_changes_have_one_winner() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let names = ["one", "two", "three"].map(|name| format!("password {name}"));
    let changes = names.iter().map(|name| change(&app, &ada, PASSWORD, name));
    let replies = join_all(changes).await;
    let winners: Vec<_> = replies
        .iter()
        .zip(&names)
        .filter(|(reply, _)| reply.status == 200)
        .collect();
    assert_eq!(winners.len(), 1, "{replies:?}");
    let _ = app
        .sign_in("ada@example.com", winners[0].1)
        .await
        .expect(200);
}

#[tokio::test]
async fn administrators_reset_a_password_by_email() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let reset = async |email: &str, password: &str| {
        let body = json!({"email": email, "password": password});
        app.post(&admin, "/user/reset-password", &body).await
    };
    let reply = reset("ADA@example.com", NEW).await.expect(200);
    assert_eq!(reply.json, json!({}));
    app.assert_token(&ada, false).await;
    let _ = app.sign_in("ada@example.com", NEW).await.expect(200);
    reset("nobody@example.com", NEW)
        .await
        .expect_problem(404, "not-found");
    let reply = reset("nobody", "1234").await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["email", "password"]);
}

#[derive(QueryableByName)]
struct Queued {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    channel: String,
    #[diesel(sql_type = Nullable<Text>)]
    user_id: Option<String>,
    #[diesel(sql_type = Text)]
    request_id: String,
}

fn queued(app: &Fixture) -> Vec<Queued> {
    diesel::sql_query(
        "SELECT encode(id, 'hex') AS id, channel, encode(user_id, 'hex') AS user_id, request_id \
         FROM users.notifications WHERE status = 'pending' ORDER BY created, channel",
    )
    .load(&mut app.admin_connection())
    .unwrap()
}

/// The shape of a response: names and types.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect(),
        Value::Array(values) => values.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!(0),
        other => other.clone(),
    }
}

/// The entry of the response for a stored notification.
fn entry(row: &Queued, email: &str, created: &str) -> Value {
    let moment = chrono::DateTime::parse_from_rfc3339(created).unwrap();
    let content = json!({"email": email, "created": created});
    let properties = json!({
        "correlationId": row.request_id, "gridInstanceId": null,
        "contentType": "application/json", "contentEncoding": "utf8",
        "sender": {
            "componentId": "forgot-password", "type": "countersign.user.ForgotPassword",
            "outputPort": "out",
        },
        "destination": {"componentId": row.channel, "inputPort": "in"},
        "correlationInPort": null, "componentHeaders": {}, "flowId": "forgot-password",
        "messageId": row.id, "flowRunId": moment.timestamp_millis(),
    });
    json!({
        "messageId": row.id, "flowId": "forgot-password", "componentId": row.channel,
        "created": created, "err": "{}",
        "messages": {"in": [{
            "properties": properties, "content": content, "originalContent": content,
            "scope": {"forgot-password": {"out": content}},
        }]},
    })
}

const ALL_CHANNELS: [(&str, &str); 4] = [
    ("FORGOT_PASSWORD_LOG", "true"),
    ("WEBHOOK_USER_FORGOT_PASSWORD", "http://127.0.0.1:9/hook"),
    ("SMTP_URL", "smtp://127.0.0.1:9"),
    ("MAIL_FROM", "no-reply@example.com"),
];

#[tokio::test]
async fn each_channel_has_an_entry_and_a_notification() {
    let app = Fixture::start_with(&ALL_CHANNELS).await;
    let ada = app.sign_up("ada@example.com").await;
    let reply = forgot(&app, "ADA@example.com").await.expect(200);
    let entries = reply.json.as_array().unwrap();
    let channel = |entry: &Value| entry["componentId"].as_str().unwrap().to_owned();
    let channels: Vec<_> = entries.iter().map(channel).collect();
    assert_eq!(channels, ["webhook", "mail", "log"]);
    let queued = queued(&app);
    assert_eq!(queued.len(), 3);
    for found in entries {
        let row = queued
            .iter()
            .find(|row| found["messageId"] == row.id.as_str());
        let (row, created) = (row.unwrap(), found["created"].as_str().unwrap());
        assert_eq!(*found, entry(row, "ADA@example.com", created));
        assert_eq!(row.user_id.as_deref(), Some(ada.id.as_str()));
        assert_eq!(Some(row.request_id.as_str()), reply.header("x-request-id"));
    }
}

#[tokio::test]
async fn an_unknown_address_has_the_same_response_and_sends_nothing() {
    let app = Fixture::start_with(&ALL_CHANNELS).await;
    let _ = app.sign_up("ada@example.com").await;
    let known = forgot(&app, "ada@example.com").await.expect(200);
    let unknown = forgot(&app, "nobody@example.com").await.expect(200);
    assert_eq!(shape(&unknown.json), shape(&known.json));
    let rows = queued(&app);
    assert_eq!(rows.len(), 6);
    assert_eq!(rows.iter().filter(|row| row.user_id.is_none()).count(), 3);
}

#[tokio::test]
async fn without_a_channel_codes_are_unavailable() {
    let app = Fixture::start().await;
    let reply = forgot(&app, "ada@example.com").await;
    reply.expect_problem(503, "forgot-password-not-configured");
    // The request is validated first.
    let reply = forgot(&app, "ada").await;
    reply.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn a_code_resets_a_password_once() {
    let app = Fixture::start_with(&LOG).await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "first", "1 hour");
    store_code(&app, &ada, "second", "1 hour");
    // The third request after it invalidates a code.
    for _ in 0..3 {
        let _ = forgot(&app, "ada@example.com").await.expect(200);
    }
    reset_forgotten(&app, "first", NEW)
        .await
        .expect_problem(400, "invalid-code");
    store_code(&app, &ada, "third", "1 hour");
    store_code(&app, &ada, "fourth", "1 hour");
    for _ in 0..5 {
        app.sign_in("ada@example.com", "wrong")
            .await
            .expect_problem(401, "invalid-credentials");
    }
    let reply = reset_forgotten(&app, "third", NEW).await.expect(200);
    assert_eq!(reply.json, json!({}));
    app.assert_token(&ada, false).await;
    // The back-off has ended, too.
    let _ = app.sign_in("ada@example.com", NEW).await.expect(200);
    for code in ["third", "fourth", "second", "junk", ""] {
        reset_forgotten(&app, code, "another one")
            .await
            .expect_problem(400, "invalid-code");
    }
    assert!(queued(&app).is_empty(), "a notification is still pending");
}

#[tokio::test]
async fn the_codes_of_the_last_three_requests_are_valid_until_one_is_used() {
    let app = Fixture::start_with(&LOG).await;
    for used in 1..=5 {
        let email = format!("user{used}@example.com");
        let person = app.sign_up(&email).await;
        let code = |request: u32| format!("code {used} {request}");
        for request in 1..=5 {
            let _ = forgot(&app, &email).await.expect(200);
            store_code(&app, &person, &code(request), "1 hour");
        }
        let reply = reset_forgotten(&app, &code(used), NEW).await;
        if used < 3 {
            reply.expect_problem(400, "invalid-code");
            continue;
        }
        let _ = reply.expect(200);
        for request in 1..=5 {
            let reply = reset_forgotten(&app, &code(request), "another one").await;
            reply.expect_problem(400, "invalid-code");
        }
    }
}

#[tokio::test]
async fn an_expired_code_is_invalid() {
    let app = Fixture::start_with(&LOG).await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "late", "-1 second");
    reset_forgotten(&app, "late", NEW)
        .await
        .expect_problem(400, "invalid-code");
}

#[tokio::test]
async fn a_change_of_password_or_address_invalidates_codes() {
    let app = Fixture::start_with(&LOG).await;
    let admin = app.admin().await;
    for (name, update) in [
        ("a", json!({"password": "changed meanwhile"})),
        ("b", json!({"email": "moved@example.com"})),
    ] {
        let person = app.sign_up(&format!("{name}@example.com")).await;
        for request in 0..3 {
            store_code(&app, &person, &format!("{name}{request}"), "1 hour");
            let _ = forgot(&app, &format!("{name}@example.com"))
                .await
                .expect(200);
        }
        store_code(&app, &person, &format!("{name}3"), "1 hour");
        let _ = app.update(&admin, &person.id, &update).await.expect(200);
        for request in 0..=3 {
            let reply = reset_forgotten(&app, &format!("{name}{request}"), NEW).await;
            reply.expect_problem(400, "invalid-code");
        }
    }
}

#[tokio::test]
async fn the_new_password_is_validated_before_the_code() {
    let app = Fixture::start_with(&LOG).await;
    let reply = reset_forgotten(&app, "junk", "1234").await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["password"]);
    let request = app
        .http
        .post("/user/forgot-password/reset")
        .json(&json!({}));
    assert_eq!(request.send().await.bad_fields(), ["code", "password"]);
}

#[tokio::test]
async fn concurrent_uses_of_a_code_have_one_winner() {
    let app = Fixture::start_with(&LOG).await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "once", "1 hour");
    let passwords = ["password 1", "password 2", "password 3", "password 4"];
    let replies = join_all(passwords.map(|new| reset_forgotten(&app, "once", new))).await;
    let winners: Vec<_> = replies
        .iter()
        .zip(passwords)
        .filter(|(reply, _)| reply.status == 200)
        .collect();
    assert_eq!(winners.len(), 1);
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        reply.expect_problem(400, "invalid-code");
    }
    let _ = app
        .sign_in("ada@example.com", winners[0].1)
        .await
        .expect(200);
}

#[tokio::test]
async fn an_inactive_user_stays_inactive_after_a_reset() {
    let app = Fixture::start_with(&LOG).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let _ = app
        .update(&admin, &ada.id, &json!({"isActive": false}))
        .await
        .expect(200);
    store_code(&app, &ada, "code", "1 hour");
    let _ = reset_forgotten(&app, "code", NEW).await.expect(200);
    app.sign_in("ada@example.com", NEW)
        .await
        .expect_problem(403, "account-inactive");
}

#[tokio::test]
async fn passwords_are_stored_only_as_hashes() {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let app = Fixture::start_with(&LOG).await;
    let _ = app.sign_up("ada@example.com").await;
    assert_eq!(
        app.database.rows_that_hold("users", PASSWORD),
        Vec::<String>::new()
    );
    let hashes: Count = diesel::sql_query(
        "SELECT count(*) FROM users.users WHERE password_hash LIKE '$2b$04$%' AND length(password_hash) = 60",
    )
    .get_result(&mut app.admin_connection())
    .unwrap();
    assert_eq!(hashes.count, 2);
}
