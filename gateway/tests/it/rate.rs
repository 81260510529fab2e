use crate::world::World;

#[tokio::test]
async fn sign_in_is_limited_by_address_and_other_routes_are_not() {
    let settings = [
        ("RATE_LIMIT_CREDENTIALS_BURST", "3"),
        ("TRUSTED_PROXIES", "127.0.0.1/32"),
    ];
    let world = World::with(&settings).await;
    let sign_in = |client: &str| {
        world
            .http
            .post("/user/auth")
            .header("x-forwarded-for", client)
            .send()
    };
    for _ in 0..3 {
        assert_eq!(sign_in("198.51.100.7").await.status, 200);
    }
    let reply = sign_in("198.51.100.7").await;
    reply.expect_problem(429, "rate-limited");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(reply.header("ratelimit").is_some() && reply.header("ratelimit-policy").is_some());
    assert_eq!(sign_in("198.51.100.8").await.status, 200);
    let token = world.token();
    assert_eq!(
        world.http.get("/user").bearer(&token).send().await.status,
        200
    );
}

#[tokio::test]
async fn off_limits_nothing() {
    let world = World::with(&[("RATE_LIMIT", "off"), ("RATE_LIMIT_CREDENTIALS_BURST", "1")]).await;
    for _ in 0..5 {
        assert_eq!(world.http.post("/user/auth").send().await.status, 200);
    }
}
