use reqwest::Method;
use testkit::{Forger, Reply, eventually, expect_forgeries_refused};
use values::UserId;

use crate::world::{World, keys_of, signer, start_gateway, token};

const ID: &str = "65f0c0ffee65f0c0ffee65f0";

const PUBLIC: [(&str, &str); 6] = [
    ("POST", "/user/auth"),
    ("POST", "/user"),
    ("POST", "/user/forgot-password"),
    ("POST", "/user/forgot-password/reset"),
    ("POST", "/user/verify-email"),
    ("GET", "/.well-known/webhook-keys.json"),
];

const TOKEN: [(&str, &str); 23] = [
    ("GET", "/user"),
    ("POST", "/user/change-password"),
    ("POST", "/user/reset-password"),
    ("GET", "/users"),
    ("GET", "/users/count"),
    ("GET", "/users/deletions"),
    ("GET", "/users/{id}"),
    ("PUT", "/users/{id}"),
    ("DELETE", "/users/{id}"),
    ("GET", "/users/{id}/delete-status/{id}"),
    ("DELETE", "/users/{id}/delete-status/{id}"),
    ("GET", "/audit"),
    ("POST", "/people-task/tasks"),
    ("GET", "/people-task/tasks/{id}/webhooks"),
    ("GET", "/people-task/tasks/{id}/deliveries"),
    ("POST", "/people-task/deliveries/{id}/redeliver"),
    ("POST", "/people-task/webhooks"),
    ("GET", "/people-task/webhooks/{id}"),
    ("DELETE", "/people-task/webhooks/{id}"),
    ("GET", "/people-task/audit"),
    ("POST", "/plugins/appmixer/utils/tasks/tasks"),
    ("POST", "/plugins/appmixer/utils/tasks/webhooks"),
    ("GET", "/plugins/appmixer/utils/tasks/dashboard-url"),
];

const TOKEN_OR_SECRET: [(&str, &str); 8] = [
    ("GET", "/people-task/tasks"),
    ("GET", "/people-task/tasks-count"),
    ("GET", "/people-task/tasks/{id}"),
    ("PUT", "/people-task/tasks/{id}"),
    ("PUT", "/people-task/tasks/{id}/approve"),
    ("PUT", "/people-task/tasks/{id}/reject"),
    ("GET", "/plugins/appmixer/utils/tasks/tasks/{id}"),
    ("PUT", "/plugins/appmixer/utils/tasks/tasks/{id}/approve"),
];

async fn ask(world: &World, route: (&str, &str), token: Option<&str>) -> Reply {
    let method = Method::from_bytes(route.0.as_bytes()).unwrap();
    let request = world.http.request(method, &route.1.replace("{id}", ID));
    match token {
        Some(token) => request.bearer(token).send().await,
        None => request.send().await,
    }
}

#[tokio::test]
async fn public_routes_pass_a_bad_token_on_unread() {
    let world = World::start().await;
    for route in PUBLIC {
        assert_eq!(ask(&world, route, None).await.status, 200, "{route:?}");
        assert_eq!(
            ask(&world, route, Some("expired")).await.status,
            200,
            "{route:?}"
        );
        let service = if route.0 == "GET" {
            &world.tasks
        } else {
            &world.users
        };
        assert_eq!(
            service.last().header("authorization"),
            Some("Bearer expired")
        );
    }
}

#[tokio::test]
async fn routes_with_a_token_want_a_good_one() {
    let world = World::start().await;
    let good = world.token();
    for route in TOKEN {
        let missing = ask(&world, route, None).await;
        missing.expect_problem(401, "token-missing");
        assert_eq!(
            missing.header("www-authenticate"),
            Some(r#"Bearer realm="countersign""#)
        );
        ask(&world, route, Some("no.token"))
            .await
            .expect_problem(401, "invalid-token");
        assert_eq!(
            ask(&world, route, Some(&good)).await.status,
            200,
            "{route:?}"
        );
    }
    assert_eq!(world.users.count() + world.tasks.count(), TOKEN.len());
}

#[tokio::test]
async fn routes_with_a_secret_do_without_a_token_but_not_with_a_bad_one() {
    let world = World::start().await;
    let good = world.token();
    for route in TOKEN_OR_SECRET {
        ask(&world, route, Some("no.token"))
            .await
            .expect_problem(401, "invalid-token");
        assert_eq!(ask(&world, route, None).await.status, 200, "{route:?}");
        assert_eq!(
            ask(&world, route, Some(&good)).await.status,
            200,
            "{route:?}"
        );
    }
    let path = format!("/people-task/tasks/{ID}?secret=5ec4e7");
    let reply = world
        .http
        .get(&path)
        .header("x-task-secret", "5ec4e7")
        .send()
        .await;
    assert_eq!(reply.status, 200);
    let seen = world.tasks.last();
    assert_eq!(
        (seen.target.as_str(), seen.header("x-task-secret")),
        (path.as_str(), Some("5ec4e7"))
    );
}

#[tokio::test]
async fn forged_tokens_are_refused_and_reach_no_service() {
    let world = World::start().await;
    let forger = Forger::new(&world.key, UserId::generate());
    let good = world.http.get("/user").bearer(&forger.good()).send().await;
    assert_eq!((good.status, world.users.count()), (200, 1));
    expect_forgeries_refused(&world.http, "/user", &forger).await;
    // The last of them is a good one in lower case.
    assert_eq!(world.users.count(), 2);
    for forgery in forger.forgeries() {
        let request = world.http.get("/people-task/tasks").bearer(&forgery.token);
        let reply = request.send().await;
        assert_eq!(reply.status, 401, "{}", forgery.what);
    }
    assert_eq!(world.tasks.count(), 0);
}

#[tokio::test]
async fn a_revoked_token_is_refused_after_the_next_reading_of_the_feed() {
    let world = World::start().await;
    let (revoked, other) = (UserId::generate(), UserId::generate());
    let (revoked_token, other_token) = (token(&world.signer, revoked), token(&world.signer, other));
    let reply = world.http.get("/user").bearer(&revoked_token).send().await;
    assert_eq!(reply.status, 200);
    world.users.with(|state| state.raised = vec![(revoked, 2)]);
    let started = std::time::Instant::now();
    let reply = eventually("the revocation", || async {
        let reply = world.http.get("/user").bearer(&revoked_token).send().await;
        (reply.status == 401).then_some(reply)
    })
    .await;
    reply.expect_problem(401, "token-revoked");
    assert!(
        started.elapsed().as_millis() < 1_000,
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        world
            .http
            .get("/user")
            .bearer(&other_token)
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_token_of_a_new_key_is_accepted_at_once() {
    let world = World::start().await;
    // The keys have just been read; another reading is allowed a second later.
    let next = signer(&[]);
    world
        .users
        .with(|state| state.keys = Some(keys_of(&[&world.signer, &next])));
    let new = token(&next, UserId::generate());
    eventually("the new key", || async {
        let reply = world.http.get("/user").bearer(&new).send().await;
        (reply.status == 200).then_some(())
    })
    .await;
    assert_eq!(
        world
            .http
            .get("/user")
            .bearer(&world.token())
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_gateway_without_keys_is_not_ready_and_says_so() {
    let world = World::start().await;
    world.users.with(|state| state.keys = None);
    let gateway = start_gateway(&world.users, &world.tasks, &[]).await;
    let http = testkit::Http::to(gateway.address.unwrap());
    let ready = http.get("/readyz").send().await.expect(503);
    assert_eq!(ready.json["checks"]["keys"], "failing");
    assert_eq!(ready.json["checks"]["user-service"], "ok");
    let reply = http.get("/user").bearer(&world.token()).send().await;
    reply.expect_problem(503, "not-ready");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(http.get("/healthz").send().await.status, 200);
}

#[tokio::test]
async fn a_service_that_is_away_leaves_the_gateway_ready() {
    let world = World::start().await;
    let token = world.token();
    world.users.stop().await;
    let ready = world.http.get("/readyz").send().await.expect(200);
    assert_eq!(ready.json["checks"]["user-service"], "failing");
    assert_eq!(ready.json["checks"]["people-task-service"], "ok");
    let reply = world
        .http
        .get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await;
    assert_eq!(reply.status, 200);
}
