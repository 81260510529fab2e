use std::time::Instant;

use futures_util::future::join_all;
use reqwest::Method;

use crate::fixture::Fixture;

#[tokio::test]
async fn sign_ins_are_limited_by_client_address() {
    let settings = [
        ("RATE_LIMIT_CREDENTIALS_BURST", "3"),
        // One per minute, so that none is replenished during the test.
        ("RATE_LIMIT_CREDENTIALS_PER_MINUTE", "1"),
        ("TRUSTED_PROXIES", "127.0.0.1/32"),
    ];
    let fixture = Fixture::with(&settings).await;
    let sign_in = |client: &str| {
        fixture
            .http
            .post("/user/auth")
            .header("x-forwarded-for", client)
            .send()
    };
    for left in [2, 1, 0] {
        let reply = sign_in("198.51.100.7").await.expect(200);
        let policy = reply.header("ratelimit-policy");
        assert_eq!(policy, Some("\"credentials\";q=3;w=180"));
        let expected = format!("\"credentials\";r={left};t=60");
        assert_eq!(reply.header("ratelimit"), Some(expected.as_str()));
    }
    let reply = sign_in("198.51.100.7").await;
    reply.expect_problem(429, "rate-limited");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    let expected = format!("\"credentials\";r=0;t={wait}");
    assert_eq!(reply.header("ratelimit"), Some(expected.as_str()));
    assert_eq!(reply.json["violated-policies"][0], "credentials");
    assert_eq!(sign_in("198.51.100.8").await.status, 200);
    let token = fixture.token();
    assert_eq!(
        fixture.http.get("/user").bearer(&token).send().await.status,
        200
    );
}

#[tokio::test]
async fn keys_that_users_make_are_limited() {
    let fixture = Fixture::with(&[]).await;
    let token = fixture.token();
    let send = |method, path| fixture.http.request(method, path).bearer(&token).send();
    for made in 0..=500 {
        let reply = send(Method::POST, "/user/keys").await;
        if reply.status == 429 {
            assert!(made >= 100, "{made}");
            reply.expect_problem(429, "rate-limited");
            break;
        }
        assert!(made < 500);
    }
    // Who has made too many can still end them.
    let ended = send(Method::DELETE, "/user/keys/65b8f0a2c3d4e5f601234567").await;
    assert_eq!(ended.status, 200);
}

#[tokio::test]
async fn what_the_gateway_responds_itself_counts_too_except_for_the_liveness_probe() {
    let settings = [
        ("RATE_LIMIT_PER_SECOND", "1"),
        ("TRUSTED_PROXIES", "127.0.0.1/32"),
    ];
    let fixture = Fixture::with(&settings).await;
    let send = |method: &Method, path: &'static str, client: &str| {
        let request = fixture.http.request(method.clone(), path);
        request.header("x-forwarded-for", client).send()
    };
    let passed = async |number: usize, method: &Method, path: &'static str, client: &str| {
        let replies = join_all((0..number).map(|_| send(method, path, client))).await;
        replies.iter().filter(|reply| reply.status != 429).count() as u64
    };
    let check = async |number: usize, method: Method, path: &'static str| {
        let client = format!("198.51.100.{number}");
        let started = Instant::now();
        let reply = send(&method, path, &client).await;
        let policy = reply.header("ratelimit-policy");
        assert_eq!(policy, Some("\"requests\";q=2;w=2"), "{method} {path}");
        let first = passed(5, &method, path, &client).await;
        // A count of its own would allow both.
        let second = passed(2, &Method::GET, "/user", &client).await;
        let allowed = 2 + started.elapsed().as_secs();
        assert!(1 + first + second <= allowed, "{method} {path}");
    };
    let paths = [
        (Method::GET, "/readyz"),
        (Method::HEAD, "/readyz"),
        (Method::GET, "/openapi.json"),
        (Method::GET, "/docs"),
        (Method::GET, "/assets/style.css"),
        (Method::GET, "/nothing"),
        (Method::DELETE, "/users/count"),
        (Method::POST, "/docs"),
    ];
    let checks = paths.into_iter().enumerate();
    join_all(checks.map(|(number, (method, path))| check(number, method, path))).await;
    for _ in 0..50 {
        let reply = send(&Method::GET, "/healthz", "198.51.100.0").await;
        assert_eq!(reply.status, 200);
    }
}

#[tokio::test]
async fn rate_limits_can_be_turned_off() {
    let fixture =
        Fixture::with(&[("RATE_LIMIT", "off"), ("RATE_LIMIT_CREDENTIALS_BURST", "1")]).await;
    for _ in 0..5 {
        assert_eq!(fixture.http.post("/user/auth").send().await.status, 200);
    }
}
