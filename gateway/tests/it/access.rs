use std::time::{Duration, Instant};

use gateway::routes::{Access, ROUTES, Route};
use reqwest::Method;
use testkit::{Forger, Reply, eventually, expect_forgeries_refused};
use values::UserId;

use crate::fixture::{Fixture, keys_of, signer, start_gateway, token};

const ID: &str = "65f0c0ffee65f0c0ffee65f0";

/// The routes with this access.
fn routes(access: Access) -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(move |route| route.access == access)
}

async fn send(fixture: &Fixture, route: &Route, token: Option<&str>) -> Reply {
    let parameter = |segment: &'static str| {
        if segment.starts_with('{') {
            ID
        } else {
            segment
        }
    };
    let path: Vec<_> = route.path.split('/').map(parameter).collect();
    let method = Method::from_bytes(route.method.as_str().as_bytes()).unwrap();
    let request = fixture.http.request(method, &path.join("/"));
    match token {
        Some(token) => request.bearer(token).send().await,
        None => request.send().await,
    }
}

#[tokio::test]
async fn public_routes_ignore_and_forward_an_invalid_token() {
    let fixture = Fixture::start().await;
    // The fake service handles this one itself.
    let recorded = |route: &&Route| route.path != "/.well-known/jwks.json";
    for route in routes(Access::Public).filter(recorded) {
        let path = route.path;
        assert_eq!(send(&fixture, route, None).await.status, 200, "{path}");
        let reply = send(&fixture, route, Some("expired")).await;
        assert_eq!(reply.status, 200, "{path}");
        let received = fixture.service(route.service).last();
        assert_eq!(received.header("authorization"), Some("Bearer expired"));
    }
}

#[tokio::test]
async fn only_the_routes_of_sessions_pass_a_cookie_on_and_back() {
    let fixture = Fixture::start().await;
    let recorded = |route: &&Route| route.path != "/.well-known/jwks.json";
    for route in ROUTES.iter().filter(recorded) {
        let path = format!("{}?response=headers", route.path.replace(['{', '}'], ""));
        let method = Method::from_bytes(route.method.as_str().as_bytes()).unwrap();
        let request = fixture.http.request(method, &path);
        let reply = request
            .bearer(&fixture.token())
            .header("cookie", "countersign-session=1")
            .header("origin", "https://tasks.example")
            .header("sec-fetch-site", "same-origin")
            .send()
            .await;
        assert_eq!(reply.status, 200, "{path}");
        let received = fixture.service(route.service).last();
        let is_session = route.access == Access::Cookie;
        for name in ["cookie", "origin", "sec-fetch-site"] {
            assert_eq!(received.header(name).is_some(), is_session, "{path} {name}");
        }
        assert_eq!(reply.header("set-cookie").is_some(), is_session, "{path}");
    }
}

#[tokio::test]
async fn token_routes_require_a_valid_token() {
    let fixture = Fixture::start().await;
    let valid = fixture.token();
    for route in routes(Access::Token) {
        let missing = send(&fixture, route, None).await;
        missing.expect_problem(401, "token-missing");
        let challenge = missing.header("www-authenticate");
        assert_eq!(challenge, Some(r#"Bearer realm="countersign""#));
        let invalid = send(&fixture, route, Some("no.token")).await;
        invalid.expect_problem(401, "invalid-token");
        let reply = send(&fixture, route, Some(&valid)).await;
        assert_eq!(reply.status, 200, "{}", route.path);
    }
    let received = fixture.users.count() + fixture.tasks.count();
    assert_eq!(received, routes(Access::Token).count());
}

#[tokio::test]
async fn token_or_secret_routes_accept_no_token_but_refuse_an_invalid_one() {
    let fixture = Fixture::start().await;
    let valid = fixture.token();
    for route in routes(Access::TokenOrSecret) {
        let path = route.path;
        let invalid = send(&fixture, route, Some("no.token")).await;
        invalid.expect_problem(401, "invalid-token");
        for none in [None, Some("null"), Some("undefined"), Some("")] {
            let reply = send(&fixture, route, none).await;
            assert_eq!(reply.status, 200, "{path} {none:?}");
        }
        let reply = send(&fixture, route, Some(&valid)).await;
        assert_eq!(reply.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_task_secret_reaches_the_service_in_the_header_and_in_the_query() {
    let fixture = Fixture::start().await;
    let path = format!("/people-task/tasks/{ID}?secret=5ec4e7");
    let request = fixture.http.get(&path).header("x-task-secret", "5ec4e7");
    assert_eq!(request.send().await.status, 200);
    let received = fixture.tasks.last();
    assert_eq!(received.target, path);
    assert_eq!(received.header("x-task-secret"), Some("5ec4e7"));
}

#[tokio::test]
async fn forged_tokens_reach_no_service() {
    let fixture = Fixture::start().await;
    let forger = Forger::new(&fixture.key, UserId::generate(), testkit::INCARNATION);
    let good = fixture
        .http
        .get("/user")
        .bearer(&forger.good())
        .send()
        .await;
    assert_eq!((good.status, fixture.users.count()), (200, 1));
    expect_forgeries_refused(&fixture.http, "/user", &forger).await;
    // The last of them is valid: a lower-case scheme.
    assert_eq!(fixture.users.count(), 2);
    for forgery in forger.forgeries() {
        let request = fixture
            .http
            .get("/people-task/tasks")
            .bearer(&forgery.token);
        let reply = request.send().await;
        assert_eq!(reply.status, 401, "{}", forgery.what);
    }
    assert_eq!(fixture.tasks.count(), 0);
}

#[tokio::test]
async fn a_revoked_token_is_refused_within_a_second() {
    let fixture = Fixture::start().await;
    let get_user = |token: &str| fixture.http.get("/user").bearer(token).send();
    let (revoked, other) = (UserId::generate(), UserId::generate());
    let revoked_token = token(&fixture.signer, revoked);
    let other_token = token(&fixture.signer, other);
    assert_eq!(get_user(&revoked_token).await.status, 200);
    let before = fixture.users.with(|state| {
        state.raised = vec![(revoked, 2)];
        state.polls.len()
    });
    let reply = eventually("the revocation", || async {
        let polls = fixture.users.with(|state| state.polls.len()) - before;
        let reply = get_user(&revoked_token).await;
        assert!(reply.status == 401 || polls <= 2, "{polls}");
        (reply.status == 401).then_some(reply)
    })
    .await;
    reply.expect_problem(401, "token-revoked");
    eventually("two polls within a second", || async {
        let are_close = |polls: &[Instant]| polls[1] - polls[0] < Duration::from_secs(1);
        let polls = fixture.users.with(|state| state.polls.clone());
        polls.windows(2).any(are_close).then_some(())
    })
    .await;
    assert_eq!(get_user(&other_token).await.status, 200);
}

#[tokio::test]
async fn all_requests_with_a_new_key_wait_for_one_fetch_of_the_keys() {
    let fixture = Fixture::start().await;
    let next = signer(&[]);
    let both = keys_of(&[&fixture.signer, &next]);
    let before = fixture.users.with(|state| {
        state.keys = Some(both);
        state.keys_requests
    });
    let new = token(&next, UserId::generate());
    let request = || fixture.http.get("/user").bearer(&new).send();
    let replies = futures_util::future::join_all((0..50).map(|_| request())).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    let requests = fixture.users.with(|state| state.keys_requests) - before;
    // The second one is for requests that came while the first one was under way.
    assert!((1..=2).contains(&requests), "{requests}");
    let reply = fixture.http.get("/user").bearer(&fixture.token());
    assert_eq!(reply.send().await.status, 200);
}

#[tokio::test]
async fn a_token_with_an_unknown_key_is_not_judged_while_the_keys_are_unavailable() {
    let fixture = Fixture::start().await;
    fixture.users.with(|state| state.keys = None);
    let new = token(&signer(&[]), UserId::generate());
    let reply = fixture.http.get("/user").bearer(&new).send().await;
    reply.expect_problem(503, "not-ready");
    let reply = fixture.http.get("/user").bearer(&fixture.token());
    assert_eq!(reply.send().await.status, 200);
}

#[tokio::test]
async fn a_gateway_without_keys_is_not_ready() {
    let fixture = Fixture::start().await;
    fixture.users.with(|state| state.keys = None);
    let gateway = start_gateway(&fixture.users, &fixture.tasks, &[]).await;
    let http = testkit::Http::to(gateway.address.unwrap());
    let ready = http.get("/readyz").send().await.expect(503);
    assert_eq!(ready.json["checks"]["keys"], "failing");
    assert_eq!(ready.json["checks"]["user-service"], "ok");
    let reply = http.get("/user").bearer(&fixture.token()).send().await;
    reply.expect_problem(503, "not-ready");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(http.get("/healthz").send().await.status, 200);
}

#[tokio::test]
async fn the_gateway_is_ready_while_a_service_is_unavailable() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    fixture.users.stop().await;
    let ready = eventually("the service to be unavailable", || async {
        let ready = fixture.http.get("/readyz").send().await.expect(200);
        (ready.json["checks"]["user-service"] == "failing").then_some(ready)
    })
    .await;
    assert_eq!(ready.json["checks"]["people-task-service"], "ok");
    let reply = fixture
        .http
        .get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await;
    assert_eq!(reply.status, 200);
}
