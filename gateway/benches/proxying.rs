//! One request at a time through the gateway, beside the same request without it.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use app_config::{Reader, Settings as _};
use criterion::Criterion;
use gateway::GatewaySettings;
use testkit::{Http, TokenAuthority, eventually};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{\"status\":\"pending\"}";
const END: &[u8] = b"{\"status\":\"pending\"}";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let service = start_service();
    let (gateway, token) = start_gateway(service);
    let path = "/people-task/tasks/665f1c2ab3d4e5f60718293a";
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    for (name, address) in [
        ("without the gateway", service),
        ("through the gateway", gateway),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| call(&mut stream, request.as_bytes()));
        });
    }
    criterion.final_summary();
}

/// Sends a request, and reads until the end of the body.
fn call(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(request).unwrap();
    let mut response = Vec::with_capacity(2048);
    let mut buffer = [0; 2048];
    while !contains_end(&response) {
        let read = stream.read(&mut buffer).unwrap();
        assert_ne!(read, 0, "the connection was closed");
        response.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
    assert!(response.starts_with(b"HTTP/1.1 200 "));
}

/// The response may end with the last chunk, which the next read drops.
fn contains_end(response: &[u8]) -> bool {
    response.ends_with(END) || response.ends_with(b"0\r\n\r\n")
}

/// A service that responds to everything with the same bytes.
fn start_service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                // The head of a request without a body arrives in one piece on a loopback address.
                while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                    stream.write_all(RESPONSE).unwrap();
                }
            });
        }
    });
    address
}

/// Returns the gateway's address and a token for it.
fn start_gateway(service: SocketAddr) -> (SocketAddr, String) {
    let (started, starting) = mpsc::channel();
    thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            let authority = TokenAuthority::start();
            let users = authority.settings().user_service_url.to_string();
            let tasks = format!("http://{service}");
            let pairs = [
                ("LISTEN_ADDRESS", "127.0.0.1:0"),
                ("USER_SERVICE_URL", users.as_str()),
                ("PEOPLE_TASK_SERVICE_URL", tasks.as_str()),
                ("RATE_LIMIT", "off"),
            ];
            let mut reader = Reader::from_pairs(pairs).unwrap();
            let settings = GatewaySettings::read(&mut reader).unwrap();
            let gateway = gateway::run(settings).await.unwrap();
            let address = gateway.address.unwrap();
            let http = Http::to(address);
            eventually("the gateway", || async {
                let ready = http.get("/readyz").send().await;
                (ready.status == 200).then_some(())
            })
            .await;
            let (_, token) = authority.user("ada@example.com");
            started.send((address, token)).unwrap();
            std::future::pending::<()>().await;
        });
    });
    starting.recv().unwrap()
}
