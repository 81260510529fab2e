//! `POST /user`.

use futures_util::future::join_all;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use testkit::{Reply, Request};

use crate::fixture::{ADMIN, Fixture, PASSWORD, Person, redacted};
use crate::sign_in::try_from;
use crate::verify_email::claims;

pub(crate) async fn sign_up(app: &Fixture, body: Value) -> Reply {
    app.http.post("/user").json(&body).send().await
}

#[tokio::test]
async fn a_new_user_has_the_defaults_and_is_signed_in() {
    let app = Fixture::start().await;
    let body = json!({"username": "Ada@Example.com", "email": "lovelace@example.com", "password": PASSWORD});
    let reply = sign_up(&app, body).await.expect(200);
    assert_json_snapshot!(redacted(&reply.json));
    app.assert_token(&Person::of(&reply), true).await;
}

#[tokio::test]
async fn accounts_that_strangers_make_from_one_network_have_one_group() {
    let app = Fixture::start().await;
    let group = async |request: Request, name: &str| {
        let body = json!({"email": format!("{name}@example.com"), "password": PASSWORD});
        let reply = request.json(&body).send().await.expect(200);
        claims(&reply.text_of("token"))["group"].clone()
    };
    let from = |address: &str| {
        let request = app.http.post("/user");
        request.header("X-Forwarded-For", address)
    };
    let first = group(from("198.51.100.1"), "first").await;
    assert!(first.is_string());
    assert_eq!(group(from("198.51.100.1"), "second").await, first);
    assert_ne!(group(from("198.51.100.2"), "third").await, first);
    let by_admin = from("198.51.100.1").bearer(&app.admin().await.token);
    assert!(group(by_admin, "fourth").await.is_null());
    // A sign-in from elsewhere does not change it.
    let signed_in = try_from(&app, "198.51.100.3", "first@example.com", PASSWORD).await;
    assert_eq!(claims(&signed_in.text_of("token"))["group"], first);
}

#[tokio::test]
async fn who_creates_accounts_by_the_scope_of_every_user_is_a_stranger() {
    let app = Fixture::start_with(&[("API_USER_CREATE_SCOPE", "user, creator")]).await;
    let admin = app.admin().await;
    let create = async |creator: &str, name: &str| {
        let body = json!({"email": name, "password": PASSWORD});
        let request = app.http.post("/user").bearer(creator).json(&body);
        request.send().await.expect(200).text_of("token")
    };
    let ada = create(&admin.token, "ada@example.com").await;
    let by_ada = create(&ada, "bob@example.com").await;
    assert!(claims(&by_ada)["group"].is_string());
    let id = claims(&ada)["sub"].as_str().unwrap().to_owned();
    let scope = json!({"scope": ["user", "creator"]});
    let _ = app.update(&admin, &id, &scope).await.expect(200);
    let ada = Person::of(&app.sign_in("ada@example.com", PASSWORD).await.expect(200));
    let trusted = create(&ada.token, "eve@example.com").await;
    assert!(claims(&trusted)["group"].is_null());
}

#[tokio::test]
async fn an_absent_name_defaults_to_the_other() {
    let app = Fixture::start().await;
    for field in ["username", "email"] {
        let name = format!(" {field}@example.com ");
        let reply = sign_up(&app, json!({field: name, "password": PASSWORD}))
            .await
            .expect(200);
        assert_eq!(reply.json["user"]["username"], name.trim());
        assert_eq!(reply.json["user"]["email"], name.trim());
    }
}

#[tokio::test]
async fn a_body_in_another_encoding_is_refused_with_the_cause() {
    let app = Fixture::start().await;
    let json = "application/json";
    let post = |content_type: &str| app.http.post("/user").header("content-type", content_type);
    let good = format!(r#"{{"email": "ada@example.com", "password": "{PASSWORD}"}}"#);
    let compressed = post(json)
        .header("content-encoding", "gzip")
        .body(good.clone());
    let reply = compressed.send().await;
    reply.expect_problem(415, "unsupported-media-type");
    assert_eq!(reply.header("accept-encoding"), Some("identity"));
    let latin_1 = post("application/json; charset=ISO-8859-1").body(good.clone());
    let reply = latin_1.send().await;
    reply.expect_problem(415, "unsupported-media-type");
    assert!(reply.text_of("detail").contains("utf-8"));
    let marked = post(json).body(format!("\u{feff}{good}")).send().await;
    marked.expect_problem(400, "malformed-json");
    assert!(marked.text_of("detail").contains("byte order mark"));
    let utf_8 = post("application/json; Charset=\"UTF-8\"").body(good);
    let _ = utf_8.send().await.expect(200);
}

#[tokio::test]
async fn the_operator_chooses_plan_vendor_and_password_length() {
    let app = Fixture::start_with(&[
        ("DEFAULT_USER_PLAN", "trial"),
        ("DEFAULT_USER_VENDOR", "acme"),
        ("PASSWORD_MIN_LENGTH", "12"),
    ])
    .await;
    let body = |password| json!({"email": "ada@example.com", "password": password});
    let reply = sign_up(&app, body("short horse")).await;
    reply.expect_problem(400, "validation-failed");
    let reply = sign_up(&app, body(PASSWORD)).await.expect(200);
    assert_eq!(reply.json["user"]["plan"], "trial");
    assert_eq!(reply.json["user"]["vendor"], "acme");
}

#[tokio::test]
async fn every_invalid_field_is_listed() {
    let app = Fixture::start().await;
    let long = "é".repeat(37);
    for (body, fields) in [
        (json!({}), vec!["password", "username"]),
        (json!({"email": "ada@example.com"}), vec!["password"]),
        (json!({"password": PASSWORD}), vec!["username"]),
        (
            json!({"password": PASSWORD, "username": "ada"}),
            vec!["username"],
        ),
        (
            json!({"password": "1234", "email": "no"}),
            vec!["password", "email"],
        ),
        (
            json!({"password": long, "email": "ada@example.com"}),
            vec!["password"],
        ),
        (
            json!({"password": 12345, "email": ["ada@example.com"]}),
            vec!["password", "email"],
        ),
        (
            json!({"password": "a\0bcde", "email": "ada@example.com"}),
            vec!["password"],
        ),
    ] {
        let reply = sign_up(&app, body.clone()).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), fields, "{body}");
    }
    let reply = sign_up(&app, json!({"username": "ada", "password": "1234"})).await;
    assert_json_snapshot!(redacted(&reply.json));
}

#[tokio::test]
async fn bodies_other_than_json_objects_are_refused() {
    let app = Fixture::start().await;
    let post = || app.http.post("/user");
    let json = "application/json";
    let reply = post().header("Content-Type", json).body("{").send().await;
    reply.expect_problem(400, "malformed-json");
    let reply = post().header("Content-Type", json).body("[]").send().await;
    reply.expect_problem(400, "validation-failed");
    let reply = post()
        .header("Content-Type", "text/plain")
        .body("{}")
        .send()
        .await;
    reply.expect_problem(415, "unsupported-media-type");
    let large = format!("{{\"password\": \"{}\"}}", "a".repeat(256 * 1024));
    let reply = post().header("Content-Type", json).body(large).send().await;
    reply.expect_problem(413, "body-too-large");
}

#[tokio::test]
async fn a_taken_name_is_refused_in_any_case_and_as_either_name() {
    let app = Fixture::start().await;
    let body = json!({"username": "ada@example.com", "email": "lovelace@example.com", "password": PASSWORD});
    let _ = sign_up(&app, body).await.expect(200);
    for (username, email, code) in [
        ("ADA@example.com", "new@example.com", "username-taken"),
        ("Lovelace@example.com", "new@example.com", "username-taken"),
        ("new@example.com", "LOVELACE@example.com", "email-taken"),
        ("new@example.com", "ada@EXAMPLE.com", "email-taken"),
        ("ada@example.com", "lovelace@example.com", "username-taken"),
    ] {
        let body = json!({"username": username, "email": email, "password": PASSWORD});
        sign_up(&app, body).await.expect_problem(409, code);
    }
    let _ = app.sign_up("new@example.com").await;
}

#[tokio::test]
async fn concurrent_sign_ups_with_one_name_have_one_winner() {
    let app = Fixture::start().await;
    let body = json!({"username": "ada@example.com", "password": PASSWORD});
    let replies = join_all((0..8).map(|_| sign_up(&app, body.clone()))).await;
    let (winners, losers): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!(winners.len(), 1);
    for reply in losers {
        reply.expect_problem(409, "username-taken");
    }
}

#[tokio::test]
async fn concurrent_sign_ups_with_swapped_names_have_one_winner() {
    let app = Fixture::start().await;
    for round in 0..10 {
        let (a, b) = (
            format!("a{round}@example.com"),
            format!("b{round}@example.com"),
        );
        let crossing = [(&a, &b), (&b, &a), (&a, &b), (&b, &a)].map(|(username, email)| {
            sign_up(
                &app,
                json!({"username": username, "email": email, "password": PASSWORD}),
            )
        });
        let replies = join_all(crossing).await;
        let winners = replies.iter().filter(|reply| reply.status == 200).count();
        assert_eq!(winners, 1);
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(reply.status, 409, "{}", reply.text);
        }
    }
}

#[tokio::test]
async fn open_sign_up_ignores_tokens() {
    let app = Fixture::start().await;
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let request = app.http.post("/user").bearer("junk").json(&body);
    let _ = request.send().await.expect(200);
}

#[tokio::test]
async fn with_a_creation_scope_only_its_holders_create_users() {
    let app = Fixture::start_with(&[("API_USER_CREATE_SCOPE", "creator, admin")]).await;
    let body = |name: &str| json!({"email": name, "password": PASSWORD});
    let create = |token: String, name: &'static str| {
        app.http
            .post("/user")
            .bearer(&token)
            .json(&body(name))
            .send()
    };
    sign_up(&app, body("ada@example.com"))
        .await
        .expect_problem(401, "token-missing");
    create("junk".to_owned(), "ada@example.com")
        .await
        .expect_problem(401, "invalid-token");
    let admin = app.admin().await;
    let reply = create(admin.token.clone(), "ada@example.com")
        .await
        .expect(200);
    let ada = Person::of(&reply);
    // The scope is checked before the body.
    let reply = app
        .http
        .post("/user")
        .bearer(&ada.token)
        .json(&json!({}))
        .send()
        .await;
    reply.expect_problem(403, "insufficient-scope");
    let scope = json!({"scope": ["user", "creator"]});
    let _ = app.update(&admin, &ada.id, &scope).await.expect(200);
    let ada = Person::of(&app.sign_in("ada@example.com", PASSWORD).await.expect(200));
    let _ = create(ada.token, "bob@example.com").await.expect(200);
}

#[tokio::test]
async fn concurrent_replicas_create_one_administrator_and_never_overwrite_it() {
    let app = Fixture::start_with(&[("ADMIN_USERNAME", "")]).await;
    app.sign_in(ADMIN, PASSWORD)
        .await
        .expect_problem(401, "invalid-credentials");
    let admin = [("ADMIN_USERNAME", ADMIN)];
    let _ = tokio::join!(
        app.replica(&admin),
        app.replica(&admin),
        app.replica(&admin)
    );
    let person = app.admin().await;
    let count = app
        .get(&person, "/users/count?filter=scope:admin")
        .await
        .expect(200);
    assert_eq!(count.json, json!({"count": 1}));

    let _ = app.replica(&[("ADMIN_PASSWORD", "another password")]).await;
    let _ = app.sign_in(ADMIN, PASSWORD).await.expect(200);
    app.sign_in(ADMIN, "another password")
        .await
        .expect_problem(401, "invalid-credentials");
}

const CONFIRMED: [(&str, &str); 2] = [
    ("EMAIL_VERIFICATION", "required"),
    ("FORGOT_PASSWORD_LOG", "true"),
];

fn names(username: &str, email: &str) -> Value {
    json!({"username": username, "email": email, "password": PASSWORD})
}

#[tokio::test]
async fn while_addresses_must_be_confirmed_only_an_administrator_gives_another_username() {
    let app = Fixture::start_with(&CONFIRMED).await;
    let admin = app.admin().await;
    let squatting = names("chief@example.com", "eve@example.org");
    let refused = sign_up(&app, squatting.clone()).await;
    refused.expect_problem(400, "validation-failed");
    assert_eq!(refused.bad_fields(), ["username"]);
    let user = app.sign_up("user@example.com").await;
    for token in [user.token.as_str(), "junk"] {
        let request = app.http.post("/user").bearer(token).json(&squatting);
        assert_eq!(request.send().await.bad_fields(), ["username"]);
    }
    // One address in two cases.
    let same = names("Ada@example.com", "ada@Example.com");
    let _ = sign_up(&app, same).await.expect(200);
    let chief = app.sign_up("chief@example.com").await;
    let by_admin = names("boss@example.com", "bob@example.com");
    let _ = app.post(&admin, "/user", &by_admin).await.expect(200);
    let renamed = json!({"username": "the-chief@example.com"});
    let _ = app.update(&admin, &chief.id, &renamed).await.expect(200);
    // An account that exists keeps its names.
    let _ = app
        .sign_in("the-chief@example.com", PASSWORD)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_setting_says_whether_usernames_may_differ_from_addresses() {
    let app = Fixture::start_with(&CONFIRMED).await;
    let user = app.sign_up("user@example.com").await;
    let other = names("chief@example.com", "eve@example.org");
    let scope = [("API_USER_CREATE_SCOPE", "user")];
    let closed = app.replica(&[&CONFIRMED[..], &scope].concat()).await;
    let request = closed.post("/user").bearer(&user.token).json(&other);
    assert_eq!(request.send().await.bad_fields(), ["username"]);
    let any = [("SIGN_UP_USERNAMES", "any")];
    let any = app.replica(&[&CONFIRMED[..], &any].concat()).await;
    let _ = any.post("/user").json(&other).send().await.expect(200);
    let off = app.replica(&[]).await;
    let other = names("other@example.com", "eve@example.net");
    let _ = off.post("/user").json(&other).send().await.expect(200);
}
