//! `POST /user/verify-email` and `/user/verify-email/resend`, and what depends on them.

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{Bool, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Reply, lines};

use crate::fixture::{Fixture, PASSWORD, Person};

pub(crate) const REQUIRED: [(&str, &str); 2] = [
    ("EMAIL_VERIFICATION", "required"),
    ("FORGOT_PASSWORD_LOG", "true"),
];

async fn verify(app: &Fixture, code: &str) -> Reply {
    verify_with(app, &json!({"code": code, "password": PASSWORD})).await
}

async fn verify_with(app: &Fixture, body: &Value) -> Reply {
    let request = app.http.post("/user/verify-email");
    request.json(body).send().await
}

async fn verify_as(app: &Fixture, person: &Person, code: &str) -> Reply {
    let body = json!({"code": code});
    app.post(person, "/user/verify-email", &body).await
}

fn is_verified(token: &str) -> bool {
    let claims = claims(token);
    claims
        .get("emailVerified")
        .and_then(Value::as_bool)
        .unwrap()
}

/// The claims of a token, without checking its signature.
pub(crate) fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload)
        .unwrap();
    serde_json::from_slice(&payload).unwrap()
}

fn pending(app: &Fixture) -> usize {
    let rows = app.database.rows_that_hold("users", "verify-email");
    rows.iter()
        .filter(|row| row.starts_with("notifications: "))
        .count()
}

/// Stores a code for the address that a user has, as the notification worker does.
pub(crate) fn store_code(app: &Fixture, person: &Person, code: &str) {
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, email_key, expires) \
         SELECT sha256('{code}'), id, 'verify-email', code_generation, email_key, now() + interval '1 hour' \
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
    // The code of a mail that is sent now would be invalid.
    assert_eq!(pending(&app), 0);
    assert!(is_verified(&sign_in(&app, "ada@example.com").await.token));
    verify(&app, "first")
        .await
        .expect_problem(400, "invalid-code");
}

#[tokio::test]
async fn the_code_alone_confirms_nothing() {
    let app = Fixture::start_with(&REQUIRED).await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "code");
    let reply = verify_with(&app, &json!({"code": "code"})).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["password"]);
    for way in ["newPassword", "Authorization"] {
        assert!(reply.text.contains(way), "{}", reply.text);
    }
    let reply = verify_with(&app, &json!({})).await;
    assert_eq!(reply.bad_fields(), ["code", "password"]);
    let both = json!({"code": "code", "password": PASSWORD, "newPassword": "battery staple"});
    assert_eq!(verify_with(&app, &both).await.bad_fields(), ["newPassword"]);
    assert!(!is_verified(&sign_in(&app, "ada@example.com").await.token));
    let _ = verify_as(&app, &ada, "code").await.expect(200);
    assert!(is_verified(&sign_in(&app, "ada@example.com").await.token));
}

#[tokio::test]
async fn a_token_confirms_the_address_of_its_own_account_only() {
    let app = Fixture::start_with(&REQUIRED).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let eve = app.sign_up("eve@example.com").await;
    store_code(&app, &ada, "code");
    for other in [&eve, &admin] {
        let reply = verify_as(&app, other, "code").await;
        reply.expect_problem(403, "code-of-another-account");
    }
    let junk = app.http.post("/user/verify-email").bearer("junk");
    let junk = junk.json(&json!({"code": "code"})).send().await;
    junk.expect_problem(401, "invalid-token");
    let path = format!("/users/{}/revoke-tokens", ada.id);
    let _ = app.post(&admin, &path, &json!({})).await.expect(200);
    let reply = verify_as(&app, &ada, "code").await;
    reply.expect_problem(401, "token-revoked");
    // A token is not read if there is a password.
    let request = app.http.post("/user/verify-email").bearer(&ada.token);
    let request = request.json(&json!({"code": "code", "password": PASSWORD}));
    let _ = request.send().await.expect(200);
    assert!(!is_verified(&sign_in(&app, "eve@example.com").await.token));
}

#[tokio::test]
async fn a_new_password_takes_the_account_from_the_stranger_who_made_it() {
    const NEW: &str = "battery staple";
    let app = Fixture::start_with(&REQUIRED).await;
    let stranger = app.sign_up("ada@example.com").await;
    let take = |code: &str, password: &str| json!({"code": code, "newPassword": password});
    // The new password is validated before the code.
    let reply = verify_with(&app, &take("junk", "1234")).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["newPassword"]);
    let reply = verify_with(&app, &take("junk", NEW)).await;
    reply.expect_problem(400, "invalid-code");
    // A mail that is sent after the stranger's own changes takes the account, too.
    let change = json!({"oldPassword": PASSWORD, "newPassword": "of the stranger"});
    let reply = app.post(&stranger, "/user/change-password", &change).await;
    let stranger = Person {
        token: reply.expect(200).text_of("token"),
        ..stranger
    };
    for code in ["first", "second"] {
        store_code(&app, &stranger, code);
    }
    let (first, second) = (take("first", NEW), take("second", NEW));
    let replies = join_all([&first, &first, &second].map(|body| verify_with(&app, body))).await;
    let winners = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(winners, 1, "{replies:?}");
    app.assert_token(&stranger, false).await;
    for old in [PASSWORD, "of the stranger"] {
        let reply = app.sign_in("ada@example.com", old).await;
        reply.expect_problem(401, "invalid-credentials");
    }
    let owner = Person::of(&app.sign_in("ada@example.com", NEW).await.expect(200));
    assert!(is_verified(&owner.token));
    for code in ["first", "second"] {
        let reply = verify_with(&app, &take(code, "another one")).await;
        reply.expect_problem(400, "invalid-code");
    }
}

#[tokio::test]
async fn a_code_sets_no_password_once_there_is_a_newer_one_but_still_confirms_the_address() {
    const NEW: &str = "battery staple";
    let app = Fixture::start_with(&REQUIRED).await;
    let admin = app.admin().await;
    for way in ["change-password", "reset-password", "update"] {
        let email = format!("{way}@example.com");
        let ada = app.sign_up(&email).await;
        store_code(&app, &ada, way);
        let changed = match way {
            "change-password" => {
                let body = json!({"oldPassword": PASSWORD, "newPassword": NEW});
                app.post(&ada, "/user/change-password", &body).await
            }
            "reset-password" => {
                let body = json!({"email": email, "password": NEW});
                app.post(&admin, "/user/reset-password", &body).await
            }
            _ => app.update(&admin, &ada.id, &json!({"password": NEW})).await,
        };
        let _ = changed.expect(200);
        let take = json!({"code": way, "newPassword": "another one"});
        let reply = verify_with(&app, &take).await;
        reply.expect_problem(400, "invalid-code");
        let ada = Person::of(&app.sign_in(&email, NEW).await.expect(200));
        let _ = resend(&app, &ada).await.expect(200);
        let body = json!({"code": way, "password": NEW});
        let _ = verify_with(&app, &body).await.expect(200);
    }
}

#[tokio::test]
async fn a_wrong_password_counts_like_a_failed_sign_in_and_keeps_the_code() {
    let app = Fixture::start_with(&REQUIRED).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    store_code(&app, &ada, "code");
    let wrong = json!({"code": "code", "password": "wrong"});
    for _ in 0..5 {
        let reply = verify_with(&app, &wrong).await;
        reply.expect_problem(400, "wrong-password");
    }
    let reply = verify(&app, "code").await;
    reply.expect_problem(429, "too-many-attempts");
    assert!(reply.header("retry-after").is_some());
    let reply = app.sign_in("ada@example.com", PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    let path = format!("/audit?filter=subject:{},action:sign-in-refused", ada.id);
    let entries = app.get(&admin, &path).await.expect(200).json;
    assert_eq!(entries.as_array().unwrap().len(), 5);
    assert_eq!(entries[0]["detail"], json!({"reason": "wrong-password"}));
    app.admin_connection()
        .batch_execute("UPDATE users.sign_in_failures SET blocked_until = now()")
        .unwrap();
    let _ = verify(&app, "code").await.expect(200);
    // The right password ends the back-off.
    let _ = sign_in(&app, "ada@example.com").await;
}

#[tokio::test]
async fn a_password_that_was_replaced_after_it_was_read_confirms_nothing() {
    let app = Fixture::start_with(&REQUIRED).await;
    for (number, (change, status)) in [
        ("epoch = epoch + 1", 200),
        ("password_hash = 'of another cost'", 200),
        ("epoch = epoch + 1, password_hash = 'of another one'", 400),
    ]
    .into_iter()
    .enumerate()
    {
        let email = format!("ada{number}@example.com");
        let ada = app.sign_up(&email).await;
        store_code(&app, &ada, &email);
        // The attempt is counted after the password was read.
        let meanwhile = format!(
            "CREATE OR REPLACE FUNCTION users.meanwhile() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                UPDATE users.users SET {change} WHERE encode(id, 'hex') = '{id}'; RETURN NULL; END $$;
            CREATE OR REPLACE TRIGGER meanwhile AFTER INSERT ON users.sign_in_failures
                FOR EACH ROW EXECUTE FUNCTION users.meanwhile()",
            id = ada.id
        );
        app.admin_connection().batch_execute(&meanwhile).unwrap();
        let reply = verify(&app, &email).await.expect(status);
        let code = reply.json["code"].as_str();
        assert_eq!(code, (status == 400).then_some("wrong-password"));
        let confirmed = format!(
            "SELECT 'yes' AS line FROM users.users WHERE email_confirmed IS NOT NULL AND email = '{email}'"
        );
        let confirmed = lines(&mut app.admin_connection(), &confirmed);
        assert_eq!(confirmed.is_empty(), status == 400, "{change}");
    }
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

async fn resend(app: &Fixture, person: &Person) -> Reply {
    let request = app.http.post("/user/verify-email/resend");
    request.bearer(&person.token).send().await
}

#[tokio::test]
async fn users_can_request_another_code_until_the_address_is_confirmed() {
    let app = Fixture::start_with(&REQUIRED).await;
    let ada = app.sign_up("ada@example.com").await;
    let reply = resend(&app, &ada).await.expect(200);
    assert_eq!(reply.json, json!({}));
    assert_eq!(pending(&app), 2);
    store_code(&app, &ada, "first");
    let _ = verify(&app, "first").await.expect(200);
    let reply = resend(&app, &ada).await;
    reply.expect_problem(409, "email-already-confirmed");
    assert_eq!(pending(&app), 0);
}

#[tokio::test]
async fn requests_for_another_code_are_limited_and_not_by_requests_of_others() {
    let limits = [("FORGOT_PASSWORD_PER_ACCOUNT", "2")];
    let app = Fixture::start_with(&[&REQUIRED[..], &limits].concat()).await;
    let ada = app.sign_up("ada@example.com").await;
    for _ in 0..2 {
        let forgot = app.http.post("/user/forgot-password");
        let forgot = forgot.json(&json!({"email": "ada@example.com"}));
        let _ = forgot.send().await.expect(200);
    }
    for _ in 0..2 {
        let _ = resend(&app, &ada).await.expect(200);
    }
    let reply = resend(&app, &ada).await;
    reply.expect_problem(429, "rate-limited");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(pending(&app), 3);
}

#[tokio::test]
async fn without_a_channel_no_code_can_be_requested() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let reply = resend(&app, &ada).await;
    reply.expect_problem(503, "verification-not-configured");
}

#[tokio::test]
async fn addresses_of_the_time_without_verification_are_unconfirmed_when_it_is_required() {
    let app = Fixture::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let (ada, _) = (
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    // Users can confirm their addresses before it is required.
    let _ = resend(&app, &ada).await.expect(200);
    store_code(&app, &ada, "early");
    let _ = verify(&app, "early").await.expect(200);
    let required = app.replica(&REQUIRED).await;
    for (email, confirmed) in [("ada@example.com", true), ("bob@example.com", false)] {
        let body = json!({"username": email, "password": PASSWORD});
        let reply = required.post("/user/auth").json(&body).send().await;
        let person = Person::of(&reply.expect(200));
        assert_eq!(is_verified(&person.token), confirmed, "{email}");
    }
}

#[tokio::test]
async fn a_new_address_of_the_time_without_verification_is_unconfirmed() {
    let app = Fixture::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    store_code(&app, &ada, "code");
    let _ = verify(&app, "code").await.expect(200);
    let change = json!({"email": "new@example.com"});
    let _ = app.update(&admin, &ada.id, &change).await.expect(200);
    let required = app.replica(&REQUIRED).await;
    let body = json!({"username": "new@example.com", "password": PASSWORD});
    let reply = required.post("/user/auth").json(&body).send().await;
    assert!(!is_verified(&Person::of(&reply.expect(200)).token));
}

#[tokio::test]
async fn a_code_that_resets_a_password_confirms_the_address() {
    let app = Fixture::start_with(&REQUIRED).await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "reset");
    app.admin_connection()
        .batch_execute("UPDATE users.codes SET purpose = 'forgot-password', email_key = NULL")
        .unwrap();
    store_code(&app, &ada, "unused");
    let reset = app.http.post("/user/forgot-password/reset");
    let reset = reset.json(&json!({"code": "reset", "password": PASSWORD}));
    let _ = reset.send().await.expect(200);
    assert!(is_verified(&sign_in(&app, "ada@example.com").await.token));
    // It could set a password, too.
    let unused = json!({"code": "unused", "newPassword": "battery staple"});
    let reply = verify_with(&app, &unused).await;
    reply.expect_problem(400, "invalid-code");
    let reply = resend(&app, &sign_in(&app, "ada@example.com").await).await;
    reply.expect_problem(409, "email-already-confirmed");
}

/// Whether a deletion of the user erases the tasks that were requested under the present address, and under former
/// ones.
async fn erased_addresses(app: &Fixture, admin: &Person, person: &Person) -> (bool, bool) {
    #[derive(QueryableByName)]
    struct Addresses {
        #[diesel(sql_type = Bool)]
        present: bool,
        #[diesel(sql_type = Bool)]
        former: bool,
    }
    let reply = app.delete(admin, &format!("/users/{}", person.id)).await;
    let _ = reply.expect(200);
    let addresses: Addresses = diesel::sql_query(
        "SELECT email_trusted AS present,
            EXISTS (SELECT FROM users.former_emails AS f WHERE f.user_id = d.user_id) AS former
         FROM users.deletions AS d WHERE encode(user_id, 'hex') = $1",
    )
    .bind::<Text, _>(&person.id)
    .get_result(&mut app.admin_connection())
    .unwrap();
    (addresses.present, addresses.former)
}

#[tokio::test]
async fn only_addresses_that_gave_access_to_tasks_are_erased_with_the_account() {
    let app = Fixture::start_with(&REQUIRED).await;
    let admin = app.admin().await;
    for (email, confirmed, expected) in [
        ("eve@example.com", false, (false, false)),
        ("ada@example.com", true, (false, true)),
    ] {
        let person = app.sign_up(email).await;
        if confirmed {
            store_code(&app, &person, email);
            let _ = verify(&app, email).await.expect(200);
        }
        let change = json!({"email": format!("new-{email}")});
        let _ = app.update(&admin, &person.id, &change).await.expect(200);
        assert_eq!(erased_addresses(&app, &admin, &person).await, expected);
    }
    let bob = app.sign_up("bob@example.com").await;
    store_code(&app, &bob, "bob");
    let _ = verify(&app, "bob").await.expect(200);
    assert_eq!(erased_addresses(&app, &admin, &bob).await, (true, false));
}
