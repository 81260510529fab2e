use reqwest::Method;
use testkit::{Reply, Request};

use crate::fixture::Fixture;

const ALLOWED: &str = "https://app.example.com";

async fn preflight(fixture: &Fixture, origin: &str, method: &str, headers: &str) -> Reply {
    let request = fixture.http.request(Method::OPTIONS, "/people-task/tasks");
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
async fn no_origin_is_allowed_by_default() {
    let fixture = Fixture::start().await;
    let refused = preflight(&fixture, ALLOWED, "GET", "authorization").await;
    refused.expect_problem(405, "method-not-allowed");
    let reply = from(fixture.http.get("/people-task/tasks"), ALLOWED)
        .send()
        .await
        .expect(200);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn an_allowed_origin_may_call_the_api_and_read_responses() {
    let settings = [(
        "CORS_ALLOWED_ORIGINS",
        "https://app.example.com,http://localhost:3000",
    )];
    let fixture = Fixture::with(&settings).await;
    // OpenTelemetry in a browser sends both headers of a trace.
    let wanted = "authorization, content-type, if-match, traceparent, tracestate, x-request-id, x-task-secret";
    let reply = preflight(&fixture, ALLOWED, "PUT", wanted)
        .await
        .expect(200);
    assert_eq!(reply.header("access-control-allow-origin"), Some(ALLOWED));
    assert!(reply.header("x-request-id").is_some());
    let methods = reply.header("access-control-allow-methods").unwrap();
    assert!(methods.contains("DELETE") && methods.contains("PUT"));
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    assert_eq!(fixture.tasks.count(), 0, "the gateway responds itself");

    // Errors too, so that the page can read why.
    let allowed = from(fixture.http.get("/people-task/tasks"), ALLOWED);
    let refused = from(fixture.http.get("/users"), ALLOWED);
    for (request, status) in [(allowed, 200), (refused, 401)] {
        let reply = request.send().await.expect(status);
        assert_eq!(reply.header("access-control-allow-origin"), Some(ALLOWED));
        let exposed = reply.header("access-control-expose-headers").unwrap();
        for name in [
            "date",
            "etag",
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
async fn other_origins_headers_and_methods_are_refused() {
    let fixture = Fixture::with(&[("CORS_ALLOWED_ORIGINS", ALLOWED)]).await;
    for (origin, method, headers, detail) in [
        ("https://evil.example", "GET", "authorization", "origin"),
        ("https://app.example.com.evil.example", "GET", "", "origin"),
        ("http://app.example.com", "GET", "", "origin"),
        ("null", "GET", "", "origin"),
        (
            ALLOWED,
            "PATCH",
            "",
            "must be one of: GET, HEAD, POST, PUT, DELETE",
        ),
        (
            ALLOWED,
            "GET",
            "x-auth-user",
            "may only list: accept, accept-language, authorization",
        ),
    ] {
        let reply = preflight(&fixture, origin, method, headers).await;
        reply.expect_problem(400, "cors-refused");
        let explained = reply.json["detail"].as_str().unwrap();
        assert!(explained.contains(detail), "{explained}");
        assert_eq!(
            reply.header("access-control-allow-origin"),
            None,
            "{origin}"
        );
    }
    let other = from(
        fixture.http.get("/people-task/tasks"),
        "https://evil.example",
    );
    let reply = other.send().await.expect(200);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}
