//! API keys.

#![expect(
    clippy::too_many_lines,
    reason = "tests and tables of cases may be longer than functions"
)]

use auth::ApiKey;
use diesel::connection::SimpleConnection as _;
use local_stack::client;
use serde_json::{Value, json};
use testkit::{Http, Reply, eventually};
use values::CredentialId;

use crate::audit::rows;
use crate::codes_upgrade;
use crate::fixture::{Fixture, PASSWORD, Person};
use crate::sessions::{claims_of, waiting};
use crate::sign_in::hold_pauses;

const ADA: &str = "ada@example.com";

/// A key that was made: its identifier and its text.
pub(crate) struct Key {
    id: String,
    text: String,
}

impl Key {
    pub(crate) fn of(reply: Reply) -> Self {
        let reply = reply.expect(200);
        Self {
            id: reply.text_of("id"),
            text: reply.text_of("key"),
        }
    }

    /// One of the user's own.
    async fn own(app: &Fixture, person: &Person, body: &Value) -> Self {
        Self::of(app.post(person, "/user/keys", body).await)
    }
}

async fn exchange(http: &Http, key: &str) -> Reply {
    exchange_from(http, "203.0.113.7", key).await
}

async fn exchange_from(http: &Http, network: &str, key: &str) -> Reply {
    let body = json!({"key": key});
    http.post("/internal/keys/exchange")
        .header("X-Forwarded-For", network)
        .json(&body)
        .send()
        .await
}

/// The token that a key is exchanged for.
pub(crate) async fn token_of(app: &Fixture, key: &Key) -> String {
    let exchanged = exchange(&app.http, &key.text).await;
    exchanged.expect(200).text_of("token")
}

pub(crate) async fn assert_key(app: &Fixture, key: &Key, is_valid: bool) {
    let reply = exchange(&app.http, &key.text).await;
    if is_valid {
        let _ = reply.expect(200);
    } else {
        reply.expect_problem(401, "invalid-key");
    }
}

/// A request with the token of a key.
async fn call(app: &Fixture, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let request = app.http.request(method.parse().unwrap(), path);
    request.bearer(token).json(body).send().await
}

#[tokio::test]
async fn a_key_is_told_once_and_listed_without_its_text() {
    let app = Fixture::start().await;
    let (ada, bob) = (app.sign_up(ADA).await, app.sign_up("bob@example.com").await);
    let body = json!({"name": " Invoices in n8n ", "expires": "2099-01-31T10:30:00+01:00"});
    let made = app.post(&ada, "/user/keys", &body).await.expect(200);
    let expected = [
        "created", "expires", "id", "key", "lastUsed", "name", "scopes",
    ];
    assert_eq!(made.fields(), expected);
    assert_eq!(made.text_of("name"), "Invoices in n8n");
    assert_eq!(made.json["scopes"], json!(["tasks:read", "tasks:write"]));
    assert_eq!(made.text_of("expires"), "2099-01-31T09:30:00.000Z");
    assert_eq!(made.json["lastUsed"], json!(null));
    let (id, key) = (made.text_of("id"), made.text_of("key"));
    assert!(
        key.len() == 64 && key.starts_with(&format!("csk_{id}")),
        "{key}"
    );

    let endless = Key::own(&app, &ada, &json!({"name": "b", "scopes": ["users:read"]})).await;
    let listed = app.get(&ada, "/user/keys").await.expect(200);
    assert!(!listed.text.contains("csk_") && !listed.text.contains("\"key\""));
    let ids: Vec<_> = listed
        .json
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["id"])
        .collect();
    assert_eq!(ids, [&json!(endless.id), &json!(id)]);
    assert_eq!(listed.json[0]["expires"], json!(null));
    assert_eq!(app.get(&bob, "/user/keys").await.json, json!([]));
    let path = format!("/user/keys/{id}");
    app.delete(&bob, &path)
        .await
        .expect_problem(404, "not-found");
    assert_eq!(app.delete(&ada, &path).await.expect(200).json, json!({}));
    app.delete(&ada, &path)
        .await
        .expect_problem(404, "not-found");
    exchange(&app.http, &key)
        .await
        .expect_problem(401, "invalid-key");
}

#[tokio::test]
async fn every_invalid_field_of_a_key_is_named() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    for (body, fields) in [
        (json!({}), &["name"][..]),
        (
            json!({"name": "\u{200b}", "scopes": [], "expires": "soon"}),
            &["name", "scopes", "expires"],
        ),
        (json!({"name": "two\nlines"}), &["name"]),
        (json!({"name": "a".repeat(101)}), &["name"]),
        (json!({"name": "a", "scopes": "tasks:read"}), &["scopes"]),
        (
            json!({"name": "a", "scopes": ["tasks:read", "tasks:all"]}),
            &["scopes"],
        ),
        (json!({"name": "a", "scopes": ["admin"]}), &["scopes"]),
        (
            json!({"name": "a", "expires": "2020-01-01T00:00:00Z"}),
            &["expires"],
        ),
        (json!({"name": "a", "expires": 1}), &["expires"]),
    ] {
        let reply = app.post(&ada, "/user/keys", &body).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), fields, "{body}");
    }
    assert_eq!(app.get(&ada, "/user/keys").await.json, json!([]));
}

#[tokio::test]
async fn a_key_is_exchanged_for_a_token_of_minutes_that_says_what_it_may_do() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let key = Key::own(&app, &ada, &json!({"name": "a", "scopes": ["users:read"]})).await;
    let exchanged = exchange(&app.http, &key.text).await.expect(200);
    assert_eq!(exchanged.json["seconds"], json!(300));
    let token = exchanged.text_of("token");
    let claims = claims_of(&token);
    assert_eq!(claims["keyScopes"], json!(["users:read"]));
    assert_eq!(claims["credential"], json!(key.id));
    assert_eq!(
        claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
        300
    );
    let me = call(&app, &token, "GET", "/user", &json!(null))
        .await
        .expect(200);
    assert_eq!(me.text_of("id"), ada.id);
    let used = app.get(&ada, "/user/keys").await.json[0]["lastUsed"].clone();
    assert!(used.as_str().unwrap().ends_with(":00.000Z"), "{used}");
    let writing = call(
        &app,
        &token,
        "POST",
        "/user",
        &json!({"email": "c@example.com"}),
    )
    .await;
    writing.expect_problem(403, "insufficient-scope");
    assert!(writing.text.contains("users:write"), "{}", writing.text);
}

#[tokio::test]
async fn no_token_of_a_key_outlives_the_key() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let end = (chrono::Utc::now() + chrono::Duration::seconds(60)).to_rfc3339();
    let key = Key::own(&app, &ada, &json!({"name": "a", "expires": end})).await;
    let exchanged = exchange(&app.http, &key.text).await.expect(200);
    assert!(exchanged.json["seconds"].as_u64().unwrap() <= 60);
    let claims = claims_of(&exchanged.text_of("token"));
    assert!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap() <= 60);
}

#[tokio::test]
async fn keys_sessions_passwords_and_addresses_are_closed_to_keys() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let scopes = [
        "tasks:read",
        "tasks:write",
        "tasks:decide",
        "users:read",
        "users:write",
        "admin",
    ];
    let key = Key::own(&app, &admin, &json!({"name": "a", "scopes": scopes})).await;
    let token = token_of(&app, &key).await;
    let ada = app.sign_up(ADA).await;
    let user = format!("/users/{}", ada.id);
    for (method, path) in [
        ("GET", "/user/keys".to_owned()),
        ("POST", "/user/keys".to_owned()),
        ("DELETE", format!("/user/keys/{}", key.id)),
        ("GET", "/users/keys".to_owned()),
        ("POST", "/users/keys/confirm".to_owned()),
        ("GET", format!("{user}/keys")),
        ("POST", format!("{user}/keys")),
        ("DELETE", format!("{user}/keys/{}", key.id)),
        ("POST", format!("{user}/keys/{}/confirm", key.id)),
        ("GET", "/user/sessions".to_owned()),
        ("DELETE", format!("/user/sessions/{}", key.id)),
        ("POST", format!("{user}/revoke-tokens")),
        ("POST", "/user/change-password".to_owned()),
        ("POST", "/user/reset-password".to_owned()),
        ("POST", "/user/verify-email/resend".to_owned()),
    ] {
        let reply = call(&app, &token, method, &path, &json!({})).await;
        reply.expect_problem(403, "key-not-accepted");
    }
    for change in [
        json!({"password": "another one"}),
        json!({"email": "eve@example.com"}),
        json!({"username": "eve@example.com"}),
        json!({"scope": ["user", "admin"]}),
    ] {
        let reply = call(&app, &token, "PUT", &user, &change).await;
        reply.expect_problem(403, "key-not-accepted");
    }
    let whole = app.get(&admin, &user).await.expect(200).json;
    let _ = call(&app, &token, "PUT", &user, &whole).await.expect(200);
    let plan = call(&app, &token, "PUT", &user, &json!({"plan": "gold"})).await;
    assert_eq!(plan.expect(200).text_of("plan"), "gold");
    let entry = rows(&app.http, &admin.token, "?filter=action:user-updated").await[0].clone();
    assert_eq!(entry["detail"], json!({"fields": ["plan"], "key": key.id}));
    assert_eq!(
        (&entry["actor"], &entry["actorKind"]),
        (&json!(admin.id), &json!("admin"))
    );
}

#[tokio::test]
async fn a_key_creates_users_but_signs_none_in_and_makes_no_administrators() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let key = json!({"name": "a", "scopes": ["users:write", "admin"]});
    let token = token_of(&app, &Key::own(&app, &admin, &key).await).await;
    let new = json!({"email": ADA, "password": PASSWORD});
    let created = call(&app, &token, "POST", "/user", &new).await.expect(200);
    assert_eq!(created.fields(), ["user"]);
    let mut admin_too = json!({"email": "eve@example.com", "password": PASSWORD});
    admin_too["scope"] = json!(["user", "admin"]);
    let refused = call(&app, &token, "POST", "/user", &admin_too).await;
    refused.expect_problem(403, "key-not-accepted");
    let _ = app.sign_in(ADA, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn open_sign_up_takes_no_revoked_token_of_a_key_for_a_stranger() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let key = json!({"name": "a", "scopes": ["users:write", "admin"]});
    let key = Key::own(&app, &admin, &key).await;
    let token = token_of(&app, &key).await;
    let path = format!("/user/keys/{}", key.id);
    let _ = app.delete(&admin, &path).await.expect(200);
    let new = json!({"email": ADA, "password": PASSWORD});
    let refused = call(&app, &token, "POST", "/user", &new).await;
    refused.expect_problem(401, "token-revoked");
}

#[tokio::test]
async fn a_key_activates_users_but_no_administrators() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    let other = app.make_admin("eve@example.com").await;
    let key = json!({"name": "a", "scopes": ["users:write", "admin"]});
    let token = token_of(&app, &Key::own(&app, &admin, &key).await).await;
    for (person, status) in [(&ada, 200), (&other, 403)] {
        let inactive = json!({"isActive": false});
        let _ = app.update(&admin, &person.id, &inactive).await.expect(200);
        let (path, active) = (format!("/users/{}", person.id), json!({"isActive": true}));
        let reply = call(&app, &token, "PUT", &path, &active).await;
        assert_eq!(reply.status, status, "{}", reply.text);
    }
    let refused = app.sign_in("eve@example.com", PASSWORD).await;
    assert_eq!(refused.status, 403);
    let as_user = json!({"isActive": true, "scope": ["user"]});
    let path = format!("/users/{}", other.id);
    let activated = call(&app, &token, "PUT", &path, &as_user).await;
    let _ = activated.expect(200);
}

#[tokio::test]
async fn an_administrators_key_for_a_person_decides_nothing() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    let deciding = json!({"name": "a", "scopes": ["tasks:read", "tasks:decide"]});
    let path = format!("/users/{}/keys", ada.id);
    let refused = app.post(&admin, &path, &deciding).await;
    refused.expect_problem(400, "validation-failed");
    assert_eq!(refused.bad_fields(), ["scopes"]);
    let key = Key::of(app.post(&admin, &path, &json!({"name": "a"})).await);
    assert_key(&app, &key, true).await;
    assert_eq!(
        app.get(&ada, "/user/keys").await.json[0]["id"],
        json!(key.id)
    );
    let own = Key::own(&app, &ada, &deciding).await;
    let own_of_admin = format!("/users/{}/keys", admin.id);
    let _ = app.post(&admin, &own_of_admin, &deciding).await.expect(200);
    let listed = app
        .get(&admin, "/users/keys?limit=2")
        .await
        .expect(200)
        .json;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[1]["id"], json!(own.id));
    assert_eq!(listed[1]["username"], json!(ADA));
    let path = format!("{path}/{}", own.id);
    app.delete(&ada, &path)
        .await
        .expect_problem(403, "insufficient-scope");
    let _ = app.delete(&admin, &path).await.expect(200);
    assert_key(&app, &own, false).await;
    let unknown = app
        .get(&admin, "/users/000000000000000000000000/keys")
        .await;
    unknown.expect_problem(404, "not-found");
}

#[tokio::test]
async fn a_page_of_all_keys_says_whether_there_are_more() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    for name in ["one", "two", "three"] {
        let _ = Key::own(&app, &ada, &json!({"name": name})).await;
    }
    let page = app.get(&admin, "/users/keys?confirmed=true&limit=2").await;
    assert_eq!(page.json.as_array().unwrap().len(), 2);
    let next = page.header("link").unwrap();
    let next = next.strip_suffix(">; rel=\"next\"").unwrap();
    let last = app.get(&admin, &next[1..]).await.expect(200);
    assert_eq!(last.json.as_array().unwrap().len(), 1);
    assert_eq!(last.json[0]["name"], json!("one"));
    assert_eq!(last.header("link"), None);
}

fn store_code(app: &Fixture, person: &Person, code: &str) {
    use diesel::RunQueryDsl as _;
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, email_key, expires) \
         SELECT sha256('{code}'), id, 'forgot-password', code_generation, email_key, now() + interval '1 hour' \
         FROM users.users WHERE encode(id, 'hex') = '{}'",
        person.id
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn keys_end_with_what_takes_the_account_back_but_not_with_a_password_of_its_owner() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    for (number, (ending, change, ends)) in [
        ("isActive", json!({"isActive": false}), true),
        ("password", json!({"password": "another one"}), true),
        ("email", json!({"email": "grace@example.com"}), false),
        ("scope", json!({"scope": ["user", "extra"]}), false),
        ("revoke-tokens", json!(null), true),
        ("reset", json!(null), true),
        ("code", json!(null), true),
        ("delete", json!(null), true),
        ("change-password", json!(null), false),
    ]
    .into_iter()
    .enumerate()
    {
        let email = format!("ada{number}@example.com");
        let ada = app.sign_up(&email).await;
        let key = Key::own(&app, &ada, &json!({"name": "a", "scopes": ["users:read"]})).await;
        let token = token_of(&app, &key).await;
        let path = format!("/users/{}", ada.id);
        let _ = match ending {
            "revoke-tokens" => {
                app.post(&admin, &format!("{path}/revoke-tokens"), &change)
                    .await
            }
            "reset" => {
                let body = json!({"email": email, "password": "another one"});
                app.post(&admin, "/user/reset-password", &body).await
            }
            "code" => {
                store_code(&app, &ada, &email);
                let body = json!({"code": email, "password": "another one"});
                let reset = app.http.post("/user/forgot-password/reset").json(&body);
                reset.send().await
            }
            "delete" => app.delete(&admin, &path).await,
            "change-password" => {
                let body = json!({"oldPassword": PASSWORD, "newPassword": "another one"});
                app.post(&ada, "/user/change-password", &body).await
            }
            _ => app.update(&admin, &ada.id, &change).await,
        }
        .expect(200);
        // From a network of its own, because several failures in a row make one wait.
        let network = format!("198.51.100.{number}");
        let exchanged = exchange_from(&app.http, &network, &key.text).await;
        assert_eq!(exchanged.status, if ends { 401 } else { 200 }, "{ending}");
        let again = call(&app, &token, "GET", "/user", &json!(null)).await;
        again.expect_problem(401, "token-revoked");
    }
}

#[tokio::test]
async fn an_administrator_whose_account_ends_meanwhile_makes_no_key_for_another_user() {
    let app = Fixture::start().await;
    let (eve, ada) = (
        app.make_admin("eve@example.com").await,
        app.sign_up(ADA).await,
    );
    let mut deletion = app.admin_connection();
    let deactivate = format!(
        "BEGIN; UPDATE users.users SET is_active = false, epoch = epoch + 1 WHERE encode(id, 'hex') = '{}'",
        eve.id
    );
    deletion.batch_execute(&deactivate).unwrap();
    let commit = async {
        eventually("the key to wait for the deletion", async || {
            (waiting(&app) > 0).then_some(())
        })
        .await;
        deletion.batch_execute("COMMIT").unwrap();
    };
    let (path, body) = (format!("/users/{}/keys", ada.id), json!({"name": "a"}));
    let (made, ()) = tokio::join!(app.post(&eve, &path, &body), commit);
    made.expect_problem(401, "token-revoked");
    let keys = app.get(&ada, "/user/keys").await.expect(200);
    assert_eq!(keys.json, json!([]));
}

#[tokio::test]
async fn a_user_has_as_many_keys_as_the_setting_says() {
    let app = Fixture::start_with(&[("KEYS_PER_USER", "2")]).await;
    let ada = app.sign_up(ADA).await;
    let body = json!({"name": "a"});
    let first = Key::own(&app, &ada, &body).await;
    let _ = Key::own(&app, &ada, &body).await;
    let refused = app.post(&ada, "/user/keys", &body).await;
    refused.expect_problem(409, "too-many-keys");
    let _ = app
        .delete(&ada, &format!("/user/keys/{}", first.id))
        .await
        .expect(200);
    let _ = Key::own(&app, &ada, &body).await;
}

#[tokio::test]
async fn texts_that_are_no_keys_make_their_network_wait_but_no_key() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    let key = Key::own(&app, &ada, &json!({"name": "a"})).await;
    let ended = Key::own(&app, &ada, &json!({"name": "b"})).await;
    let _ = app
        .delete(&ada, &format!("/user/keys/{}", ended.id))
        .await
        .expect(200);
    let other = if key.text.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{other}", &key.text[..63]);
    exchange(&app.http, &wrong)
        .await
        .expect_problem(401, "invalid-key");
    exchange(&app.http, "csk_x")
        .await
        .expect_problem(401, "invalid-key");
    for _ in 0..6 {
        // Its owner's program guesses nothing.
        assert_key(&app, &ended, false).await;
    }
    let guess = || ApiKey::generate(CredentialId::generate());
    for _ in 0..5 {
        let refused = exchange(&app.http, guess().expose()).await;
        refused.expect_problem(401, "invalid-key");
    }
    hold_pauses(&app);
    let waiting = exchange(&app.http, guess().expose()).await;
    waiting.expect_problem(429, "too-many-attempts");
    assert!(waiting.header("retry-after").is_some());
    assert_key(&app, &key, true).await;
    assert_key(&app, &ended, false).await;
    let refused = rows(&app.http, &admin.token, "?filter=action:sign-in-refused").await;
    assert_eq!(refused.len(), 12);
    assert_eq!(refused[0]["detail"], json!({"reason": "invalid-key"}));
}

#[tokio::test]
async fn after_a_restore_keys_are_off_until_an_administrator_confirms_them() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let mut keys = Vec::new();
    for name in ["one", "two", "three"] {
        keys.push(Key::own(&app, &ada, &json!({"name": name})).await);
    }
    let dump = client::dump(&app.database.admin_url()).unwrap();
    client::restore(
        &app.database.admin_url(),
        &dump,
        &["--clean", "--if-exists"],
    )
    .unwrap();
    let admin = eventually(
        "an administrator who signed in after the restore",
        async || {
            let reply = app.sign_in(crate::fixture::ADMIN, PASSWORD).await;
            let person = (reply.status == 200).then(|| Person::of(&reply))?;
            (app.get(&person, "/user").await.status == 200).then_some(person)
        },
    )
    .await;
    for key in &keys {
        assert_key(&app, key, false).await;
    }
    // The programs that go on with them guess nothing, and the gateway asks again soon.
    for _ in 0..6 {
        let off = exchange(&app.http, &keys[0].text).await;
        off.expect_problem(401, "invalid-key");
        assert_eq!(off.header("retry-after"), Some("5"));
    }
    let unknown = ApiKey::generate(CredentialId::generate());
    let refused = exchange(&app.http, unknown.expose()).await;
    refused.expect_problem(401, "invalid-key");
    assert_eq!(refused.header("retry-after"), None);
    let path = format!("/users/{}/keys", ada.id);
    let listed = app.get(&admin, &path).await.expect(200).json;
    assert_eq!(listed[0]["confirmed"], json!(false));
    let waiting = app
        .get(&admin, "/users/keys?confirmed=false")
        .await
        .expect(200)
        .json;
    assert_eq!(waiting.as_array().unwrap().len(), 3);
    let [one, ended, _] = &keys[..] else { panic!() };
    let confirm = format!("{path}/{}/confirm", one.id);
    for _ in 0..2 {
        let _ = app.post(&admin, &confirm, &json!(null)).await.expect(200);
    }
    let _ = app
        .delete(&admin, &format!("{path}/{}", ended.id))
        .await
        .expect(200);
    let all = app.post(&admin, "/users/keys/confirm", &json!(null)).await;
    assert_eq!(all.expect(200).json, json!({"confirmed": 1}));
    for (key, is_valid) in keys.iter().zip([true, false, true]) {
        let status = exchange(&app.http, &key.text).await.status;
        assert_eq!(status == 200, is_valid, "{}", key.id);
    }
    let entries = rows(&app.http, &admin.token, "?filter=action:key-confirmed").await;
    assert_eq!(entries.len(), 2);
}

#[tokio::test]
async fn keys_that_two_calls_confirm_at_once_are_counted_once() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    for name in ["one", "two", "three"] {
        Key::own(&app, &ada, &json!({"name": name})).await;
    }
    let mut other = app.admin_connection();
    let restore = "UPDATE users.credentials SET incarnation = 'earlier'";
    other.batch_execute(restore).unwrap();
    let hold = "BEGIN; SELECT FROM users.credentials FOR UPDATE";
    other.batch_execute(hold).unwrap();
    let confirm = || app.post(&admin, "/users/keys/confirm", &Value::Null);
    let release = async {
        eventually("both to wait", async || (waiting(&app) == 2).then_some(())).await;
        other.batch_execute("COMMIT").unwrap();
    };
    let (first, second, ()) = tokio::join!(confirm(), confirm(), release);
    let of = |reply: Reply| reply.expect(200).json["confirmed"].as_u64().unwrap();
    assert_eq!(of(first) + of(second), 3);
    let entries = rows(&app.http, &admin.token, "?filter=action:key-confirmed").await;
    assert_eq!(entries.len(), 3);
}

const MAIL: [(&str, &str); 2] = [
    ("SMTP_URL", "smtp://127.0.0.1:1"),
    ("MAIL_FROM", "countersign@example.com"),
];

/// The mails of a kind about keys that a user has been or will be sent.
fn notices(app: &Fixture, kind: &str, person: &Person) -> String {
    let count = format!(
        "SELECT count(*)::text AS line FROM users.notifications WHERE kind = '{kind}' AND encode(user_id, 'hex') = '{}'",
        person.id
    );
    testkit::lines(&mut app.admin_connection(), &count).remove(0)
}

fn confirm_address(app: &Fixture, person: &Person) {
    use diesel::RunQueryDsl as _;
    diesel::sql_query(format!(
        "UPDATE users.users SET email_confirmed = now() WHERE encode(id, 'hex') = '{}'",
        person.id
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn mails_about_keys_that_expire_are_few_and_go_to_confirmed_addresses_only() {
    let required = [("EMAIL_VERIFICATION", "required")];
    let app = Fixture::start_with(&[&MAIL[..], &required].concat()).await;
    let (ada, eve) = (app.sign_up(ADA).await, app.sign_up("eve@example.com").await);
    let admin = app.admin().await;
    confirm_address(&app, &ada);
    let end = |hours| (chrono::Utc::now() + chrono::Duration::hours(hours)).to_rfc3339();
    for (person, hours, keys) in [(&ada, 72, 12), (&eve, 72, 1), (&eve, 47, 1)] {
        let path = format!("/users/{}/keys", person.id);
        for _ in 0..keys {
            let body = json!({"name": "a", "expires": end(hours)});
            let _ = Key::of(app.post(&admin, &path, &body).await);
        }
    }
    let mut connection = app.admin_connection();
    let due = "UPDATE users.credentials SET notice_due = now() WHERE notice_due IS NOT NULL \
        RETURNING name AS line";
    assert_eq!(testkit::lines(&mut connection, due).len(), 13);
    let postponed = "SELECT count(*)::text AS line FROM users.credentials \
        WHERE notice_due > now() + interval '23 hours'";
    eventually("that no notice is due", async || {
        let postponed = testkit::lines(&mut app.admin_connection(), postponed);
        (postponed == ["3"]).then_some(())
    })
    .await;
    assert_eq!(notices(&app, "key-expires", &ada), "10");
    assert_eq!(notices(&app, "key-expires", &eve), "0");
}

#[tokio::test]
async fn a_person_whose_address_is_not_confirmed_is_not_mailed_about_a_key() {
    let required = [("EMAIL_VERIFICATION", "required")];
    let app = Fixture::start_with(&[&MAIL[..], &required].concat()).await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    for expected in ["0", "1"] {
        let path = format!("/users/{}/keys", ada.id);
        let _ = Key::of(app.post(&admin, &path, &json!({"name": "a"})).await);
        assert_eq!(notices(&app, "key-created", &ada), expected);
        confirm_address(&app, &ada);
    }
}

#[tokio::test]
async fn a_person_is_mailed_about_each_own_key_and_makes_at_most_ten_a_day() {
    let app = Fixture::start_with(&MAIL).await;
    let (admin, ada) = (app.admin().await, app.sign_up(ADA).await);
    let body = json!({"name": "a"});
    for made in 1..=10 {
        let _ = Key::own(&app, &ada, &body).await;
        assert_eq!(notices(&app, "key-created", &ada), made.to_string());
    }
    let refused = app.post(&ada, "/user/keys", &body).await;
    refused.expect_problem(429, "rate-limited");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((86_000..=86_400).contains(&wait), "{wait}");
    let of_ada = format!("/users/{}/keys", ada.id);
    let _ = Key::of(app.post(&admin, &of_ada, &body).await);
    assert_eq!(notices(&app, "key-created", &ada), "10");
    let keys = app.get(&ada, "/user/keys").await.json;
    assert_eq!(keys.as_array().unwrap().len(), 11);
}

#[tokio::test]
async fn keys_that_mail_to_unconfirmed_addresses_are_limited_for_each_client() {
    let limit = [("FORGOT_PASSWORD_PER_CLIENT", "2")];
    let app = Fixture::start_with(&[&MAIL[..], &limit].concat()).await;
    let (ada, eve) = (app.sign_up(ADA).await, app.sign_up("eve@example.com").await);
    for person in [&ada, &eve] {
        let _ = Key::own(&app, person, &json!({"name": "a"})).await;
    }
    let body = json!({"name": "a"});
    let refused = app.post(&eve, "/user/keys", &body).await;
    refused.expect_problem(429, "rate-limited");
    assert!(refused.header("retry-after").is_some());
    confirm_address(&app, &ada);
    let _ = Key::own(&app, &ada, &body).await;
    assert_eq!(notices(&app, "key-created", &eve), "1");
}

#[tokio::test]
async fn an_administrator_who_was_deactivated_is_not_mailed_about_a_key_that_expires() {
    let app = Fixture::start_with(&MAIL).await;
    let (admin, maker) = (app.admin().await, app.make_admin("eve@example.com").await);
    let flows = json!({"email": "flows@example.com", "service": true});
    let flows = app.post(&admin, "/user", &flows).await.expect(200);
    let path = format!("/users/{}/keys", flows.json["user"]["id"].as_str().unwrap());
    let end = chrono::Utc::now() + chrono::Duration::hours(72);
    let body = json!({"name": "a", "expires": end.to_rfc3339()});
    let _ = Key::of(app.post(&maker, &path, &body).await);
    let inactive = json!({"isActive": false});
    let _ = app.update(&admin, &maker.id, &inactive).await.expect(200);
    let due = "UPDATE users.credentials SET notice_due = now() WHERE notice_due IS NOT NULL \
        RETURNING name AS line";
    assert_eq!(testkit::lines(&mut app.admin_connection(), due), ["a"]);
    let pending =
        "SELECT (notice_due > now())::text AS line FROM users.credentials WHERE name = 'a'";
    eventually("that the notice is not due", async || {
        let pending = testkit::lines(&mut app.admin_connection(), pending);
        (pending == ["true"]).then_some(())
    })
    .await;
    assert_eq!(notices(&app, "key-expires", &maker), "0");
}

#[tokio::test]
async fn a_mail_about_a_key_does_not_wait_for_a_change_of_its_recipient() {
    let app = Fixture::start_with(&MAIL).await;
    let (admin, maker) = (app.admin().await, app.make_admin("eve@example.com").await);
    let (ada, bob) = (app.sign_up(ADA).await, app.sign_up("bob@example.com").await);
    let flows = json!({"email": "flows@example.com", "service": true});
    let flows = app.post(&admin, "/user", &flows).await.expect(200);
    let path = format!("/users/{}/keys", flows.json["user"]["id"].as_str().unwrap());
    let end = chrono::Utc::now() + chrono::Duration::hours(72);
    let body = json!({"name": "a", "expires": end.to_rfc3339()});
    let _ = Key::of(app.post(&maker, &path, &body).await);
    for person in [&ada, &bob] {
        let _ = Key::own(&app, person, &body).await;
    }
    let (mut changes, mut connection) = (app.admin_connection(), app.admin_connection());
    let change = format!(
        "BEGIN; SELECT FROM users.users WHERE encode(id, 'hex') IN ('{}', '{}') FOR UPDATE",
        ada.id, maker.id
    );
    changes.batch_execute(&change).unwrap();
    let due = "UPDATE users.credentials SET notice_due = now() WHERE notice_due IS NOT NULL";
    connection.batch_execute(due).unwrap();
    let is_mailed =
        async |person: &Person| (notices(&app, "key-expires", person) == "1").then_some(());
    eventually("the mail to bob", async || is_mailed(&bob).await).await;
    assert_eq!(notices(&app, "key-expires", &ada), "0");
    changes.batch_execute("ROLLBACK").unwrap();
    for person in [&ada, &maker] {
        eventually("the other mails", async || is_mailed(person).await).await;
    }
}

#[tokio::test]
async fn a_password_that_the_version_before_sets_ends_the_keys_of_a_person() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let key = Key::own(&app, &ada, &json!({"name": "a"})).await;
    codes_upgrade::update(&app, &ada, ", plan = 'b', mtime = now()");
    let _ = exchange(&app.http, &key.text).await.expect(200);
    let columns = ", password_hash = 'x', epoch = epoch + 1, mtime = now()";
    codes_upgrade::update(&app, &ada, columns);
    let refused = exchange(&app.http, &key.text).await;
    refused.expect_problem(401, "invalid-key");
}
