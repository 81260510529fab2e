use crate::fixture::{Fixture, start_error};

#[tokio::test]
async fn pages_have_a_strict_content_security_policy() {
    let fixture = Fixture::start().await;
    for path in [
        "/",
        "/account",
        "/admin",
        "/docs",
        "/keys",
        "/reset-password?code=c0de",
        "/sessions",
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
        "/admin",
        "/docs",
        "/keys",
        "/reset-password",
        "/sessions",
        "/tasks",
        "/verify-email",
    ] {
        let text = fixture.http.get(page).send().await.text;
        let mut count = 0;
        for asset in text.split('"').filter(|part| part.starts_with("/assets/")) {
            let reply = fixture.http.get(asset).send().await.expect(200);
            assert!(!reply.text.is_empty(), "{asset}");
            count += 1;
        }
        assert!(count > 0, "{page}");
    }
    let script = fixture
        .http
        .get("/assets/tasks.js")
        .send()
        .await
        .expect(200);
    assert_eq!(
        script.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
}

#[tokio::test]
async fn an_asset_is_also_served_under_any_version() {
    let fixture = Fixture::start().await;
    let plain = fixture.http.get("/assets/texts/en.js").send().await;
    let versioned = "/assets/0123456789abcdef/texts/en.js";
    let versioned = fixture.http.get(versioned).send().await.expect(200);
    assert_eq!(versioned.text, plain.text);
    // It is not the version of this gateway.
    assert_eq!(versioned.header("cache-control"), Some("no-cache"));
    let unknown = "/assets/nonsense/texts/en.js";
    let _ = fixture.http.get(unknown).send().await.expect(404);
}

#[tokio::test]
async fn a_page_names_the_texts_of_the_reader_s_language() {
    let fixture = Fixture::start().await;
    for (accepted, expected, other) in [
        ("de-AT,de;q=0.9,en;q=0.8", "texts/de.js", "texts/en.js"),
        ("fr,en;q=0.5,de;q=0.3", "texts/en.js", "texts/de.js"),
        ("fr", "texts/en.js", "texts/de.js"),
    ] {
        let request = fixture
            .http
            .get("/tasks")
            .header("accept-language", accepted);
        let page = request.send().await.expect(200);
        assert!(page.text.contains(expected), "{accepted}");
        assert!(!page.text.contains(other), "{accepted}");
        let vary = Some("accept-encoding, accept-language");
        assert_eq!(page.header("vary"), vary);
    }
}

#[tokio::test]
async fn assets_are_compressed_and_sent_again_only_after_a_change() {
    let fixture = Fixture::start().await;
    let script = "/assets/markdown.js";
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
async fn pages_have_the_name_the_logo_and_the_colour_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let logo = folder.path().join("logo.svg");
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 2 1\"/>";
    std::fs::write(&logo, svg).unwrap();
    let fixture = Fixture::with(&[
        ("PAGES_NAME", "Müller & Söhne"),
        ("PAGES_COLOR", "#FFD400"),
        ("PAGES_LOGO", logo.to_str().unwrap()),
    ])
    .await;
    let page = fixture.http.get("/tasks").send().await.expect(200);
    assert!(page.text.contains("<title>Müller &amp; Söhne</title>"));
    let shown = fixture.http.get("/assets/logo").send().await.expect(200);
    assert_eq!(shown.header("content-type"), Some("image/svg+xml"));
    assert_eq!(shown.text, svg);
    let style = fixture
        .http
        .get("/assets/style.css")
        .send()
        .await
        .expect(200);
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    assert!(
        style
            .text
            .contains("--accent: #ffd400; --accent-ink: #000000;")
    );
}

#[tokio::test]
async fn settings_of_pages_that_cannot_be_used_are_refused_with_advice() {
    for (name, value, advice) in [
        ("PAGES", "no", "Set it to `on` or `off`."),
        (
            "PAGES_COLOR",
            "blue",
            "Set it to a colour such as `#1f5fd1` or `#06c`.",
        ),
        (
            "PAGES_NAME",
            "two\nlines",
            "Set it to a text of 1 to 40 characters in one line.",
        ),
        (
            "PAGES_LOGO",
            "/missing.svg",
            "Set it to an SVG or PNG file of at most 65536 bytes",
        ),
    ] {
        let error = start_error(&[(name, value)]).await;
        assert!(error.contains(name) && error.contains(advice), "{error}");
    }
}

#[tokio::test]
async fn without_pages_their_paths_are_unknown() {
    let fixture = Fixture::with(&[("PAGES", "off")]).await;
    let unknown = fixture.http.get("/unknown").send().await.expect(404);
    for path in [
        "/",
        "/account",
        "/admin",
        "/docs",
        "/keys",
        "/reset-password",
        "/sessions",
        "/tasks",
        "/verify-email",
        "/assets/style.css",
        "/assets/tasks.js",
        "/assets/logo",
    ] {
        let reply = fixture.http.get(path).send().await.expect(404);
        assert_eq!(reply.json["detail"], unknown.json["detail"], "{path}");
    }
    let _ = fixture.http.post("/docs").send().await.expect(404);
    let document = fixture.http.get("/openapi.json").send().await.expect(200);
    assert_eq!(document.header("content-type"), Some("application/json"));
    assert_eq!(document.json["info"]["title"], "Countersign");
}

#[tokio::test]
async fn notes_on_vendored_files_are_not_served() {
    let fixture = Fixture::start().await;
    for path in [
        "/assets/vendor/README.md",
        "/assets/",
        "/assets/../home.html",
        "/home",
        "/layout",
    ] {
        let _ = fixture.http.get(path).send().await.expect(404);
    }
}
