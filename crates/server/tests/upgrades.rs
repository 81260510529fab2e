//! Requests that offer to upgrade to another protocol.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use actix_web::web::{Bytes, post};
use actix_web::{App, HttpResponse};
use server::{HttpServerSettings, Running, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Much longer than the test takes.
const LONG: Duration = Duration::from_secs(60);
/// What Java's `HttpClient` sends.
const H2C: &str =
    "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n";

async fn connect() -> (Running, TcpStream) {
    let running = Running::new();
    let (listener, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let echo = |body: Bytes| async { HttpResponse::Ok().body(body) };
    let app = move || App::new().default_service(post().to(echo));
    serve(
        &running,
        listener,
        HttpServerSettings::single_threaded(),
        app,
    )
    .unwrap();
    (running, TcpStream::connect(address).await.unwrap())
}

/// Reads the head of a response, and its body of `length` bytes.
async fn response(socket: &mut TcpStream, length: usize) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(LONG, socket.read_u8()).await.unwrap().unwrap());
    }
    let mut body = vec![0; length];
    timeout(LONG, socket.read_exact(&mut body))
        .await
        .unwrap()
        .unwrap();
    (
        String::from_utf8(head).unwrap(),
        String::from_utf8(body).unwrap(),
    )
}

/// Sends bytes, and reads until the server closes the connection.
async fn exchange(sent: &str) -> String {
    let (_running, mut socket) = connect().await;
    socket.write_all(sent.as_bytes()).await.unwrap();
    let mut received = String::new();
    let read = socket.read_to_string(&mut received);
    timeout(LONG, read).await.unwrap().unwrap();
    received
}

#[tokio::test]
async fn an_offer_is_ignored_and_the_connection_is_used_again() {
    let (_running, mut socket) = connect().await;
    for offer in [
        H2C,
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n",
        "connection: UPGRADE\r\nupgrade: H2C\r\n",
        "Connection: HTTP2-Settings\r\nConnection: upgrade\r\nUpgrade: h2c, foo/2\r\n",
        "Connection: upgrade\r\n",
    ] {
        let body = "b".repeat(20_000);
        let sent = [
            format!("POST / HTTP/1.1\r\nHost: x\r\n{offer}Content-Length: 20000\r\n\r\n{body}"),
            format!(
                "POST / HTTP/1.1\r\n{offer}Host: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            ),
            format!("POST / HTTP/1.1\r\nHost: x\r\n{offer}\r\n"),
        ];
        socket.write_all(sent.concat().as_bytes()).await.unwrap();
        for expected in [body.as_str(), "abc", ""] {
            let (head, body) = response(&mut socket, expected.len()).await;
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{offer}: {head}");
            assert!(!head.contains("connection:"), "{offer}: {head}");
            assert_eq!(body, expected, "{offer}");
        }
    }
}

#[tokio::test]
async fn an_offer_does_not_keep_open_what_would_be_closed() {
    for (version, connection, expected) in [
        ("1.1", "close, Upgrade", Some("connection: close")),
        ("1.0", "Upgrade", None),
    ] {
        let sent = format!(
            "POST / HTTP/{version}\r\nHost: x\r\nConnection: {connection}\r\nUpgrade: h2c\r\n\
             Content-Length: 3\r\n\r\nabc"
        );
        let received = exchange(&sent).await;
        assert!(received.ends_with("\r\n\r\nabc"), "{received}");
        let said = received
            .lines()
            .find(|line| line.starts_with("connection:"));
        assert_eq!(said, expected, "{received}");
    }
    let sent = "POST / HTTP/1.0\r\nConnection: keep-alive, Upgrade\r\nContent-Length: 3\r\n\r\nabc";
    let last = "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nd";
    let received = exchange(&format!("{sent}{last}")).await;
    assert!(
        received.contains("\r\nconnection: keep-alive\r\n"),
        "{received}"
    );
    assert!(received.ends_with("\r\n\r\nd"), "{received}");
}

#[tokio::test]
async fn a_connection_that_is_closed_is_said_to_be() {
    let long = format!("Connection: {}upgrade\r\n", "a,".repeat(1_000));
    let (_running, mut socket) = connect().await;
    let (start, end) = long.split_at(1_500);
    let start = format!("POST / HTTP/1.1\r\nHost: x\r\n{start}");
    socket.write_all(start.as_bytes()).await.unwrap();
    tokio::task::yield_now().await;
    socket.write_all(end.as_bytes()).await.unwrap();
    socket.write_all(b"\r\n").await.unwrap();
    let (head, _) = response(&mut socket, 0).await;
    assert!(!head.contains("connection: upgrade"), "{head}");

    for connection in ["Connection: Upgrade\r\n", ""] {
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\n{connection}Upgrade: WebSocket\r\n");
        for rest in [
            "\r\n",
            "Content-Length: 2\r\n\r\n{}POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            let received = exchange(&format!("{head}{rest}")).await;
            assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
            assert!(received.contains("\r\nconnection: close\r\n"), "{received}");
            assert!(received.ends_with("\r\n\r\n"), "{received}");
            assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{received}");
        }
    }
}
