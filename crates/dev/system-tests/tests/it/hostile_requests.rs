//! Hostile requests: the gateway and each service behind it refuse every one of them with a 4xx.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use testkit::{Forger, Http, expect_forgeries_refused};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;
use values::{FromText as _, Secret, UserId};

use crate::harness::System;

const ADMIN: &str = "admin@countersign.local";
const USERS: &str = "/users?limit=1";
const TASKS: &str = "/people-task/tasks?limit=1";
const RESPONSE_LIMIT: Duration = Duration::from_secs(20);

fn address(url: &str) -> SocketAddr {
    let url = Url::parse(url).unwrap();
    url.socket_addrs(|| None).unwrap()[0]
}

/// An address of the system with a path that takes a JSON body and one that reads.
struct Endpoint {
    address: SocketAddr,
    write_path: &'static str,
    read_path: &'static str,
}

impl Endpoint {
    /// Both services through the gateway, and each of them directly.
    fn all(system: &System) -> Vec<Self> {
        let gateway = address(system.http.base());
        let users = address(&system.setting("USER_SERVICE_URL"));
        let tasks = address(&system.setting("PEOPLE_TASK_SERVICE_URL"));
        let endpoints = [
            (gateway, "/users/65f0c0ffee65f0c0ffee65f0", USERS),
            (
                gateway,
                "/people-task/tasks/65f0c0ffee65f0c0ffee65f0",
                TASKS,
            ),
            (users, "/users/65f0c0ffee65f0c0ffee65f0", USERS),
            (tasks, "/people-task/tasks/65f0c0ffee65f0c0ffee65f0", TASKS),
        ];
        let endpoint = |(address, write_path, read_path)| Self {
            address,
            write_path,
            read_path,
        };
        endpoints.map(endpoint).into()
    }

    fn http(&self) -> Http {
        Http::to(self.address)
    }

    async fn assert_still_serves(&self, token: &str) {
        let reply = self.http().get(self.read_path).bearer(token).send().await;
        assert_eq!(reply.status, 200, "{}: {}", self.read_path, reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_are_refused_at_the_gateway_and_at_each_service() {
    let system = System::start().await;
    let key = Secret::new(system.setting("TOKEN_SIGNING_KEY"));
    let admin = UserId::from_text(&system.user_id(ADMIN).await).unwrap();
    let feed = Http::to(address(&system.setting("USER_SERVICE_URL")));
    let feed = feed.get("/internal/revocations").send().await;
    let incarnation = feed.json["incarnation"].as_str().unwrap();
    let forger = Forger::new(&key, admin, incarnation);
    for endpoint in Endpoint::all(&system) {
        endpoint.assert_still_serves(&forger.good()).await;
        // Webhooks always need a token; a list of tasks also accepts a secret.
        let path = if endpoint.read_path == TASKS {
            "/people-task/webhooks/65f0c0ffee65f0c0ffee65f0"
        } else {
            USERS
        };
        expect_forgeries_refused(&endpoint.http(), path, &forger).await;
    }
    system.stop().await;
}

/// Bodies that no endpoint accepts.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        format!("{{\"title\":{open}1{close}}}").into_bytes()
    };
    let keys = |number: usize| {
        let keys: Vec<_> = (0..number).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{\"title\":7,\"email\":7,{}}}", keys.join(",")).into_bytes()
    };
    let text = |text: &str| {
        format!("{{\"title\":{text},\"email\":{text},\"username\":{text}}}").into_bytes()
    };
    let mut not_utf8 = text("\"a");
    not_utf8.extend_from_slice(b"\xff\xfe\"}");
    vec![
        ("arrays 100,000 deep", deep("[", "]")),
        ("unterminated arrays 100,000 deep", deep("[", "")),
        ("objects 100,000 deep", deep("{\"a\":", "}")),
        ("20,000 keys", keys(20_000)),
        ("a million keys", keys(1_000_000)),
        ("a huge exponent", text("1e999999")),
        ("a huge negative exponent", text("-1e-999999")),
        ("10,000 digits", text(&"9".repeat(10_000))),
        (
            "200,000 digits after the point",
            text(&format!("0.{}", "1".repeat(200_000))),
        ),
        ("NaN", text("NaN")),
        ("invalid UTF-8", not_utf8),
        ("NUL in texts", text("\"a\\u0000b\"")),
        ("half a surrogate pair", text("\"\\ud800\"")),
        ("a raw control character", text("\"a\u{1}b\"")),
        (
            "one key 10,000 times",
            format!(
                "{{{}\"email\":7,\"title\":7}}",
                "\"title\":1,".repeat(10_000)
            )
            .into_bytes(),
        ),
        ("a byte order mark", b"\xef\xbb\xbf{}x".to_vec()),
        (
            "a long unterminated string",
            format!("{{\"title\":\"{}", "a".repeat(200_000)).into_bytes(),
        ),
        ("a list", b"[]".to_vec()),
        ("null", b"null".to_vec()),
        ("an empty body", Vec::new()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bodies_are_refused() {
    let system = System::start().await;
    for endpoint in Endpoint::all(&system) {
        for (what, body) in bodies() {
            let request = endpoint
                .http()
                .put(endpoint.write_path)
                .bearer(&system.admin);
            let request = request
                .header("content-type", "application/json")
                .body(body);
            let reply = request.send().await;
            let is_refused = matches!(reply.status, 400 | 413 | 415);
            assert!(
                is_refused,
                "{}: {what}: {} {}",
                endpoint.write_path, reply.status, reply.text
            );
            assert!(reply.json["code"].is_string(), "{what}: {}", reply.text);
        }
        endpoint.assert_still_serves(&system.admin).await;
    }
    system.stop().await;
}

/// Request heads that no endpoint accepts.
fn heads(path: &str, token: &str) -> Vec<(&'static str, Vec<u8>)> {
    let plain = path.split('?').next().unwrap_or_default();
    let head = |target: &str, headers: &[u8]| {
        let start = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        let token = format!("Authorization: Bearer {token}\r\n");
        [start.as_bytes(), token.as_bytes(), headers, b"\r\n"].concat()
    };
    let many = "X-A: b\r\n".repeat(200);
    let long = |name: &str, length: usize| format!("{name}: {}\r\n", "a".repeat(length));
    let segment = "a".repeat(64 * 1024);
    let parameters = "&limit=x".repeat(5_000);
    vec![
        ("200 headers", head(path, many.as_bytes())),
        (
            "a header of 200 KiB",
            head(path, long("X-A", 200 * 1024).as_bytes()),
        ),
        ("a path of 64 KiB", head(&format!("/{segment}"), b"")),
        (
            "a path of 64,900 bytes",
            head(&format!("{plain}/{}", &segment[..64_900]), b""),
        ),
        (
            "a query of 65,470 bytes",
            head(&format!("{plain}?limit={}", &segment[..65_460]), b""),
        ),
        (
            "a query of 20 KiB",
            head(&format!("{plain}?limit={}", &segment[..20_480]), b""),
        ),
        (
            "5,000 parameters",
            head(&format!("{plain}?limit=x{parameters}"), b""),
        ),
        (
            "a query with invalid UTF-8",
            head(&format!("{plain}?limit=%ff%fe"), b""),
        ),
        ("NUL in a query", head(&format!("{plain}?filter=%00"), b"")),
        ("a path with invalid UTF-8", head("/users/%ff%fe", b"")),
        ("NUL in a path", head("/users/%00", b"")),
        (
            "raw bytes in a path",
            b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        ),
        ("raw NUL in a header", head(path, b"X-A: a\0b\r\n")),
        (
            "a second token of raw bytes",
            head(path, b"Authorization: Bearer \xff\xfe\r\n"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_request_heads_are_refused() {
    let system = System::start().await;
    for endpoint in Endpoint::all(&system) {
        for (what, head) in heads(endpoint.read_path, &system.admin) {
            let response = raw(endpoint.address, &head).await;
            let is_refused = response.starts_with("HTTP/1.1 4");
            let start: String = response.chars().take(300).collect();
            assert!(is_refused, "{}: {what}: {start}", endpoint.read_path);
        }
        endpoint.assert_still_serves(&system.admin).await;
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_but_allowed_headers_do_no_harm() {
    let system = System::start().await;
    let endpoint = &Endpoint::all(&system)[0];
    let http = endpoint.http();
    let ready = json!({"status": "ok"});
    for _ in 0..20 {
        let request = http.get(endpoint.read_path).bearer(&system.admin);
        let long = request.header("user-agent", &"a".repeat(120_000));
        let reply = long.send().await;
        assert!(reply.status < 500, "{}", reply.text);
    }
    assert_eq!(http.get("/healthz").send().await.json, ready);
    endpoint.assert_still_serves(&system.admin).await;
    system.stop().await;
}

/// Sends raw bytes and returns the beginning of the response.
async fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = socket.split();
    let mut response = [0; 4096];
    // A server may respond before it has received everything, so reading and writing are concurrent.
    let (_, read) = tokio::join!(
        writing.write_all(request),
        tokio::time::timeout(RESPONSE_LIMIT, reading.read(&mut response))
    );
    let read = read.unwrap().unwrap_or(0);
    String::from_utf8_lossy(&response[..read]).into_owned()
}
