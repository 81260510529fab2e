use crate::fixture::Fixture;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Headers that a caller may send and that no service may receive.
const NOT_FORWARDED: &str = "X-Auth-User X_Auth_User X.Auth.User x-AUTH-user X-User-Id X-Real-IP Forwarded \
    Cookie Proxy-Authorization Keep-Alive TE Trailer Via X-HTTP-Method-Override \
    X-Original-URL Expect Range x_task_secret";

/// The headers that a service receives of a request with all of them.
const FORWARDED: &str = "accept accept-language content-encoding content-length host traceparent tracestate \
    user-agent x-forwarded-for x-forwarded-host x-forwarded-proto x-request-id";

#[tokio::test]
async fn only_allow_listed_headers_reach_a_service() {
    let fixture = Fixture::start().await;
    let mut request = fixture.http.post("/user/auth");
    for name in NOT_FORWARDED.split_whitespace() {
        request = request.header(name, "evil");
    }
    let request = request
        .header("Accept-Language", "de")
        .header("Content-Encoding", "gzip")
        .header("Tracestate", "a=1");
    let request = request
        .header("User-Agent", "tests/1")
        .header("Connection", "X-Task-Secret");
    let reply = request
        .header("X-Task-Secret", "claimed")
        .body("{}")
        .send()
        .await;
    assert_eq!(reply.status, 200);
    let received = fixture.users.last();
    let mut names: Vec<_> = received
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names.join(" "), FORWARDED);
    assert_eq!(received.header("user-agent"), Some("tests/1"));
    assert!(received.headers.iter().all(|(_, value)| value != "evil"));
}

#[tokio::test]
async fn a_request_id_and_a_trace_are_continued_or_begun() {
    let fixture = Fixture::start().await;
    let request = fixture
        .http
        .post("/user/auth")
        .header("x-request-id", "req-1.A_b");
    let reply = request.header("traceparent", PARENT).send().await;
    assert_eq!(reply.header("x-request-id"), Some("req-1.A_b"));
    let received = fixture.users.last();
    assert_eq!(received.header("x-request-id"), Some("req-1.A_b"));
    // Nothing is exported here, so the gateway has no span of its own to name.
    assert_eq!(received.header("traceparent"), Some(PARENT));

    let bad = "a b".repeat(60);
    let reply = fixture
        .http
        .post("/user/auth")
        .header("x-request-id", &bad)
        .send()
        .await;
    let made = reply.header("x-request-id").unwrap().to_owned();
    assert_eq!(made.len(), 16);
    assert_eq!(
        fixture.users.last().header("x-request-id"),
        Some(made.as_str())
    );
    let begun = fixture
        .users
        .last()
        .header("traceparent")
        .map(str::to_owned);
    assert!(begun.is_some_and(|trace| trace.starts_with("00-") && trace != PARENT));
}

#[tokio::test]
async fn forwarded_headers_count_only_from_trusted_proxies() {
    let fixture = Fixture::start().await;
    let send = |fixture: &Fixture| {
        let request = fixture
            .http
            .post("/user/auth")
            .header("x-forwarded-for", "6.6.6.6, 198.51.100.7");
        request
            .header("x-forwarded-proto", "https")
            .header("x-forwarded-host", "api.example")
            .send()
    };
    let _ = send(&fixture).await;
    let received = fixture.users.last();
    assert_eq!(received.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(received.header("x-forwarded-proto"), Some("http"));
    assert_eq!(
        received.header("x-forwarded-host"),
        Some(fixture.address().to_string().as_str())
    );

    let trusting = Fixture::with(&[("TRUSTED_PROXIES", "127.0.0.0/8")]).await;
    let _ = send(&trusting).await;
    let received = trusting.users.last();
    assert_eq!(received.header("x-forwarded-for"), Some("198.51.100.7"));
    assert_eq!(received.header("x-forwarded-proto"), Some("https"));
    assert_eq!(received.header("x-forwarded-host"), Some("api.example"));
}

#[tokio::test]
async fn only_allow_listed_headers_reach_the_caller() {
    let fixture = Fixture::start().await;
    let reply = fixture
        .http
        .get("/user?response=headers")
        .bearer(&fixture.token())
        .send()
        .await;
    assert_eq!(reply.header("location"), Some("/users/1/delete-status/2"));
    assert_eq!(
        reply.header("link"),
        Some("</users?offset=1>; rel=\"next\"")
    );
    assert_eq!(reply.header("etag"), Some("\"1\""));
    assert_eq!(reply.header("accept-encoding"), Some("identity"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    for hidden in ["server", "x-upstream", "set-cookie"] {
        assert_eq!(reply.header(hidden), None, "{hidden}");
    }
}
