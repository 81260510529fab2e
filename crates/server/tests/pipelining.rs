//! Many requests at once on one connection.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use actix_web::web::{Bytes, get, post};
use actix_web::{App, HttpResponse};
use server::{HttpServerSettings, Running, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Much longer than the test takes.
const LONG: Duration = Duration::from_secs(60);

async fn echo(body: Bytes) -> HttpResponse {
    HttpResponse::Ok().body(body)
}

/// Sends everything at once, and reads until the server closes the connection.
async fn exchange(sent: String) -> String {
    let running = Running::new();
    let (listener, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
    serve(
        &running,
        listener,
        HttpServerSettings::single_threaded(),
        || {
            App::new()
                .route("/", get().to(HttpResponse::Ok))
                .route("/echo", post().to(echo))
                .route("/ignored", post().to(HttpResponse::NotFound))
        },
    )
    .unwrap();
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let mut received = String::new();
    let (written, read) = tokio::join!(
        writer.write_all(sent.as_bytes()),
        timeout(LONG, reader.read_to_string(&mut received))
    );
    written.unwrap();
    read.unwrap().unwrap();
    received
}

const LAST: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn thousands_of_requests_get_their_responses() {
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let received = exchange(request.repeat(5_000) + LAST).await;
    assert_eq!(received.matches("HTTP/1.1 200 OK").count(), 5_001);
}

#[tokio::test]
async fn bodies_of_every_kind_are_told_apart_from_the_next_request() {
    let sized = |path: &str, length: usize| {
        let body = "a".repeat(length);
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let chunks = |count: usize| {
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{}0\r\n\r\n", "1\r\nb\r\n".repeat(count))
    };
    let sent = [
        sized("/echo", 0),
        chunks(0),
        sized("/echo", 100_000),
        chunks(5_000),
        sized("/ignored", 3),
        sized("/echo", 1),
        LAST.to_owned(),
    ];
    let received = exchange(sent.concat()).await;
    let responses: Vec<_> = received.split("HTTP/1.1 ").skip(1).collect();
    let bodies = responses.iter().map(|response| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (&head[..3], body.len())
    });
    let expected = [
        ("200", 0),
        ("200", 0),
        ("200", 100_000),
        ("200", 5_000),
        ("404", 0),
        ("200", 1),
        ("200", 0),
    ];
    assert_eq!(bodies.collect::<Vec<_>>(), expected);
}
