//! `GET /user`, `GET /users/:userId`, `GET /users/count`.

use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::fixture::{ADMIN, Fixture, PASSWORD, redacted};

/// An id that no user has.
const UNKNOWN_ID: &str = "000000000000000000000000";

#[tokio::test]
async fn users_read_themselves() {
    let app = Fixture::start().await;
    let ada = app.sign_up("Ada@example.com").await;
    let reply = app.get(&ada, "/user").await.expect(200);
    assert_eq!(reply.json["id"], ada.id.as_str());
    assert_json_snapshot!(redacted(&reply.json));
}

#[tokio::test]
async fn users_read_their_current_state_and_not_that_of_their_token() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let _ = app
        .update(&admin, &ada.id, &json!({"plan": "gold"}))
        .await
        .expect(200);
    let reply = app.get(&ada, "/user").await.expect(200);
    assert_eq!(reply.json["plan"], "gold");
}

#[tokio::test]
async fn administrators_read_the_full_user() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let reply = app
        .get(&admin, &format!("/users/{}", ada.id))
        .await
        .expect(200);
    assert_eq!(reply.json["id"], ada.id.as_str());
    assert_json_snapshot!(redacted(&reply.json));
    assert!(!reply.text.contains("$2"), "a response contains a hash");
}

#[tokio::test]
async fn unknown_and_malformed_ids_are_not_found() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    for id in [
        UNKNOWN_ID,
        "1",
        "ADA",
        "65B8F0A2C3D4E5F601234567",
        "%00",
        "%ff",
    ] {
        let reply = app.get(&admin, &format!("/users/{id}")).await;
        reply.expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn users_are_counted_by_filters_and_a_pattern() {
    let app = Fixture::start().await;
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
        ("?limit=1", 4),
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

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_problems() {
    let app = Fixture::start().await;
    let reply = app.http.get("/nothing").send().await;
    assert_json_snapshot!("unknown_path", redacted(&reply.json));
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
async fn a_valid_request_id_is_kept() {
    let app = Fixture::start().await;
    let ask = |id: &'static str| app.http.get("/user").header("X-Request-Id", id).send();
    let reply = ask("abc-1.2_3").await;
    reply.expect_problem(401, "token-missing");
    assert_eq!(reply.header("x-request-id"), Some("abc-1.2_3"));
    assert_ne!(ask("a b").await.header("x-request-id"), Some("a b"));
}

#[tokio::test]
async fn readiness_follows_the_database_and_the_queue() {
    let app = Fixture::start_with(&[("DATABASE_TIMEOUT", "3s")]).await;
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
    let unready = testkit::eventually("the loss of the database to show", async || {
        let reply = app.http.get("/readyz").send().await;
        (reply.status == 503).then_some(reply)
    });
    assert_eq!(unready.await.json["checks"]["database"], "failing");
    let body = json!({"username": ADMIN, "password": PASSWORD});
    let reply = app.http.post("/user/auth").json(&body).send().await;
    reply.expect_problem(503, "database-unavailable");
    assert!(reply.header("retry-after").is_some());
    app.database.set_reachable(true);
    testkit::eventually("the database to be usable again", async || {
        (app.sign_in(ADMIN, PASSWORD).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_keys_that_verify_tokens_are_published() {
    let app = Fixture::start().await;
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
        "the private key is not published"
    );
}
