//! The audit log of accounts: what is in it, and what stays of a deleted user.
#![expect(clippy::too_many_lines, reason = "a test tells its story in one go")]

use std::time::Duration;

use demo_engine::Control;
use diesel::RunQueryDsl as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{Http, Request, eventually};

use crate::audit_list::actions;
use crate::deletion_worker::end_to_end::System;
use crate::support::{ADMIN, PASSWORD, Person, TestApp};

const FROM: &str = "203.0.113.7";

/// A request that is found again in the log by its id.
fn traced(request: Request, id: &str) -> Request {
    let request = request.header("X-Request-Id", id);
    request.header("X-Forwarded-For", &format!("198.51.100.1, {FROM}"))
}

pub(crate) async fn rows(http: &Http, token: &str, query: &str) -> Vec<Value> {
    let reply = http.get(&format!("/audit{query}")).bearer(token);
    let reply = reply.send().await.expect(200);
    reply.json.as_array().unwrap().clone()
}

/// The one row of a request, without its number and its moment.
async fn row(app: &TestApp, admin: &Person, id: &str) -> Value {
    let rows = rows(&app.http, &admin.token, &format!("?filter=requestId:{id}")).await;
    let [row] = rows.as_slice() else {
        unreachable!("{id} has these rows: {rows:?}");
    };
    let mut row = row.clone();
    let fields = row.as_object_mut().unwrap();
    assert!(fields.remove("id").unwrap().as_i64().unwrap() > 0);
    let at = fields.remove("at").unwrap();
    assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    row
}

fn expected(
    (action, request): (&str, &str),
    (actor_kind, actor): (&str, Option<&str>),
    subject: Option<&str>,
    proof: Option<&str>,
    detail: &Value,
) -> Value {
    json!({
        "action": action, "actorKind": actor_kind, "actor": actor,
        "subjectKind": subject.map(|_| "user"), "subject": subject, "proof": proof,
        "clientAddress": FROM, "requestId": request, "detail": detail,
    })
}

fn credentials(name: &str, password: &str) -> Value {
    json!({"username": name, "password": password})
}

fn store_code(app: &TestApp, person: &str, purpose: &str, code: &str) {
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, email_key, expires) \
         SELECT sha256('{code}'), id, '{purpose}', code_generation, email_key, now() + interval '1 hour' \
         FROM users.users WHERE encode(id, 'hex') = '{person}'"
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn what_a_user_does_leaves_one_row_each() {
    let app = TestApp::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let admin = app.admin().await;
    let (http, none) = (&app.http, Value::Null);
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let reply = traced(http.post("/user").json(&body), "sign-up").send();
    let ada = Person::of(&reply.await.expect(200));
    let id = Some(ada.id.as_str());
    let (user, anonymous) = (("user", id), ("anonymous", None));
    let check = async |request: &str, row: Value| {
        assert_eq!(self::row(&app, &admin, request).await, row, "{request}");
    };
    let made = ("user-created", "sign-up");
    check("sign-up", expected(made, anonymous, id, None, &none)).await;

    let sign_in = |password| {
        http.post("/user/auth")
            .json(&credentials("ADA@example.com", password))
    };
    let _ = traced(sign_in(PASSWORD), "in").send().await.expect(200);
    let signed_in = expected(("signed-in", "in"), user, id, Some("password"), &none);
    check("in", signed_in).await;
    let reply = traced(sign_in("wrong"), "refused").send().await;
    reply.expect_problem(401, "invalid-credentials");
    let wrong = json!({"reason": "invalid-credentials"});
    let refused = ("sign-in-refused", "refused");
    check("refused", expected(refused, anonymous, id, None, &wrong)).await;

    let body = json!({"oldPassword": PASSWORD, "newPassword": "battery staple"});
    let request = http
        .post("/user/change-password")
        .bearer(&ada.token)
        .json(&body);
    let _ = traced(request, "change").send().await.expect(200);
    let changed = ("password-changed", "change");
    check(
        "change",
        expected(changed, user, id, Some("password"), &none),
    )
    .await;

    let request = http
        .post("/user/forgot-password")
        .json(&json!({"email": "ada@example.com"}));
    let _ = traced(request, "forgot").send().await.expect(200);
    let forgot = ("password-reset-requested", "forgot");
    check("forgot", expected(forgot, anonymous, id, None, &none)).await;
    store_code(&app, &ada.id, "forgot-password", "code-1");
    let body = json!({"code": "code-1", "password": "a third one"});
    let request = http.post("/user/forgot-password/reset").json(&body);
    let _ = traced(request, "reset").send().await.expect(200);
    let reset = ("password-reset", "reset");
    check(
        "reset",
        expected(reset, user, id, Some("reset-code"), &none),
    )
    .await;

    store_code(&app, &ada.id, "verify-email", "code-2");
    let request = http
        .post("/user/verify-email")
        .json(&json!({"code": "code-2"}));
    let _ = traced(request, "verify").send().await.expect(200);
    let verified = ("email-verified", "verify");
    check(
        "verify",
        expected(verified, user, id, Some("verification-code"), &none),
    )
    .await;
}

#[tokio::test]
async fn what_an_administrator_does_leaves_one_row_each() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let id = Some(ada.id.as_str());
    let by = ("admin", Some(admin.id.as_str()));
    let path = format!("/users/{}", ada.id);
    let check = async |action: &str, request: &str, detail: Value| {
        let found = row(&app, &admin, request).await;
        let expected = expected((action, request), by, id, Some("token"), &detail);
        assert_eq!(found, expected);
    };
    let change = json!({"plan": "gold", "email": "lovelace@example.com", "isActive": true});
    let request = app.http.put(&path).bearer(&admin.token).json(&change);
    let _ = traced(request, "update").send().await.expect(200);
    check(
        "user-updated",
        "update",
        json!({"fields": ["email", "plan"]}),
    )
    .await;
    let body = json!({"email": "lovelace@example.com", "password": "battery staple"});
    let request = app.http.post("/user/reset-password").bearer(&admin.token);
    let _ = traced(request.json(&body), "set").send().await.expect(200);
    check("password-reset", "set", Value::Null).await;
    let request = app.http.delete(&path).bearer(&admin.token);
    let reply = traced(request, "delete").send().await.expect(200);
    check("user-deletion-requested", "delete", Value::Null).await;
    let status = reply.header("location").unwrap().to_owned();
    let request = app.http.delete(&status).bearer(&admin.token);
    let _ = traced(request, "cancel").send().await.expect(200);
    check("user-deletion-cancelled", "cancel", Value::Null).await;

    let made = rows(&app.http, &admin.token, "?filter=action:first-admin-made").await;
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["subject"], admin.id.as_str());
    assert_eq!(made[0]["actorKind"], "service");
    assert_eq!(made[0]["clientAddress"], Value::Null);
}

#[tokio::test]
async fn an_inactive_account_and_an_unknown_name_are_refused_in_the_log_as_in_the_answer() {
    let app = TestApp::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let _ = app
        .update(&admin, &ada.id, &json!({"isActive": false}))
        .await
        .expect(200);
    let attempt = |name| {
        app.http
            .post("/user/auth")
            .json(&credentials(name, PASSWORD))
    };
    let reply = traced(attempt("ada@example.com"), "inactive").send().await;
    reply.expect_problem(403, "account-inactive");
    let found = row(&app, &admin, "inactive").await;
    assert_eq!(found["detail"], json!({"reason": "account-inactive"}));
    assert_eq!(
        (&found["subject"], &found["proof"]),
        (&json!(ada.id), &json!("password"))
    );

    let reply = traced(attempt("nobody@example.com"), "unknown")
        .send()
        .await;
    reply.expect_problem(401, "invalid-credentials");
    let reason = json!({"reason": "invalid-credentials"});
    let what = ("sign-in-refused", "unknown");
    let refused = expected(what, ("anonymous", None), None, None, &reason);
    assert_eq!(row(&app, &admin, "unknown").await, refused);
    let body = json!({"email": "nobody@example.com"});
    let request = app.http.post("/user/forgot-password").json(&body);
    let _ = traced(request, "unknown-forgot").send().await.expect(200);
    let found = row(&app, &admin, "unknown-forgot").await;
    assert_eq!(
        (&found["subjectKind"], &found["subject"]),
        (&Value::Null, &Value::Null)
    );
    assert!(
        app.database
            .rows_that_hold("users", "nobody@example.com")
            .is_empty()
    );
}

#[tokio::test]
async fn what_changes_nothing_leaves_no_row() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let path = format!("/users/{}", ada.id);
    for _ in 0..5 {
        let _ = app.sign_in("ada@example.com", "wrong").await;
    }
    let before = rows(&app.http, &admin.token, "").await.len();
    let reply = app.sign_in("ada@example.com", PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    let _ = app
        .update(&admin, &ada.id, &json!({"plan": "free"}))
        .await
        .expect(200);
    let taken = app
        .update(&admin, &ada.id, &json!({"username": ADMIN}))
        .await;
    taken.expect_problem(409, "username-taken");
    let body = json!({"oldPassword": "wrong", "newPassword": "battery staple"});
    let reply = app.post(&ada, "/user/change-password", &body).await;
    reply.expect_problem(400, "wrong-password");
    let _ = app.get(&admin, &path).await.expect(200);
    assert_eq!(rows(&app.http, &admin.token, "").await.len(), before);
    let _ = app.delete(&admin, &path).await.expect(200);
    let _ = app.delete(&admin, &path).await.expect(200);
    let rows = rows(&app.http, &admin.token, "").await;
    assert_eq!(rows.len(), before + 1, "asking again is no second deletion");
}

#[actix_web::test]
async fn a_deletion_leaves_pseudonyms_without_names_and_addresses() {
    let system = System::start(Control::default()).await;
    let admin = system.admin().await;
    let (http, name) = (&system.http, "Ada.Lovelace@Example.com");
    let body = json!({"email": name, "password": PASSWORD});
    let reply = traced(http.post("/user").json(&body), "sign-up").send();
    let ada = Person::of(&reply.await.expect(200));
    for (password, request) in [(PASSWORD, "in"), ("wrong", "refused")] {
        let attempt = http.post("/user/auth").json(&credentials(name, password));
        let _ = traced(attempt, request).send().await;
    }
    let path = format!("/users/{}", ada.id);
    let request = http.delete(&path).bearer(&admin);
    let _ = traced(request, "delete").send().await.expect(200);
    let about = format!("?filter=subject:{}&sort=at:1", pseudonym(&ada.id));
    let rows = eventually("the end of the user", async || {
        let rows = rows(http, &admin, &about).await;
        (actions(&rows).last() == Some(&"user-deleted")).then_some(rows)
    })
    .await;
    let expected = [
        "user-created",
        "signed-in",
        "sign-in-refused",
        "user-deletion-requested",
        "user-deleted",
    ];
    assert_eq!(actions(&rows), expected);
    let addresses: Vec<_> = rows
        .iter()
        .map(|row| row["clientAddress"].as_str())
        .collect();
    let of_the_administrator = Some(FROM);
    assert_eq!(addresses, [None, None, None, of_the_administrator, None]);
    assert_eq!(
        rows[4]["requestId"], "delete",
        "the worker's rows name the request that caused them"
    );
    assert_eq!(rows[4]["actorKind"], "service");
    assert_eq!(rows[1]["actor"], rows[1]["subject"]);
    let left = system.fixture.database.rows_that_hold("users", "lovelace");
    assert_eq!(left, Vec::<String>::new());
    system.stop().await;
}

#[actix_web::test]
async fn a_deletion_that_fails_says_so_once() {
    let app = crate::deletion_worker::fixture::Fixture::new().await;
    let user = app.user("ada@example.com");
    let unreachable = [
        ("PEOPLE_TASK_SERVICE_URL", "http://127.0.0.1:9"),
        ("DELETE_MAX_ATTEMPTS", "2"),
    ];
    let worker = app.worker(&unreachable).await;
    assert_eq!(app.ended(app.delete(user)).await.status, "failed");
    let rows = app.database.rows_that_hold("users", "user-deletion-failed");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0].contains("delete-people-tasks") && rows[0].contains(&user.to_string()));
    worker.stop(Duration::from_secs(20)).await;
}

/// What stands in the audit log for a user who was deleted.
pub(crate) fn pseudonym(user: &str) -> String {
    let hash = hex::encode(Sha256::digest(hex::decode(user).unwrap()));
    hash.chars().take(24).collect()
}
