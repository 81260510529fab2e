use reqwest::Method;

use crate::world::World;

#[tokio::test]
async fn what_is_not_in_the_table_does_not_exist_with_or_without_a_token() {
    let world = World::start().await;
    let token = world.token();
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
        let with = world.http.get(path).bearer(&token).send().await;
        with.expect_problem(404, "not-found");
        world
            .http
            .get(path)
            .send()
            .await
            .expect_problem(404, "not-found");
    }
    let internal = world.http.post("/internal/users/1/erase").send().await;
    internal.expect_problem(404, "not-found");
    assert_eq!(world.users.count() + world.tasks.count(), 0);
}

#[tokio::test]
async fn a_wrong_method_is_405_with_what_is_allowed_before_the_token_is_looked_at() {
    let world = World::start().await;
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
        let reply = world.http.request(method.clone(), path).send().await;
        reply.expect_problem(405, "method-not-allowed");
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[tokio::test]
async fn the_path_and_query_that_were_checked_are_those_that_are_sent() {
    let world = World::start().await;
    let token = world.token();
    let get = |path: &'static str| world.http.get(path).bearer(&token).send();
    assert_eq!(
        get("/users?filter=plan:a%2Cb&filter=x:1&limit=5&pattern=%C3%A4")
            .await
            .status,
        200
    );
    let seen = world.users.last();
    assert_eq!(
        seen.target,
        "/users?filter=plan:a%2Cb&filter=x:1&limit=5&pattern=%C3%A4"
    );
    // An encoded letter names the same path, and the service gets it plain.
    assert_eq!(get("/%75sers/count").await.status, 200);
    assert_eq!(world.users.last().target, "/users/count");
    assert_eq!(
        get("/people-task/tasks/65f0c0ffee65f0c0ffee65f0")
            .await
            .status,
        200
    );
    assert_eq!(
        world.tasks.last().target,
        "/people-task/tasks/65f0c0ffee65f0c0ffee65f0"
    );
}

#[tokio::test]
async fn a_value_that_no_identifier_has_is_never_sent_and_the_service_gets_an_unknown_one() {
    let world = World::start().await;
    let token = world.token();
    // Sent by hand: a well-behaved client would resolve the dots.
    let send = async |path: &str, header: &str| {
        let method = if path.ends_with("approve") {
            "PUT"
        } else {
            "GET"
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        world.raw(&format!("{head}{header}\r\n")).await
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
        let answer = send(path, &bearer).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        let service = if path.starts_with("/users") {
            &world.users
        } else {
            &world.tasks
        };
        assert_eq!(service.last().target, sent);
        if path.starts_with("/users") {
            let answer = send(path, "").await;
            assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
        }
    }
}

#[tokio::test]
async fn the_newer_paths_reach_the_people_task_service_unchanged() {
    let world = World::start().await;
    let path = "/plugins/appmixer/utils/tasks/tasks/65f0c0ffee65f0c0ffee65f0/approve";
    let reply = world.http.put(path).bearer(&world.token()).send().await;
    assert_eq!(reply.status, 200);
    assert_eq!(world.tasks.last().target, path);
}
