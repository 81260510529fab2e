use std::time::Duration;

use futures_util::stream;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use values::TaskId;

use crate::fixture::{Fixture, read_until_silence};

const LIMIT: usize = 256 * 1024;

#[tokio::test]
async fn a_body_of_256_kib_passes_and_one_byte_more_is_413() {
    let fixture = Fixture::start().await;
    let reply = fixture
        .http
        .post("/user")
        .body(vec![b'x'; LIMIT])
        .send()
        .await;
    assert_eq!(reply.status, 200);
    let received = fixture.users.last();
    assert_eq!(received.body, Some(LIMIT));
    assert_eq!(received.header("content-length"), Some("262144"));
    let reply = fixture
        .http
        .post("/user")
        .body(vec![b'x'; LIMIT + 1])
        .send()
        .await;
    reply.expect_problem(413, "body-too-large");
    assert_eq!(fixture.users.count(), 1);
}

#[tokio::test]
async fn a_chunked_body_is_collected_and_limited() {
    let fixture = Fixture::start().await;
    let chunks = |number: usize| {
        let chunks = (0..number).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 64 * 1024]));
        reqwest::Body::wrap_stream(stream::iter(chunks.collect::<Vec<_>>()))
    };
    let reply = fixture.http.post("/user").body(chunks(4)).send().await;
    assert_eq!(reply.status, 200);
    let received = fixture.users.last();
    assert_eq!(
        (received.body, received.header("content-length")),
        (Some(LIMIT), Some("262144"))
    );
    let reply = fixture.http.post("/user").body(chunks(5)).send().await;
    reply.expect_problem(413, "body-too-large");
    assert_eq!(fixture.users.with(|state| state.started), 1);
}

#[tokio::test]
async fn a_service_gets_a_body_only_when_it_is_complete() {
    let settings = [("GATEWAY_MAX_PENDING_UPLOADS", "1"), ("RATE_LIMIT", "off")];
    let fixture = Fixture::with(&settings).await;
    let head = "POST /user HTTP/1.1\r\nHost: x\r\nContent-Length: 200001\r\n\r\n";
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&vec![b'x'; 200_000]).await.unwrap();
    testkit::eventually("the upload to take the permit", || async {
        let other = fixture.http.post("/user").body("{}").send().await;
        (other.status == 503).then_some(())
    })
    .await;
    assert_eq!(fixture.http.post("/user").send().await.status, 200);
    let (started, complete) = fixture.users.with(|s| (s.started, s.received.len()));
    assert_eq!(started, complete);

    socket.write_all(b"x").await.unwrap();
    let response = read_until_silence(&mut socket, 1).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert_eq!(fixture.users.last().body, Some(200_001));
}

#[tokio::test]
async fn a_slow_body_is_408() {
    let fixture = Fixture::with(&[("GATEWAY_BODY_TIMEOUT", "300ms")]).await;
    let head = "POST /user HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let response = read_until_silence(&mut socket, 1).await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(response.contains("body-timeout"), "{response}");
    let complete = fixture
        .users
        .with(|s| s.received.iter().any(|request| request.body.is_some()));
    assert!(!complete);
}

#[tokio::test]
async fn the_time_of_a_decision_does_not_have_what_its_caller_takes_to_send_it() {
    let metrics = telemetry::metrics_recorder();
    let fixture = Fixture::start().await;
    let (task, token) = (TaskId::generate(), fixture.token());
    let head = format!(
        "PUT /people-task/tasks/{task}/approve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
        Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{"
    );
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    socket.write_all(b"}").await.unwrap();
    let response = read_until_silence(&mut socket, 1).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let metrics = metrics.render();
    let count = |bound| {
        let labels = format!("/approve\",status=\"200\",le=\"{bound}\"}} ");
        let lines = metrics.lines();
        let mut buckets = lines.filter(|line| line.starts_with("http_request_duration_seconds_"));
        buckets.find_map(|line| line.split_once(&labels)).unwrap().1
    };
    assert_eq!(count("0.5"), count("+Inf"));
}

#[tokio::test]
async fn a_body_never_looks_complete_when_the_caller_disconnects() {
    let fixture = Fixture::start().await;
    let head = "POST /user HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let response = read_until_silence(&mut socket, 1).await;
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(response.contains("incomplete-body"), "{response}");
    assert_eq!(fixture.http.post("/user").send().await.status, 200);
    assert_eq!(fixture.users.with(|state| state.started), 1);
}

#[tokio::test]
async fn a_response_is_streamed() {
    let fixture = Fixture::start().await;
    let url = format!("{}/user?response=stream", fixture.http.base());
    let request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url);
    let mut response = request.bearer_auth(fixture.token()).send().await.unwrap();
    let first = response.chunk().await.unwrap().unwrap();
    fixture.users.with(|state| state.go_on.notify_one());
    let mut rest = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        rest.extend_from_slice(&chunk);
    }
    assert_eq!(first, "part 0\n");
    assert_eq!(rest, b"part 1\npart 2\n");
}
