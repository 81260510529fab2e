use std::time::{Duration, Instant};

use futures_util::stream;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::world::{World, read_until_silence};

const LIMIT: usize = 256 * 1024;

#[tokio::test]
async fn the_largest_body_passes_whole_and_one_byte_more_is_413() {
    let world = World::start().await;
    let reply = world
        .http
        .post("/user")
        .body(vec![b'x'; LIMIT])
        .send()
        .await;
    assert_eq!(reply.status, 200);
    let seen = world.users.last();
    assert_eq!(seen.body, Some(LIMIT));
    assert_eq!(seen.header("content-length"), Some("262144"));
    let reply = world
        .http
        .post("/user")
        .body(vec![b'x'; LIMIT + 1])
        .send()
        .await;
    reply.expect_problem(413, "body-too-large");
    assert_eq!(world.users.count(), 1);
}

#[tokio::test]
async fn a_body_in_chunks_is_passed_on_in_chunks_and_counted() {
    let world = World::start().await;
    let chunks = |number: usize| {
        let chunks = (0..number).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 64 * 1024]));
        reqwest::Body::wrap_stream(stream::iter(chunks.collect::<Vec<_>>()))
    };
    let reply = world.http.post("/user").body(chunks(4)).send().await;
    assert_eq!(reply.status, 200);
    let seen = world.users.last();
    assert_eq!(
        (seen.body, seen.header("transfer-encoding")),
        (Some(LIMIT), Some("chunked"))
    );
    let reply = world.http.post("/user").body(chunks(5)).send().await;
    reply.expect_problem(413, "body-too-large");
    // The service saw the beginning, but never a body that looked complete.
    let complete = world
        .users
        .with(|s| s.seen.iter().filter(|seen| seen.body.is_some()).count());
    assert_eq!(complete, 1);
}

#[tokio::test]
async fn a_body_that_trickles_is_408() {
    let world = World::with(&[("GATEWAY_BODY_TIMEOUT", "300ms")]).await;
    let started = Instant::now();
    let head = "POST /user HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
    let mut socket = TcpStream::connect(world.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until_silence(&mut socket).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("body-timeout"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(3));
    let complete = world
        .users
        .with(|s| s.seen.iter().any(|seen| seen.body.is_some()));
    assert!(!complete);
}

#[tokio::test]
async fn a_caller_that_goes_away_in_the_middle_sends_nothing_complete() {
    let world = World::start().await;
    let head = "POST /user HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
    let mut socket = TcpStream::connect(world.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    testkit::eventually("the service to begin", || async {
        (world.users.with(|state| state.begun) == 1).then_some(())
    })
    .await;
    drop(socket);
    testkit::eventually("the service to see the end", || async {
        (world.users.with(|state| state.ended) == 1).then_some(())
    })
    .await;
    assert!(
        world
            .users
            .with(|s| s.seen.iter().all(|seen| seen.body.is_none()))
    );
}

#[tokio::test]
async fn an_answer_arrives_part_by_part() {
    let world = World::start().await;
    let url = format!("{}/user?answer=stream", world.http.base());
    let request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url);
    let mut response = request.bearer_auth(world.token()).send().await.unwrap();
    let started = Instant::now();
    let first = response.chunk().await.unwrap().unwrap();
    let early = started.elapsed();
    let mut rest = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        rest.extend_from_slice(&chunk);
    }
    assert_eq!(first, "part 0\n");
    assert_eq!(rest, b"part 1\npart 2\n");
    assert!(early < Duration::from_millis(200), "{early:?}");
    assert!(started.elapsed() >= Duration::from_millis(380));
}

#[tokio::test]
async fn a_service_may_answer_before_it_has_read_the_body() {
    let world = World::start().await;
    let head = "POST /user?answer=early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{";
    let answer = world.raw(head).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains(r#"{"early":true}"#), "{answer}");
}
