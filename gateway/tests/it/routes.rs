use std::fmt::Write as _;

use gateway::routes::ROUTES;
use reqwest::Method;

use crate::fixture::Fixture;

#[tokio::test]
async fn paths_that_are_not_routed_are_404() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    for path in [
        "/nothing",
        "/internal/revocations",
        "/internal/users/65f0c0ffee65f0c0ffee65f0/erase",
        "/users/",
        "//users",
        "/people-task",
        "/people-task/tasks/1/2/3",
        "/people-task/tasks/%2e%2e/%2e%2e/internal/revocations",
        "/plugins/appmixer/utils/tasks/deliveries/1/redeliver",
        "/metrics",
        "/user%2Fauth",
    ] {
        let with = fixture.http.get(path).bearer(&token).send().await;
        with.expect_problem(404, "not-found");
        fixture
            .http
            .get(path)
            .send()
            .await
            .expect_problem(404, "not-found");
    }
    let internal = fixture.http.post("/internal/users/1/erase").send().await;
    internal.expect_problem(404, "not-found");
    assert_eq!(fixture.users.count() + fixture.tasks.count(), 0);
}

#[tokio::test]
async fn a_wrong_method_is_405_before_the_token_is_checked() {
    let fixture = Fixture::start().await;
    for (method, path, allowed) in [
        (Method::DELETE, "/user/auth", "POST"),
        (Method::GET, "/user/auth", "POST"),
        (Method::PUT, "/user", "GET, HEAD, POST"),
        (Method::DELETE, "/users/count", "GET, HEAD"),
        (
            Method::POST,
            "/users/65f0c0ffee65f0c0ffee65f0",
            "DELETE, GET, HEAD, PUT",
        ),
        (Method::GET, "/people-task/tasks/1/approve", "PUT"),
        (
            Method::GET,
            "/plugins/appmixer/utils/tasks/webhooks/1",
            "DELETE",
        ),
        (Method::PATCH, "/people-task/tasks", "GET, HEAD, POST"),
        (Method::POST, "/docs", "GET, HEAD"),
        (Method::POST, "/reset-password", "GET, HEAD"),
        (Method::PUT, "/healthz", "GET, HEAD"),
    ] {
        let reply = fixture.http.request(method.clone(), path).send().await;
        reply.expect_problem(405, "method-not-allowed");
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[tokio::test]
async fn the_checked_path_and_the_query_are_forwarded() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    let get = |path: &'static str| fixture.http.get(path).bearer(&token).send();
    assert_eq!(
        get("/users?filter=plan:a%2Cb&filter=x:1&limit=5&pattern=%C3%A4")
            .await
            .status,
        200
    );
    let received = fixture.users.last();
    assert_eq!(
        received.target,
        "/users?filter=plan:a%2Cb&filter=x:1&limit=5&pattern=%C3%A4"
    );
    // An encoded letter is decoded for the service.
    assert_eq!(get("/%75sers/count").await.status, 200);
    assert_eq!(fixture.users.last().target, "/users/count");
    assert_eq!(
        get("/people-task/tasks/65f0c0ffee65f0c0ffee65f0")
            .await
            .status,
        200
    );
    assert_eq!(
        fixture.tasks.last().target,
        "/people-task/tasks/65f0c0ffee65f0c0ffee65f0"
    );
}

#[tokio::test]
async fn a_path_value_that_cannot_be_an_identifier_is_replaced() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    // As raw bytes, because an HTTP client would resolve the dots.
    let send = async |path: &str, header: &str| {
        let method = if path.ends_with("approve") {
            "PUT"
        } else {
            "GET"
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        fixture.raw(&format!("{head}{header}\r\n")).await
    };
    let bearer = format!("Authorization: Bearer {token}\r\n");
    for (path, sent) in [
        ("/users/%2e%2e", "/users/-"),
        ("/users/a%2Fb", "/users/-"),
        ("/users/ada@example.com?a=1", "/users/-?a=1"),
        (
            "/users/%2e/delete-status/%2e%2e",
            "/users/-/delete-status/-",
        ),
        (
            "/people-task/tasks/%2e%2e/approve",
            "/people-task/tasks/-/approve",
        ),
        ("/people-task/webhooks/a%00b", "/people-task/webhooks/-"),
    ] {
        let response = send(path, &bearer).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{path}: {response}");
        let service = if path.starts_with("/users") {
            &fixture.users
        } else {
            &fixture.tasks
        };
        assert_eq!(service.last().target, sent);
        if path.starts_with("/users") {
            let response = send(path, "").await;
            assert!(response.starts_with("HTTP/1.1 401"), "{path}: {response}");
        }
    }
}

#[tokio::test]
async fn plugin_paths_reach_the_people_task_service_unchanged() {
    let fixture = Fixture::start().await;
    let path = "/plugins/appmixer/utils/tasks/tasks/65f0c0ffee65f0c0ffee65f0/approve";
    let reply = fixture.http.put(path).bearer(&fixture.token()).send().await;
    assert_eq!(reply.status, 200);
    assert_eq!(fixture.tasks.last().target, path);
}

#[test]
fn each_route_has_the_reviewed_service_access_and_rate() {
    let mut table = String::new();
    for route in ROUTES {
        let (method, path) = (&route.method, route.path);
        let (service, access, rate) = (route.service, route.access, route.rate);
        writeln!(table, "{method} {path}: {service:?}, {access:?}, {rate:?}").unwrap();
    }
    insta::assert_snapshot!(table);
}
