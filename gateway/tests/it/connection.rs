//! Unusual requests, as raw bytes on a socket.

use crate::fixture::Fixture;

const HOST: &str = "Host: gateway.example\r\n";

/// Whether a response is a `400` with a code and a request id.
fn is_problem(response: &str) -> bool {
    response.starts_with("HTTP/1.1 400 Bad Request\r\n")
        && response.contains("\r\ncontent-type: application/problem+json\r\n")
        && response.contains("\r\nx-request-id: ")
        && response.contains("\"code\":\"malformed-request\"")
}

#[tokio::test]
async fn contradictory_framing_is_refused_and_closes_the_connection() {
    let fixture = Fixture::start().await;
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
        let response = fixture.raw(&request).await;
        assert!(is_problem(&response), "{headers:?}: {response}");
        assert_eq!(
            response.matches("HTTP/1.1 ").count(),
            1,
            "{headers:?}: {response}"
        );
    }
    assert_eq!(fixture.users.count(), 0);
}

#[tokio::test]
async fn malformed_heads_are_refused() {
    let fixture = Fixture::start().await;
    for request in [
        "GET /user HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET /user HTTP/1.1\r\n{HOST}{HOST}\r\n"),
        format!("GET /user HTTP/1.1\r\n{HOST}Bad Name: 1\r\n\r\n"),
        format!("GET /user HTTP/1.1\r\n{HOST}A: 1\r\n folded\r\n\r\n"),
        format!("GET /us er HTTP/1.1\r\n{HOST}\r\n"),
        format!("POST /user HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("GET /user HTTP/1.1\r\n{HOST}A: \0\r\n\r\n"),
    ] {
        let response = fixture.raw(&request).await;
        assert!(is_problem(&response), "{request:?}: {response}");
    }
    assert_eq!(fixture.users.count(), 0);
}

#[tokio::test]
async fn a_refused_body_is_never_read_as_a_request() {
    let fixture = Fixture::start().await;
    let inner = format!("POST /user HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n");
    let length = inner.len();
    for path in ["/nothing", "/people-task/tasks", "/docs"] {
        let request =
            format!("POST {path} HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\n{inner}");
        let response = fixture.raw(&request).await;
        assert_eq!(
            response.matches("HTTP/1.1 ").count(),
            1,
            "{path}: {response}"
        );
    }
    let oversized = format!("POST /user HTTP/1.1\r\n{HOST}Content-Length: 300000\r\n\r\n{inner}");
    let response = fixture.raw(&oversized).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    assert_eq!(fixture.users.count(), 0);
}

#[tokio::test]
async fn an_upgrade_is_never_forwarded() {
    let fixture = Fixture::start().await;
    let h2c =
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n";
    let response = fixture
        .raw(&format!(
            "POST /user HTTP/1.1\r\n{HOST}{h2c}Content-Length: 2\r\n\r\n{{}}"
        ))
        .await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let received = fixture.users.last();
    assert_eq!(received.body, Some(2));
    assert!(received.header("upgrade").is_none() && received.header("http2-settings").is_none());

    // The offer is ignored, and the connection used again.
    let offer = format!("POST /user HTTP/1.1\r\n{HOST}{h2c}Content-Length: 2\r\n\r\n{{}}");
    let response = fixture.pipeline(&offer.repeat(3), 3).await;
    assert_eq!(response.matches("HTTP/1.1 200").count(), 3, "{response}");
    assert!(!response.contains("\r\nconnection:"), "{response}");
    assert_eq!(fixture.users.count(), 4);

    let smuggled = format!("POST /user HTTP/1.1\r\n{HOST}\r\n");
    for upgrade in [
        "Upgrade: websocket\r\n",
        "Upgrade: h2c\r\nUpgrade: websocket\r\n",
    ] {
        let head = format!("POST /user HTTP/1.1\r\n{HOST}Connection: Upgrade\r\n{upgrade}");
        let request = format!("{head}Content-Length: 2\r\n\r\n{{}}{smuggled}");
        let response = fixture.raw(&request).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
    assert_eq!(fixture.users.count(), 4);
}

#[tokio::test]
async fn the_gateway_handles_expect_100_continue() {
    let fixture = Fixture::start().await;
    let request = format!(
        "POST /user HTTP/1.1\r\n{HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let response = fixture.pipeline(&request, 2).await;
    assert!(response.starts_with("HTTP/1.1 100"), "{response}");
    assert!(response.contains("HTTP/1.1 200"), "{response}");
    assert_eq!(fixture.users.last().header("expect"), None);
}

#[tokio::test]
async fn pipelined_requests_get_responses_in_order() {
    let fixture = Fixture::start().await;
    let one = |path: &str| format!("POST {path} HTTP/1.1\r\n{HOST}Content-Length: 2\r\n\r\n{{}}");
    let requests = [one("/user"), one("/nothing"), one("/user")].concat();
    let response = fixture.pipeline(&requests, 3).await;
    let statuses: Vec<_> = response
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|part| &part[..3])
        .collect();
    assert_eq!(statuses, ["200", "404", "200"]);
}

#[tokio::test]
async fn an_absolute_target_is_treated_like_its_path() {
    let fixture = Fixture::start().await;
    let response = fixture
        .raw(&format!(
            "POST http://evil.example/user HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n"
        ))
        .await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert_eq!(fixture.users.last().target, "/user");
    let connect = fixture
        .raw(&format!("CONNECT evil.example:443 HTTP/1.1\r\n{HOST}\r\n"))
        .await;
    assert!(connect.starts_with("HTTP/1.1 4"), "{connect}");
}
