use reqwest::Method;

use crate::world::World;

#[tokio::test]
async fn a_head_is_answered_like_a_get_without_the_body() {
    let world = World::start().await;
    let token = world.token();
    for path in [
        "/users/count",
        "/people-task/tasks",
        "/.well-known/jwks.json",
        "/docs",
        "/healthz",
        "/assets/style.css",
    ] {
        let ask = |method| world.http.request(method, path).bearer(&token).send();
        let (get, head) = (ask(Method::GET).await, ask(Method::HEAD).await);
        assert_eq!((get.status, head.status), (200, 200), "{path}");
        assert!(!get.text.is_empty() && head.text.is_empty(), "{path}");
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn a_head_needs_the_token_that_a_get_needs() {
    let world = World::start().await;
    let reply = world.http.request(Method::HEAD, "/users").send().await;
    assert_eq!((reply.status, reply.text.as_str()), (401, ""));
    assert_eq!(world.users.count(), 0);
}

#[tokio::test]
async fn no_head_goes_where_a_get_changes_something() {
    let world = World::start().await;
    let path = "/people-task/webhooks/65f0c0ffee65f0c0ffee65f0";
    let request = world
        .http
        .request(Method::HEAD, path)
        .bearer(&world.token());
    let reply = request.send().await.expect(405);
    assert_eq!(reply.header("allow"), Some("DELETE, GET"));
    assert_eq!(world.tasks.count(), 0);
}

#[tokio::test]
async fn a_connection_goes_on_after_a_head() {
    let world = World::start().await;
    let ask = |method: &str| format!("{method} /people-task/tasks HTTP/1.1\r\nHost: x\r\n\r\n");
    let answer = world.raw(&format!("{}{}", ask("HEAD"), ask("GET"))).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
    assert_eq!(answer.matches("content-length: 11").count(), 2, "{answer}");
    assert_eq!(answer.matches(r#"{"ok":true}"#).count(), 1, "{answer}");
    assert!(answer.ends_with(r#"{"ok":true}"#), "{answer}");
}
