use crate::world::World;

#[tokio::test]
async fn pages_are_served_under_a_strict_policy() {
    let world = World::start().await;
    for path in [
        "/",
        "/docs",
        "/reset-password?code=c0de",
        "/tasks?id=1",
        "/verify-email?code=c0de",
    ] {
        let reply = world.http.get(path).send().await.expect(200);
        assert_eq!(
            reply.header("content-type"),
            Some("text/html; charset=utf-8"),
            "{path}"
        );
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert!(!reply.text.contains("c0de"));
    }
    assert_eq!(world.users.count() + world.tasks.count(), 0);
}

#[tokio::test]
async fn what_pages_load_is_there() {
    let world = World::start().await;
    for page in ["/", "/docs", "/reset-password", "/tasks", "/verify-email"] {
        let text = world.http.get(page).send().await.text;
        for asset in text.split('"').filter(|part| part.starts_with("/assets/")) {
            let reply = world.http.get(asset).send().await.expect(200);
            assert!(!reply.text.is_empty(), "{asset}");
        }
    }
    let script = world.http.get("/assets/page.js").send().await.expect(200);
    assert_eq!(
        script.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
}
