use crate::fixture::Fixture;

#[tokio::test]
async fn pages_have_a_strict_content_security_policy() {
    let fixture = Fixture::start().await;
    for path in [
        "/",
        "/account",
        "/docs",
        "/reset-password?code=c0de",
        "/tasks?id=1",
        "/verify-email?code=c0de",
    ] {
        let reply = fixture.http.get(path).send().await.expect(200);
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
    assert_eq!(fixture.users.count() + fixture.tasks.count(), 0);
}

#[tokio::test]
async fn every_asset_of_a_page_exists() {
    let fixture = Fixture::start().await;
    for page in [
        "/",
        "/account",
        "/docs",
        "/reset-password",
        "/tasks",
        "/verify-email",
    ] {
        let text = fixture.http.get(page).send().await.text;
        for asset in text.split('"').filter(|part| part.starts_with("/assets/")) {
            let reply = fixture.http.get(asset).send().await.expect(200);
            assert!(!reply.text.is_empty(), "{asset}");
        }
    }
    let script = fixture.http.get("/assets/dom.js").send().await.expect(200);
    assert_eq!(
        script.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
}

#[tokio::test]
async fn assets_are_compressed_and_sent_again_only_after_a_change() {
    let fixture = Fixture::start().await;
    let script = "/assets/vendor/marked.esm.js";
    let plain = fixture.http.get(script).send().await.expect(200);
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("accept-encoding"));
    let request = fixture.http.get(script).header("accept-encoding", "gzip");
    let compressed = request.send().await.expect(200);
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    let length = |reply: &testkit::Reply| reply.header("content-length").unwrap().parse::<usize>();
    assert!(length(&compressed).unwrap() < length(&plain).unwrap() / 2);

    let tag = plain.header("etag").unwrap();
    let request = fixture.http.get(script).header("if-none-match", tag);
    let unchanged = request.send().await.expect(304);
    assert_eq!(unchanged.text, "");
    let request = fixture.http.get(script).header("if-none-match", "W/\"0\"");
    let _ = request.send().await.expect(200);
}

#[tokio::test]
async fn notes_on_vendored_files_are_not_served() {
    let fixture = Fixture::start().await;
    for path in [
        "/assets/vendor/README.md",
        "/assets/",
        "/assets/../home.html",
        "/home",
    ] {
        let _ = fixture.http.get(path).send().await.expect(404);
    }
}
