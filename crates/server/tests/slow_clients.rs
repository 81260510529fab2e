//! Clients that send or read too slowly, as bytes on a socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{Bytes, Data, get};
use actix_web::{App, HttpResponse};
use futures_util::stream;
use server::{HttpServerSettings, Running, bind, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, interval, timeout};

const GET: &[u8] = b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n";
/// Much longer than any time limit of these tests.
const LONG: Duration = Duration::from_secs(20);

fn server() -> (Running, SocketAddr) {
    server_that_tells(Data::default(), impatient_settings())
}

fn impatient_settings() -> HttpServerSettings {
    HttpServerSettings {
        head_timeout: Duration::from_secs(1),
        // actix-web checks this one every half second.
        keep_alive: Duration::from_millis(1_500),
        request_timeout: Duration::from_millis(1_500),
        ..HttpServerSettings::single_threaded()
    }
}

/// `given_up` is told when the server has given an endless response up.
fn server_that_tells(
    given_up: Data<Notify>,
    settings: HttpServerSettings,
) -> (Running, SocketAddr) {
    let running = Running::new();
    let (listener, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
    serve(&running, listener, settings, move || {
        App::new()
            .app_data(given_up.clone())
            .route("/short", get().to(HttpResponse::Ok))
            .route("/long", get().to(long))
            .route("/endless", get().to(endless))
    })
    .unwrap();
    (running, address)
}

/// Takes longer than a client may need for its next head.
async fn long() -> HttpResponse {
    tokio::time::sleep(Duration::from_secs(1)).await;
    HttpResponse::Ok().finish()
}

struct TellWhenDropped(Arc<Notify>);

impl Drop for TellWhenDropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn endless(given_up: Data<Notify>) -> HttpResponse {
    let kept = TellWhenDropped(given_up.into_inner());
    let chunks = stream::repeat_with(move || {
        let _ = &kept;
        Ok::<_, std::io::Error>(Bytes::from_static(&[0; 65_536]))
    });
    HttpResponse::Ok().streaming(chunks)
}

/// Sends a head byte by byte until the server closes the connection.
async fn trickle(socket: &mut TcpStream) {
    let mut pace = interval(Duration::from_millis(50));
    let mut buffer = [0; 1024];
    let closed = async {
        loop {
            tokio::select! {
                _ = pace.tick() => if socket.write_all(b"G").await.is_err() { return },
                read = socket.read(&mut buffer) => if matches!(read, Ok(0) | Err(_)) { return },
            }
        }
    };
    // Sooner than by default.
    let default = HttpServerSettings::single_threaded().head_timeout;
    timeout(default, closed).await.unwrap();
}

async fn expect_200(socket: &mut TcpStream) {
    let mut buffer = [0; 1024];
    socket.write_all(GET).await.unwrap();
    let read = socket.read(&mut buffer).await.unwrap();
    assert!(buffer.get(..read).unwrap().starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn a_connection_is_closed_when_its_first_head_trickles_in() {
    let (_running, address) = server();
    let mut socket = TcpStream::connect(address).await.unwrap();
    trickle(&mut socket).await;
}

#[tokio::test]
async fn a_connection_is_closed_when_a_later_head_trickles_in() {
    let (_running, address) = server();
    let mut socket = TcpStream::connect(address).await.unwrap();
    expect_200(&mut socket).await;
    trickle(&mut socket).await;
}

#[tokio::test]
async fn a_head_that_trickles_in_after_a_long_request_has_no_more_time() {
    let settings = HttpServerSettings {
        head_timeout: Duration::from_millis(300),
        keep_alive: Duration::from_millis(500),
        request_timeout: LONG * 2,
        ..HttpServerSettings::single_threaded()
    };
    let (_running, address) = server_that_tells(Data::default(), settings);
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut response = [0; 15];
    let _ = socket.read_exact(&mut response).await.unwrap();
    assert_eq!(&response, b"HTTP/1.1 200 OK");
    trickle(&mut socket).await;
}

#[tokio::test]
async fn a_connection_is_closed_when_the_client_does_not_read_the_response() {
    let given_up = Data::new(Notify::new());
    let (_running, address) = server_that_tells(given_up.clone(), impatient_settings());
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut read = vec![0; 65_536];
    let _ = socket.read(&mut read).await.unwrap();
    // Data that the operating system has buffered is still readable; then the connection ends.
    timeout(LONG, given_up.notified()).await.unwrap();
    let drained = async { while matches!(socket.read(&mut read).await, Ok(1..)) {} };
    timeout(LONG, drained).await.unwrap();
}

#[tokio::test]
async fn a_connection_with_regular_requests_stays_open() {
    let settings = HttpServerSettings {
        head_timeout: Duration::from_secs(3),
        keep_alive: Duration::from_secs(4),
        request_timeout: Duration::from_secs(4),
        ..HttpServerSettings::single_threaded()
    };
    let (_running, address) = server_that_tells(Data::default(), settings);
    let mut socket = TcpStream::connect(address).await.unwrap();
    let started = Instant::now();
    // Longer than all of them.
    while started.elapsed() < Duration::from_secs(8) {
        expect_200(&mut socket).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
