//! Accounts of programs, which have API keys and no password.

#![expect(
    clippy::too_many_lines,
    reason = "tests and tables of cases may be longer than functions"
)]

use diesel::connection::SimpleConnection as _;
use serde_json::json;

use crate::fixture::{Fixture, PASSWORD, Person};
use crate::keys::{Key, assert_key, token_of};
use crate::passwords::{reset_forgotten, store_code};
use crate::sessions::claims_of;

async fn service_account(app: &Fixture, admin: &Person, email: &str) -> String {
    let body = json!({"email": email, "service": true});
    let created = app.post(admin, "/user", &body).await.expect(200);
    assert_eq!(created.fields(), ["user"], "there is no token");
    let user = created.json.get("user").unwrap();
    assert_eq!(user.get("service"), Some(&json!(true)));
    user.get("id").unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_service_account_has_keys_and_nothing_else() {
    let settings = [
        ("EMAIL_VERIFICATION", "required"),
        ("FORGOT_PASSWORD_LOG", "true"),
    ];
    let app = Fixture::start_with(&settings).await;
    let admin = app.admin().await;
    let with_password = json!({"email": "a@example.com", "service": true, "password": PASSWORD});
    let refused = app.post(&admin, "/user", &with_password).await;
    assert_eq!(refused.bad_fields(), ["password"]);
    let id = service_account(&app, &admin, "flows@example.com").await;
    let path = format!("/users/{id}");
    let shown = app.get(&admin, &path).await.expect(200);
    assert_eq!(shown.json["service"], json!(true));
    for password in ["", PASSWORD] {
        let refused = app.sign_in("flows@example.com", password).await;
        assert!([400, 401].contains(&refused.status), "{}", refused.text);
    }
    let refused = app
        .update(&admin, &id, &json!({"password": PASSWORD}))
        .await;
    assert_eq!(refused.bad_fields(), ["password"]);
    let reset = json!({"email": "flows@example.com", "password": PASSWORD});
    let refused = app.post(&admin, "/user/reset-password", &reset).await;
    assert_eq!(refused.bad_fields(), ["password"]);
    let forgot = json!({"email": "flows@example.com"});
    let _ = app
        .http
        .post("/user/forgot-password")
        .json(&forgot)
        .send()
        .await
        .expect(200);
    let notified =
        "SELECT count(*)::text AS line FROM users.notifications WHERE user_id IS NOT NULL";
    assert_eq!(testkit::lines(&mut app.admin_connection(), notified), ["0"]);

    let deciding = json!({"name": "a", "scopes": ["tasks:read", "tasks:decide"]});
    let key = Key::of(app.post(&admin, &format!("{path}/keys"), &deciding).await);
    let claims = claims_of(&token_of(&app, &key).await);
    assert_eq!(claims["emailVerified"], json!(true));
    let _ = app
        .post(&admin, &format!("{path}/revoke-tokens"), &json!(null))
        .await
        .expect(200);
    assert_key(&app, &key, true).await;
    let _ = app
        .update(&admin, &id, &json!({"isActive": false}))
        .await
        .expect(200);
    assert_key(&app, &key, false).await;
    let inactive = app.post(&admin, &format!("{path}/keys"), &deciding).await;
    inactive.expect_problem(409, "user-inactive");
    // Strangers cannot make one: the field is for administrators, and the password is required.
    let stranger = json!({"email": "eve@example.com", "service": true});
    let refused = app.http.post("/user").json(&stranger).send().await;
    assert_eq!(refused.bad_fields(), ["password"]);
}

#[tokio::test]
async fn a_service_account_is_made_however_long_passwords_have_to_be() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let replica = app.replica(&[("PASSWORD_MIN_LENGTH", "72")]).await;
    let body = json!({"email": "flows@example.com", "service": true});
    let request = replica.post("/user").bearer(&admin.token).json(&body);
    let _ = request.send().await.expect(200);
}

#[tokio::test]
async fn the_last_administrator_who_can_sign_in_stays() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let body = json!({"email": "flows@example.com", "service": true, "scope": ["admin"]});
    let _ = app.post(&admin, "/user", &body).await.expect(200);
    let refused = app
        .update(&admin, &admin.id, &json!({"isActive": false}))
        .await;
    refused.expect_problem(409, "last-admin");
}

#[tokio::test]
async fn what_the_version_before_gave_a_service_account_signs_no_one_in() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let id = service_account(&app, &admin, "flows@example.com").await;
    let set_password = format!(
        "UPDATE users.users SET password_hash = (SELECT password_hash FROM users.users WHERE encode(id, 'hex') = '{}')
        WHERE encode(id, 'hex') = '{id}'",
        admin.id
    );
    app.admin_connection().batch_execute(&set_password).unwrap();
    let reply = app.sign_in("flows@example.com", PASSWORD).await;
    reply.expect_problem(401, "invalid-credentials");
    store_code(&app, &Person { id, ..admin }, "code", "1 hour");
    let reply = reset_forgotten(&app, "code", "battery staple").await;
    reply.expect_problem(400, "invalid-code");
}
