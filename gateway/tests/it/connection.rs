//! Requests that are not plain, as bytes on a socket.

use crate::world::World;

const HOST: &str = "Host: gateway.example\r\n";

#[tokio::test]
async fn framing_that_contradicts_itself_is_refused_and_the_connection_ends() {
    let world = World::start().await;
    for headers in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4\r\nContent-Length: 4\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length : 4\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
    ] {
        let request = format!(
            "POST /user HTTP/1.1\r\n{HOST}{headers}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n{HOST}\r\n"
        );
        let answer = world.raw(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers:?}: {answer}");
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            1,
            "{headers:?}: {answer}"
        );
    }
    assert_eq!(world.users.count(), 0);
}

#[tokio::test]
async fn heads_that_are_not_plain_are_refused() {
    let world = World::start().await;
    for request in [
        "GET /user HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET /user HTTP/1.1\r\n{HOST}{HOST}\r\n"),
        format!("GET /user HTTP/1.1\r\n{HOST}Bad Name: 1\r\n\r\n"),
        format!("GET /user HTTP/1.1\r\n{HOST}A: 1\r\n folded\r\n\r\n"),
        format!("GET /us er HTTP/1.1\r\n{HOST}\r\n"),
        format!("POST /user HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("GET /user HTTP/1.1\r\n{HOST}A: \0\r\n\r\n"),
    ] {
        let answer = world.raw(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{request:?}: {answer}");
    }
    assert_eq!(world.users.count(), 0);
}

#[tokio::test]
async fn a_body_that_was_refused_never_becomes_a_request() {
    let world = World::start().await;
    let inner = format!("POST /user HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n");
    let length = inner.len();
    for path in ["/nothing", "/people-task/tasks", "/docs"] {
        let request =
            format!("POST {path} HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\n{inner}");
        let answer = world.raw(&request).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{path}: {answer}");
    }
    let oversized = format!("POST /user HTTP/1.1\r\n{HOST}Content-Length: 300000\r\n\r\n{inner}");
    let answer = world.raw(&oversized).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert_eq!(world.users.count(), 0);
}

#[tokio::test]
async fn an_upgrade_is_never_passed_on() {
    let world = World::start().await;
    let h2c =
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n";
    let answer = world
        .raw(&format!(
            "POST /user HTTP/1.1\r\n{HOST}{h2c}Content-Length: 2\r\n\r\n{{}}"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let seen = world.users.last();
    assert_eq!(seen.body, Some(2));
    assert!(seen.header("upgrade").is_none() && seen.header("http2-settings").is_none());

    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGVzdA==\r\n";
    let smuggled = format!("POST /user HTTP/1.1\r\n{HOST}\r\n");
    let request =
        format!("POST /user HTTP/1.1\r\n{HOST}{websocket}Content-Length: 2\r\n\r\n{{}}{smuggled}");
    let answer = world.raw(&request).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert_eq!(world.users.count(), 1);
}

#[tokio::test]
async fn an_expectation_is_met_by_the_gateway_itself() {
    let world = World::start().await;
    let request = format!(
        "POST /user HTTP/1.1\r\n{HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let answer = world.raw(&request).await;
    assert!(answer.starts_with("HTTP/1.1 100"), "{answer}");
    assert!(answer.contains("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.users.last().header("expect"), None);
}

#[tokio::test]
async fn requests_in_a_row_on_one_connection_are_answered_in_their_order() {
    let world = World::start().await;
    let one = |path: &str| format!("POST {path} HTTP/1.1\r\n{HOST}Content-Length: 2\r\n\r\n{{}}");
    let answer = world
        .raw(&format!(
            "{}{}{}",
            one("/user"),
            one("/nothing"),
            one("/user")
        ))
        .await;
    let statuses: Vec<_> = answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|part| &part[..3])
        .collect();
    assert_eq!(statuses, ["200", "404", "200"]);
}

#[tokio::test]
async fn the_absolute_form_of_a_target_changes_nothing() {
    let world = World::start().await;
    let answer = world
        .raw(&format!(
            "POST http://evil.example/user HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.users.last().target, "/user");
    let connect = world
        .raw(&format!("CONNECT evil.example:443 HTTP/1.1\r\n{HOST}\r\n"))
        .await;
    assert!(connect.starts_with("HTTP/1.1 4"), "{connect}");
}
