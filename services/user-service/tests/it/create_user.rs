//! `POST /user` by an administrator, who chooses more than names and password.

use serde_json::{Value, json};

use crate::fixture::{Fixture, PASSWORD, Person};
use crate::sign_up::sign_up;

/// Everything that an administrator may choose, and more.
fn with_all_fields(email: &str) -> Value {
    json!({
        "email": email, "password": PASSWORD, "scope": ["user", "admin", "user"], "isActive": false,
        "plan": "gold", "vendor": ["acme", "umbrella"], "metadata": {"theme": "dark"},
        "id": "000000000000000000000000", "epoch": 7, "allowedPrivateComponents": ["a.b.C"],
        "emailVerified": true,
    })
}

/// What an administrator sees of a new user: the fields that only administrators choose.
async fn chosen(app: &Fixture, id: &str) -> Value {
    let admin = app.admin().await;
    let user = app.get(&admin, &format!("/users/{id}")).await.expect(200);
    assert_eq!(user.json.get("allowedPrivateComponents"), Some(&json!([])));
    assert_ne!(id, "000000000000000000000000");
    let fields = ["scope", "isActive", "plan", "vendor", "metadata"];
    json!(fields.map(|field| user.json.get(field).cloned()))
}

/// Creates a user with every field, and returns the status, and what was chosen for the new user.
async fn create_with_all_fields(app: &Fixture, who: &str, token: Option<&str>) -> (u16, Value) {
    let body = with_all_fields(&format!("{who}@example.com"));
    let request = app.http.post("/user").json(&body);
    let request = match token {
        Some(token) => request.bearer(token),
        None => request,
    };
    let reply = request.send().await;
    match reply.status {
        200 => (200, chosen(app, &Person::of(&reply).id).await),
        status => (status, Value::Null),
    }
}

/// The tokens of users with different scopes; the last one was demoted.
async fn tokens(app: &Fixture) -> [String; 4] {
    let admin = app.admin().await;
    let person = async |email: &str, scope: Value| {
        let body = json!({"email": email, "password": PASSWORD, "scope": scope});
        Person::of(&app.post(&admin, "/user", &body).await.expect(200))
    };
    let user = person("user@example.com", json!(["user"])).await;
    let creator = person("creator@example.com", json!(["user", "creator"])).await;
    let former = person("former@example.com", json!(["user", "admin"])).await;
    let demotion = json!({"scope": ["user"]});
    let _ = app.update(&admin, &former.id, &demotion).await.expect(200);
    [admin.token, creator.token, user.token, former.token]
}

#[tokio::test]
async fn only_an_administrators_token_chooses_more_than_names_and_password() {
    let defaults = (200, json!([["user"], true, "free", null, {}]));
    let given = json!([["user", "admin"], false, "gold", ["acme", "umbrella"], {"theme": "dark"}]);
    let given = (200, given);
    let refused = |status: u16| (status, Value::Null);
    for scope in [None, Some("admin,creator")] {
        let setting = scope.map(|scope| ("API_USER_CREATE_SCOPE", scope));
        let app = Fixture::start_with(setting.as_slice()).await;
        let [admin, creator, user, former] = tokens(&app).await;
        let unless_open = |status: u16| match scope {
            None => defaults.clone(),
            Some(_) => refused(status),
        };
        for (who, token, expected) in [
            ("by-admin", Some(admin.as_str()), given.clone()),
            ("by-creator", Some(&creator), defaults.clone()),
            ("by-user", Some(&user), unless_open(403)),
            ("by-former", Some(&former), unless_open(401)),
            ("by-junk", Some("junk"), unless_open(401)),
            ("by-anonymous", None, unless_open(401)),
        ] {
            let outcome = create_with_all_fields(&app, who, token).await;
            assert_eq!(outcome, expected, "{who}, {scope:?}");
        }
    }
}

#[tokio::test]
async fn the_fields_of_an_administrator_follow_the_rules_of_updates_and_others_are_not_checked() {
    let app = Fixture::start_with(&[("DEFAULT_USER_VENDOR", "acme")]).await;
    let admin = app.admin().await;
    let wrong = json!({
        "email": "ada@example.com", "password": PASSWORD, "scope": ["a b"], "isActive": "no", "plan": "",
        "vendor": 1, "metadata": [],
    });
    let reply = app.post(&admin, "/user", &wrong).await;
    reply.expect_problem(400, "validation-failed");
    let fields = ["scope", "isActive", "plan", "vendor", "metadata"];
    assert_eq!(reply.bad_fields(), fields);
    let _ = sign_up(&app, wrong).await.expect(200);

    for (email, vendor, expected) in [
        ("a@example.com", json!({}), json!("acme")),
        ("b@example.com", json!({"vendor": null}), Value::Null),
        (
            "c@example.com",
            json!({"vendor": "umbrella"}),
            json!("umbrella"),
        ),
    ] {
        let mut body = json!({"email": email, "password": PASSWORD});
        body.as_object_mut()
            .unwrap()
            .extend(vendor.as_object().unwrap().clone());
        let reply = app.post(&admin, "/user", &body).await.expect(200);
        assert_eq!(reply.json["user"]["vendor"], expected, "{email}");
    }
}

#[tokio::test]
async fn the_response_to_an_administrator_has_the_usual_shape_and_the_audit_log_the_fields() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let body = json!({
        "email": "ada@example.com", "password": PASSWORD, "scope": ["user", "admin"], "plan": "gold",
    });
    let reply = app.post(&admin, "/user", &body).await.expect(200);
    assert_eq!(reply.fields(), ["token", "user"]);
    let shape = [
        "email", "id", "isActive", "plan", "scope", "username", "vendor",
    ];
    let user: Vec<_> = reply.json["user"].as_object().unwrap().keys().collect();
    assert_eq!(user, shape);
    let ada = Person::of(&reply);
    let _ = app.get(&ada, "/users/count").await.expect(200);
    let path = format!("/audit?filter=subject:{},action:user-created", ada.id);
    let entries = app.get(&admin, &path).await.expect(200).json;
    assert_eq!(entries[0]["actor"], admin.id.as_str());
    assert_eq!(entries[0]["detail"], json!({"fields": ["scope", "plan"]}));
}

#[tokio::test]
async fn the_token_of_a_user_who_is_created_inactive_is_refused() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let body = json!({"email": "ada@example.com", "password": PASSWORD, "isActive": false});
    let reply = app.post(&admin, "/user", &body).await.expect(200);
    assert_eq!(reply.json["user"]["isActive"], false);
    let ada = Person::of(&reply);
    app.assert_token(&ada, false).await;
    let reply = app.sign_in("ada@example.com", PASSWORD).await;
    reply.expect_problem(403, "account-inactive");
    // Other processes learn it from the feed.
    let feed = app.http.get("/internal/revocations").send().await;
    assert!(feed.expect(200).text.contains(&ada.id));

    let active = json!({"isActive": true});
    let _ = app.update(&admin, &ada.id, &active).await.expect(200);
    let ada = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
    app.assert_token(&Person::of(&ada), true).await;
}
