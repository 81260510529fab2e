//! Requests that cannot be read, as bytes on a socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::middleware::from_fn;
use actix_web::web::get;
use actix_web::{App, HttpResponse};
use server::{HttpServerSettings, Listener, Running, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
/// Much longer than any time limit of these tests.
const LONG: Duration = Duration::from_secs(20);

fn server() -> (Running, SocketAddr) {
    let running = Running::new();
    let (listener, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let settings = HttpServerSettings {
        head_timeout: Duration::from_secs(1),
        keep_alive: Duration::from_secs(1),
        ..HttpServerSettings::single_threaded()
    };
    let listener = Listener {
        aside: 0,
        explains_refusals: true,
        ..listener.into()
    };
    serve(&running, listener, settings, || {
        App::new()
            .route("/", get().to(HttpResponse::Ok))
            .wrap(from_fn(http_kit::request_context))
    })
    .unwrap();
    (running, address)
}

/// Sends bytes and reads until the server closes the connection.
async fn exchange(address: SocketAddr, sent: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(sent.as_bytes()).await.unwrap();
    let mut received = String::new();
    let read = timeout(LONG, socket.read_to_string(&mut received)).await;
    read.unwrap().unwrap();
    received
}

fn expect_problem(response: &str, status: &str, code: &str) {
    assert!(
        response.starts_with(&format!("HTTP/1.1 {status}")),
        "{response}"
    );
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    for line in [
        "content-type: application/problem+json",
        "connection: close",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    assert!(
        head.contains(&format!("content-length: {}\r\n", body.len())),
        "{head}"
    );
    assert!(body.contains(&format!("\"code\":\"{code}\"")), "{body}");
    let (_, rest) = head.split_once("x-request-id: ").unwrap();
    let request_id = rest.lines().next().unwrap();
    assert!(
        body.contains(&format!("\"requestId\":\"{request_id}\"")),
        "{response}"
    );
}

#[tokio::test]
async fn a_request_that_is_not_http_gets_a_problem() {
    let (_running, address) = server();
    for request in [
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
        "GET / HTTP/1.1\r\nBad Name: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let response = exchange(address, request).await;
        expect_problem(&response, "400 Bad Request", "malformed-request");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
}

#[tokio::test]
async fn the_response_to_a_pipelined_request_comes_first() {
    let (_running, address) = server();
    let response = exchange(address, &format!("{GET}{GET}nonsense\r\n\r\n")).await;
    let start = response.rfind("HTTP/1.1 ").unwrap();
    let (first, last) = response.split_at(start);
    assert_eq!(first.matches("HTTP/1.1 200 OK").count(), 2, "{response}");
    expect_problem(last, "400 Bad Request", "malformed-request");
}

#[tokio::test]
async fn a_client_that_sends_a_head_that_is_too_long_can_read_the_problem() {
    let (_running, address) = server();
    for length in [140_000, 900_000] {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n",
            "a".repeat(length)
        );
        let response = exchange(address, &request).await;
        expect_problem(
            &response,
            "431 Request Header Fields Too Large",
            "head-too-large",
        );
    }
}

#[tokio::test]
async fn a_first_head_that_stalls_gets_a_problem() {
    let (_running, address) = server();
    let response = exchange(address, "GET / HTTP/1.1\r\n").await;
    expect_problem(&response, "408 Request Timeout", "request-timeout");
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_response() {
    let (_running, address) = server();
    assert_eq!(exchange(address, "").await, "");
    // What follows an answered request, too, as a client would take a response for that to its next request.
    for rest in ["", "GET / HTTP/1.1\r\n"] {
        let response = exchange(address, &format!("{GET}{rest}")).await;
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
}

#[tokio::test]
async fn a_connection_closes_after_the_response_that_did_not_need_a_body_in_chunks() {
    let (_running, address) = server();
    let head = "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for chunks in ["", "1\r\nx\r\n", "1\r\nx\r\n0\r\n\r\n"] {
        let response = exchange(address, &format!("{head}{chunks}{GET}")).await;
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
        assert!(response.contains("\r\nconnection: close\r\n"), "{response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
}
