//! `GET /user`, `GET /users/:userId`, `GET /users/count`.

use serde_json::{Value, json};

use crate::support::{ADMIN, PASSWORD, TestApp};

/// 24 hexadecimal digits that no user has.
const NOBODY: &str = "000000000000000000000000";

#[tokio::test]
async fn a_user_sees_itself_in_the_shape_of_the_document() {
    let app = TestApp::start().await;
    let ada = app.sign_up("Ada@example.com").await;
    let reply = app.get(&ada, "/user").await.expect(200);
    let expected = json!({
        "id": ada.id, "username": "Ada@example.com", "isActive": true,
        "email": "Ada@example.com", "scope": ["user"], "plan": "free",
    });
    assert_eq!(reply.json, expected);
}

#[tokio::test]
async fn a_user_sees_what_is_so_now_and_not_what_the_token_says() {
    let app = TestApp::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let _ = app
        .update(&admin, &ada.id, &json!({"plan": "gold"}))
        .await
        .expect(200);
    let reply = app.get(&ada, "/user").await.expect(200);
    assert_eq!(reply.json["plan"], "gold");
}

#[tokio::test]
async fn an_administrator_sees_the_full_user() {
    let app = TestApp::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let reply = app
        .get(&admin, &format!("/users/{}", ada.id))
        .await
        .expect(200);
    let (created, mtime) = (&reply.json["created"], &reply.json["mtime"]);
    let expected = json!({
        "id": ada.id, "username": "ada@example.com", "email": "ada@example.com", "isActive": true,
        "plan": "free", "scope": ["user"], "vendor": null, "allowedPrivateComponents": [],
        "created": created, "mtime": mtime, "lastSignIn": null, "metadata": {},
    });
    assert_eq!(reply.json, expected);
    for time in [created, mtime] {
        let time = time.as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    }
    assert!(!reply.text.contains("$2"), "no answer holds a hash");
}

#[tokio::test]
async fn an_unknown_id_and_one_of_another_form_are_404() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    for id in [NOBODY, "1", "ADA", "65B8F0A2C3D4E5F601234567", "%00", "%ff"] {
        let reply = app.get(&admin, &format!("/users/{id}")).await;
        reply.expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn the_count_takes_filters_and_a_pattern() {
    let app = TestApp::start().await;
    for name in ["ada@example.com", "adam@example.com", "eve@example.com"] {
        let _ = app.sign_up(name).await;
    }
    let admin = app.admin().await;
    for (query, count) in [
        ("", 4),
        ("?filter=scope:admin", 1),
        ("?filter=scope:admin,scope:user", 1),
        ("?filter=scope:admin&filter=email:eve@example.com", 0),
        ("?filter=username:ADA@example.com", 1),
        ("?pattern=ADA", 2),
        ("?pattern=ada%25", 0),
        ("?pattern=ad_m", 0),
        ("?pattern=%5C", 0),
        ("?filter=isActive:false", 0),
        ("?filter=plan:free&pattern=example", 4),
    ] {
        let reply = app
            .get(&admin, &format!("/users/count{query}"))
            .await
            .expect(200);
        assert_eq!(reply.json, json!({"count": count}), "{query}");
    }
    let reply = app.get(&admin, "/users/count?filter=colour:red").await;
    reply.expect_problem(400, "validation-failed");
}

/// Method, path, and whether an administrator's token is needed.
const GUARDED: [(&str, &str, bool); 15] = [
    ("GET", "/user", false),
    ("POST", "/user/change-password", false),
    ("POST", "/user/reset-password", true),
    ("GET", "/users", true),
    ("GET", "/users/count", true),
    ("GET", "/users/deletions", true),
    ("GET", "/audit", true),
    ("GET", "/audit?limit=0", true),
    ("GET", "/users/000000000000000000000000", true),
    ("PUT", "/users/000000000000000000000000", true),
    ("DELETE", "/users/000000000000000000000000", true),
    (
        "GET",
        "/users/000000000000000000000000/delete-status/1",
        true,
    ),
    (
        "DELETE",
        "/users/000000000000000000000000/delete-status/1",
        true,
    ),
    ("GET", "/users?limit=0", true),
    ("PUT", "/users/not-an-id", true),
];

/// Method and path of what needs no token.
const OPEN: [(&str, &str); 6] = [
    ("POST", "/user"),
    ("POST", "/user/auth"),
    ("POST", "/user/verify-email"),
    ("POST", "/user/forgot-password"),
    ("POST", "/user/forgot-password/reset"),
    ("GET", "/.well-known/jwks.json"),
];

#[tokio::test]
async fn token_and_scope_are_checked_before_anything_else() {
    let app = TestApp::start().await;
    let ada = app.sign_up("ada@example.com").await;
    for (method, path, needs_admin) in GUARDED {
        let request = |token: Option<&str>| {
            let request = app.http.request(method.parse().unwrap(), path);
            match token {
                Some(token) => request.bearer(token).send(),
                None => request.send(),
            }
        };
        let reply = request(None).await;
        reply.expect_problem(401, "token-missing");
        assert!(
            reply
                .header("www-authenticate")
                .unwrap()
                .starts_with("Bearer")
        );
        request(Some("junk"))
            .await
            .expect_problem(401, "invalid-token");
        if needs_admin {
            let reply = request(Some(&ada.token)).await;
            reply.expect_problem(403, "insufficient-scope");
        }
    }
}

#[tokio::test]
async fn every_operation_of_the_document_stands_in_the_tables_above_and_the_reverse() {
    let document = serde_json::to_value(user_service::openapi()).unwrap();
    let mut documented = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            let path = path.replace("{userId}", NOBODY).replace("{ticket}", "1");
            let guarded = operation["security"] == json!([{"bearer": []}]);
            documented.push((method, path, guarded));
            assert!(operation["responses"]["200"].is_object());
            assert!(operation["tags"].is_array() && operation["summary"].is_string());
        }
    }
    let guarded = GUARDED
        .iter()
        .filter(|(_, path, _)| !path.contains("limit") && !path.contains("not-an-id"));
    let guarded = guarded.map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned(), true));
    let open = OPEN
        .iter()
        .map(|(method, path)| ((*method).to_owned(), (*path).to_owned(), false));
    let mut tested: Vec<_> = guarded.chain(open).collect();
    documented.sort();
    tested.sort();
    assert_eq!(documented, tested);
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_problems() {
    let app = TestApp::start().await;
    for path in ["/", "/nothing", "/users/", "/user/auth/more"] {
        let reply = app.http.get(path).send().await;
        reply.expect_problem(404, "not-found");
    }
    for (path, allow) in [("/user/auth", "POST"), ("/user", "GET, POST")] {
        let reply = app.http.delete(path).send().await;
        reply.expect_problem(405, "method-not-allowed");
        assert_eq!(reply.header("allow"), Some(allow));
    }
}

#[tokio::test]
async fn the_callers_request_id_is_kept_if_it_is_one() {
    let app = TestApp::start().await;
    let ask = |id: &'static str| app.http.get("/user").header("X-Request-Id", id).send();
    let reply = ask("abc-1.2_3").await;
    reply.expect_problem(401, "token-missing");
    assert_eq!(reply.header("x-request-id"), Some("abc-1.2_3"));
    assert_ne!(ask("a b").await.header("x-request-id"), Some("a b"));
}

#[tokio::test]
async fn the_process_says_how_it_is() {
    let app = TestApp::start().await;
    let reply = app.http.get("/healthz").send().await.expect(200);
    assert_eq!(reply.json, json!({"status": "ok"}));
    let ready = testkit::eventually("the queue", async || {
        let reply = app.http.get("/readyz").send().await;
        (reply.status == 200).then_some(reply)
    });
    let checks = &ready.await.json["checks"];
    assert_eq!(
        checks,
        &json!({"database": "ok", "keys": "ok", "queue": "ok"})
    );
    app.database.set_reachable(false);
    let reply = app.http.get("/readyz").send().await.expect(503);
    assert_eq!(reply.json["checks"]["database"], "failing");
    let body = json!({"username": ADMIN, "password": PASSWORD});
    let reply = app.http.post("/user/auth").json(&body).send().await;
    reply.expect_problem(503, "database-unavailable");
    assert!(reply.header("retry-after").is_some());
    app.database.set_reachable(true);
    let _ = app.admin().await;
}

#[tokio::test]
async fn the_keys_are_published() {
    let app = TestApp::start().await;
    let reply = app
        .http
        .get("/.well-known/jwks.json")
        .send()
        .await
        .expect(200);
    let keys = reply.json["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["crv"], "Ed25519");
    assert_eq!(
        keys[0].get("d"),
        None::<&Value>,
        "the private half stays private"
    );
}
