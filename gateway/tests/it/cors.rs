use reqwest::Method;
use testkit::{Reply, Request};

use crate::world::World;

const ALLOWED: &str = "https://app.example.com";

async fn preflight(world: &World, origin: &str, method: &str, headers: &str) -> Reply {
    let request = world.http.request(Method::OPTIONS, "/people-task/tasks");
    let request = request
        .header("origin", origin)
        .header("access-control-request-method", method)
        .header("access-control-request-headers", headers);
    request.send().await
}

fn from(request: Request, origin: &str) -> Request {
    request.header("origin", origin)
}

#[tokio::test]
async fn without_a_list_no_page_of_another_origin_may_call() {
    let world = World::start().await;
    let refused = preflight(&world, ALLOWED, "GET", "authorization").await;
    refused.expect_problem(405, "method-not-allowed");
    let reply = from(world.http.get("/people-task/tasks"), ALLOWED)
        .send()
        .await
        .expect(200);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn an_origin_of_the_list_may_call_and_read_what_the_api_says() {
    let settings = [(
        "CORS_ALLOWED_ORIGINS",
        "https://app.example.com,http://localhost:3000",
    )];
    let world = World::with(&settings).await;
    let wanted = "authorization, content-type, x-task-secret";
    let reply = preflight(&world, ALLOWED, "PUT", wanted).await.expect(200);
    assert_eq!(reply.header("access-control-allow-origin"), Some(ALLOWED));
    assert!(reply.header("x-request-id").is_some());
    let methods = reply.header("access-control-allow-methods").unwrap();
    assert!(methods.contains("DELETE") && methods.contains("PUT"));
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    assert_eq!(world.tasks.count(), 0, "the gateway answers by itself");

    // An answer and a refusal alike, or the page would not learn why.
    let allowed = from(world.http.get("/people-task/tasks"), ALLOWED);
    let refused = from(world.http.get("/users"), ALLOWED);
    for (request, status) in [(allowed, 200), (refused, 401)] {
        let reply = request.send().await.expect(status);
        assert_eq!(reply.header("access-control-allow-origin"), Some(ALLOWED));
        let exposed = reply.header("access-control-expose-headers").unwrap();
        for name in [
            "ratelimit",
            "ratelimit-policy",
            "retry-after",
            "x-request-id",
        ] {
            let mut names = exposed.split(',').map(str::trim);
            assert!(names.any(|exposed| exposed == name), "{name}: {exposed}");
        }
        assert!(reply.header("vary").unwrap().contains("Origin"));
    }
}

#[tokio::test]
async fn other_origins_headers_and_methods_are_not_allowed() {
    let world = World::with(&[("CORS_ALLOWED_ORIGINS", ALLOWED)]).await;
    for (origin, method, headers) in [
        ("https://evil.example", "GET", "authorization"),
        ("https://app.example.com.evil.example", "GET", ""),
        ("http://app.example.com", "GET", ""),
        ("null", "GET", ""),
        (ALLOWED, "PATCH", ""),
        (ALLOWED, "GET", "x-auth-user"),
    ] {
        let reply = preflight(&world, origin, method, headers).await.expect(400);
        assert_eq!(
            reply.header("access-control-allow-origin"),
            None,
            "{origin}"
        );
    }
    let stranger = from(world.http.get("/people-task/tasks"), "https://evil.example");
    let reply = stranger.send().await.expect(200);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}
