//! How clients are moved to other replicas before a server stops.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::pending;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use actix_web::web::get;
use actix_web::{App, HttpResponse};
use server::{HttpServerSettings, Running, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Much longer than the test takes.
const LONG: Duration = Duration::from_secs(60);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// A server, and what tells of each request whose response never begins.
fn start() -> (Running, SocketAddr, mpsc::UnboundedReceiver<()>) {
    let mut running = Running::new();
    let (listener, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
    running.address = Some(address);
    let settings = HttpServerSettings::single_threaded();
    let (arrived, arrivals) = mpsc::unbounded_channel();
    let app = move || {
        let arrived = arrived.clone();
        let hang = move || {
            arrived.send(()).unwrap();
            pending::<HttpResponse>()
        };
        let app = App::new().route("/", get().to(HttpResponse::Ok));
        app.route("/hang", get().to(hang))
    };
    serve(&running, listener, settings, app).unwrap();
    (running, address, arrivals)
}

/// Sends a request, and reads until a response without a body has ended.
async fn exchange(connection: &mut TcpStream) -> String {
    connection.write_all(REQUEST).await.unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        let read = connection.read_buf(&mut received);
        assert_ne!(timeout(LONG, read).await.unwrap().unwrap(), 0);
    }
    String::from_utf8(received).unwrap().to_lowercase()
}

#[tokio::test]
async fn a_server_that_drains_takes_requests_and_closes_their_connections() {
    let (running, address, _) = start();
    let mut open = TcpStream::connect(address).await.unwrap();
    let before = exchange(&mut open).await;
    assert!(!before.contains("connection: close"), "{before}");
    let mut draining = pin!(running.drain(LONG));
    for connection in [&mut open, &mut TcpStream::connect(address).await.unwrap()] {
        let response = tokio::select! {
            biased;
            () = &mut draining => panic!("it does not wait for its clients"),
            response = exchange(connection) => response,
        };
        assert!(response.starts_with("http/1.1 200"), "{response}");
        assert!(response.contains("connection: close"), "{response}");
    }
    let mut rest = Vec::new();
    timeout(LONG, open.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert!(rest.is_empty());
    assert!(running.stop(LONG).await);
}

#[tokio::test]
async fn a_worker_drains_at_once() {
    let running = Running::new();
    timeout(LONG / 2, running.drain(LONG)).await.unwrap();
}

#[tokio::test]
async fn a_request_in_flight_is_not_taken_for_one_that_has_ended() {
    let (running, address, mut arrivals) = start();
    let mut client = TcpStream::connect(address).await.unwrap();
    let hang = b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n";
    client.write_all(hang).await.unwrap();
    timeout(LONG, arrivals.recv()).await.unwrap().unwrap();
    assert!(!running.stop(Duration::from_secs(3)).await);
}
