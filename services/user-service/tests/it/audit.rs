//! The audit log of accounts: its entries, and what is left of a deleted user.

use std::time::Duration;

use demo_engine::Control;
use diesel::RunQueryDsl as _;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::{Http, Request, eventually};

use crate::audit_list::actions;
use crate::deletion_worker::end_to_end::System;
use crate::fixture::{ADMIN, Fixture, PASSWORD, Person};
use crate::sessions::Browser;
use crate::sign_in::hold_pauses;

const FROM: &str = "203.0.113.7";

/// A request whose entries are found by its id.
fn traced(request: Request, id: &str) -> Request {
    let request = request.header("X-Request-Id", id);
    request.header("X-Forwarded-For", &format!("198.51.100.1, {FROM}"))
}

pub(crate) async fn rows(http: &Http, token: &str, query: &str) -> Vec<Value> {
    let reply = http.get(&format!("/audit{query}")).bearer(token);
    let reply = reply.send().await.expect(200);
    reply.json.as_array().unwrap().clone()
}

/// The entries that match a query, oldest first, with names in place of ids.
async fn entries(app: &Fixture, query: &str, people: &[(&Person, &str)]) -> Value {
    let (admin, _) = people.first().unwrap();
    let rows = rows(&app.http, &admin.token, &format!("{query}&sort=at:1")).await;
    let mut text = serde_json::to_string(&rows).unwrap();
    for (person, name) in people {
        text = text.replace(&person.id, name);
    }
    let mut rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    for row in &mut rows {
        let fields = row.as_object_mut().unwrap();
        assert!(fields.remove("id").unwrap().as_i64().unwrap() > 0);
        let at = fields.remove("at").unwrap();
        assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    }
    rows.into()
}

fn credentials(name: &str, password: &str) -> Value {
    json!({"username": name, "password": password})
}

fn store_code(app: &Fixture, person: &str, purpose: &str, code: &str) {
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, email_key, expires) \
         SELECT sha256('{code}'), id, '{purpose}', code_generation, email_key, now() + interval '1 hour' \
         FROM users.users WHERE encode(id, 'hex') = '{person}'"
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

async fn sign_up(app: &Fixture) -> Person {
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let request = traced(app.http.post("/user").json(&body), "sign-up");
    Person::of(&request.send().await.expect(200))
}

#[tokio::test]
async fn each_action_of_a_user_has_one_entry() {
    let app = Fixture::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let (admin, ada) = (app.admin().await, sign_up(&app).await);
    store_code(&app, &ada.id, "verify-email", "code-2");
    let post = async |request_id: &str, path: &str, body: Value| {
        let request = app.http.post(path).bearer(&ada.token).json(&body);
        traced(request, request_id).send().await
    };
    let right = credentials("ADA@example.com", PASSWORD);
    let wrong = credentials("ADA@example.com", "wrong");
    let _ = post("in", "/user/auth", right).await.expect(200);
    let _ = post("refused", "/user/auth", wrong).await.expect(401);
    let reply = post("resend", "/user/verify-email/resend", json!({})).await;
    let _ = reply.expect(200);
    let guess = json!({"oldPassword": "wrong", "newPassword": "battery staple"});
    let reply = post("guess", "/user/change-password", guess).await;
    reply.expect_problem(400, "wrong-password");
    let change = json!({"oldPassword": PASSWORD, "newPassword": "battery staple"});
    let reply = post("change", "/user/change-password", change).await;
    let _ = reply.expect(200);
    let verify = json!({"code": "code-2", "password": "battery staple"});
    let reply = post("verify", "/user/verify-email", verify).await;
    let _ = reply.expect(200);
    let forgot = json!({"email": "ada@example.com"});
    let reply = post("forgot", "/user/forgot-password", forgot).await;
    let _ = reply.expect(200);
    store_code(&app, &ada.id, "forgot-password", "code-1");
    let reset = json!({"code": "code-1", "password": "a third one"});
    let reply = post("reset", "/user/forgot-password/reset", reset).await;
    let _ = reply.expect(200);

    let about_ada = format!("?filter=subject:{}", ada.id);
    let people = [(&admin, "[admin]"), (&ada, "[ada]")];
    assert_json_snapshot!(entries(&app, &about_ada, &people).await);
}

#[tokio::test]
async fn each_action_of_an_administrator_has_one_entry() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, sign_up(&app).await);
    let path = format!("/users/{}", ada.id);
    let change = json!({"plan": "gold", "email": "lovelace@example.com", "isActive": true});
    let request = app.http.put(&path).bearer(&admin.token).json(&change);
    let _ = traced(request, "update").send().await.expect(200);
    let body = json!({"email": "lovelace@example.com", "password": "battery staple"});
    let request = app.http.post("/user/reset-password").bearer(&admin.token);
    let _ = traced(request.json(&body), "set").send().await.expect(200);
    let request = app.http.delete(&path).bearer(&admin.token);
    let reply = traced(request, "delete").send().await.expect(200);
    let status = reply.header("location").unwrap().to_owned();
    let request = app.http.delete(&status).bearer(&admin.token);
    let _ = traced(request, "cancel").send().await.expect(200);

    let about_ada = format!("?filter=subject:{}", ada.id);
    let people = [(&admin, "[admin]"), (&ada, "[ada]")];
    assert_json_snapshot!(entries(&app, &about_ada, &people).await);
    let mut created = entries(&app, "?filter=action:first-admin-made", &people).await;
    created[0]["requestId"].take();
    assert_json_snapshot!("first_admin", created);
}

#[tokio::test]
async fn refused_sign_ins_have_entries_without_the_name() {
    let app = Fixture::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let (admin, ada) = (app.admin().await, sign_up(&app).await);
    let inactive = json!({"isActive": false});
    let _ = app.update(&admin, &ada.id, &inactive).await.expect(200);
    let unknown = "unknown@example.com";
    for (id, path, body, status) in [
        (
            "inactive",
            "/user/auth",
            credentials("ada@example.com", PASSWORD),
            403,
        ),
        ("unknown", "/user/auth", credentials(unknown, PASSWORD), 401),
        (
            "unknown-forgot",
            "/user/forgot-password",
            json!({"email": unknown}),
            200,
        ),
    ] {
        let request = traced(app.http.post(path).json(&body), id);
        let _ = request.send().await.expect(status);
        let people = [(&admin, "[admin]"), (&ada, "[ada]")];
        let entries = entries(&app, &format!("?filter=requestId:{id}"), &people).await;
        assert_json_snapshot!(id, entries);
    }
    let rows = app.database.rows_that_hold("users", unknown);
    assert_eq!(rows, Vec::<String>::new());
}

#[tokio::test]
async fn requests_that_change_nothing_have_no_entry() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let path = format!("/users/{}", ada.id);
    for _ in 0..5 {
        let _ = app.sign_in("ada@example.com", "wrong").await;
    }
    hold_pauses(&app);
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
    let _ = app.get(&admin, &path).await.expect(200);
    assert_eq!(rows(&app.http, &admin.token, "").await.len(), before);
    let _ = app.delete(&admin, &path).await.expect(200);
    let _ = app.delete(&admin, &path).await.expect(200);
    let rows = rows(&app.http, &admin.token, "").await;
    assert_eq!(
        rows.len(),
        before + 1,
        "a second request is not a second deletion"
    );
}

#[actix_web::test]
async fn a_deletion_replaces_ids_by_pseudonyms_and_removes_addresses() {
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
    let rows = eventually("the user to be deleted", async || {
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
    let administrators = Some(FROM);
    assert_eq!(addresses, [None, None, None, administrators, None]);
    assert_eq!(
        rows[4]["requestId"], "delete",
        "the worker's entries have the id of the request that caused them"
    );
    assert_eq!(rows[4]["actorKind"], "service");
    assert_eq!(rows[1]["actor"], rows[1]["subject"]);
    let left = system.fixture.database.rows_that_hold("users", "lovelace");
    assert_eq!(left, Vec::<String>::new());
    system.stop().await;
}

#[actix_web::test]
async fn a_failed_deletion_has_one_entry() {
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
    assert!(worker.stop(Duration::from_secs(20)).await);
}

/// The pseudonym of a deleted user in the audit log.
pub(crate) fn pseudonym(user: &str) -> String {
    let hash = hex::encode(Sha256::digest(hex::decode(user).unwrap()));
    hash.chars().take(24).collect()
}

#[tokio::test]
async fn keys_and_sessions_have_entries() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let keys = format!("/users/{}/keys", ada.id);
    let key = app.post(&admin, &keys, &json!({"name": "a"})).await;
    let key = key.expect(200).text_of("id");
    let end = app.delete(&ada, &format!("/user/keys/{key}")).await;
    let _ = end.expect(200);
    let browser = Browser::signed_in(&app, "ada@example.com").await;
    let _ = browser.sign_out(&app).await.expect(200);
    let query = format!("?filter=subject:{}&sort=at:1", ada.id);
    let found = rows(&app.http, &admin.token, &query).await;
    let found = found
        .iter()
        .map(|row| (row["action"].as_str().unwrap(), &row["actor"]));
    let found: Vec<_> = found.collect();
    for (action, actor) in [
        ("key-created", &admin),
        ("key-ended", &ada),
        ("session-started", &ada),
        ("session-ended", &ada),
    ] {
        assert!(
            found.contains(&(action, &json!(actor.id))),
            "{action}: {found:?}"
        );
    }
}
