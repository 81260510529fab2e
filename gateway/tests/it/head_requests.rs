use reqwest::Method;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_head_response_has_the_headers_of_get_and_no_body() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    for path in [
        "/users/count",
        "/people-task/tasks",
        "/.well-known/jwks.json",
        "/docs",
        "/healthz",
        "/assets/style.css",
    ] {
        let ask = |method| fixture.http.request(method, path).bearer(&token).send();
        let (get, head) = (ask(Method::GET).await, ask(Method::HEAD).await);
        assert_eq!((get.status, head.status), (200, 200), "{path}");
        assert!(!get.text.is_empty() && head.text.is_empty(), "{path}");
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn a_head_requires_the_same_token_as_get() {
    let fixture = Fixture::start().await;
    let reply = fixture.http.request(Method::HEAD, "/users").send().await;
    assert_eq!((reply.status, reply.text.as_str()), (401, ""));
    assert_eq!(fixture.users.count(), 0);
}

#[tokio::test]
async fn a_get_that_deletes_does_not_accept_head() {
    let fixture = Fixture::start().await;
    let path = "/people-task/webhooks/65f0c0ffee65f0c0ffee65f0";
    let request = fixture
        .http
        .request(Method::HEAD, path)
        .bearer(&fixture.token());
    let reply = request.send().await.expect(405);
    assert_eq!(reply.header("allow"), Some("DELETE, GET"));
    assert_eq!(fixture.tasks.count(), 0);
}

#[tokio::test]
async fn a_connection_can_be_reused_after_a_head() {
    let fixture = Fixture::start().await;
    let ask = |method: &str| format!("{method} /people-task/tasks HTTP/1.1\r\nHost: x\r\n\r\n");
    let requests = format!("{}{}", ask("HEAD"), ask("GET"));
    let response = fixture.pipeline(&requests, 2).await;
    assert_eq!(response.matches("HTTP/1.1 200").count(), 2, "{response}");
    assert_eq!(
        response.matches("content-length: 11").count(),
        2,
        "{response}"
    );
    assert_eq!(response.matches(r#"{"ok":true}"#).count(), 1, "{response}");
    assert!(response.ends_with(r#"{"ok":true}"#), "{response}");
}

#[tokio::test]
async fn a_head_of_what_the_client_has_says_nothing_of_its_length() {
    let fixture = Fixture::start().await;
    let head = || fixture.http.request(Method::HEAD, "/assets/style.css");
    let reply = head().send().await.expect(200);
    let known = head().header("if-none-match", reply.header("etag").unwrap());
    let reply = known.send().await.expect(304);
    assert_eq!(reply.header("content-length"), None);
}
