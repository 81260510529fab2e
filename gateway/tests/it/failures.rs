use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::services::{FakeService, LONG};
use crate::world::{World, read_until_silence};

#[tokio::test]
async fn a_service_that_is_away_is_502_and_works_again_when_it_is_back() {
    let world = World::start().await;
    let token = world.token();
    world.tasks.stop().await;
    let reply = world
        .http
        .get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await;
    reply.expect_problem(502, "bad-gateway");
    assert!(!reply.text.contains("127.0.0.1"), "{}", reply.text);
    let reply = world
        .http
        .post("/people-task/tasks")
        .bearer(&token)
        .body("{}")
        .send()
        .await;
    reply.expect_problem(502, "bad-gateway");
    let unconcerned = world.http.get("/user").bearer(&token).send().await;
    assert_eq!(unconcerned.status, 200);

    let back = FakeService::start_at(world.tasks.running.address.unwrap());
    let reply = world
        .http
        .get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await;
    assert_eq!((reply.status, back.count()), (200, 1));
}

#[tokio::test]
async fn a_service_that_is_slow_is_504() {
    let world = World::with(&[("GATEWAY_UPSTREAM_TIMEOUT", "300ms")]).await;
    let started = Instant::now();
    let reply = world
        .http
        .get("/user?answer=slow")
        .bearer(&world.token())
        .send()
        .await;
    reply.expect_problem(504, "upstream-timeout");
    let reply = world.http.post("/user?answer=slow").body("{}").send().await;
    reply.expect_problem(504, "upstream-timeout");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn an_answer_that_stalls_breaks_off_instead_of_looking_complete() {
    let world = World::with(&[("GATEWAY_UPSTREAM_TIMEOUT", "300ms")]).await;
    let url = format!("{}/user?answer=stall", world.http.base());
    let request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url);
    let response = request.bearer_auth(world.token()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.text().await.is_err());
}

#[tokio::test]
async fn problems_of_a_service_pass_and_its_accidents_do_not() {
    let world = World::start().await;
    let reply = world
        .http
        .post("/user?answer=problem")
        .send()
        .await
        .expect(409);
    assert_eq!(reply.json["code"], "username-taken");
    let reply = world.http.post("/user?answer=panic").send().await;
    reply.expect_problem(502, "bad-gateway");
    assert!(!reply.text.contains("secret.rs"));
    let reply = world
        .http
        .post("/user?answer=redirect")
        .send()
        .await
        .expect(302);
    assert_eq!(reply.header("location"), Some("/docs"));
}

#[tokio::test]
async fn what_is_too_much_at_once_is_503_at_once() {
    let world = World::with(&[
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_UPSTREAM_TIMEOUT", "2s"),
    ])
    .await;
    let slow = world.http.post("/user?answer=slow").send();
    let slow = tokio::spawn(slow);
    testkit::eventually("the first request", || async {
        (world.users.count() == 1).then_some(())
    })
    .await;
    let started = Instant::now();
    let reply = world.http.post("/user").send().await;
    reply.expect_problem(503, "overloaded");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(started.elapsed() < Duration::from_secs(1));
    slow.await.unwrap().expect_problem(504, "upstream-timeout");
    assert_eq!(world.http.post("/user").send().await.status, 200);
}

#[tokio::test]
async fn bodies_that_trickle_take_no_place_of_other_requests() {
    let settings = [
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_MAX_PENDING_UPLOADS", "3"),
    ];
    let world = World::with(&settings).await;
    let head = "POST /user HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{";
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut socket = TcpStream::connect(world.address()).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        slow.push(socket);
    }
    testkit::eventually("the slow bodies to take every place of theirs", || async {
        world.users.with(|state| (state.begun == 3).then_some(()))
    })
    .await;
    let refused = world.http.post("/user").body("{}").send().await;
    refused.expect_problem(503, "overloaded");
    assert_eq!(world.http.post("/user").send().await.status, 200);
    for mut socket in slow {
        socket.write_all(b"}").await.unwrap();
        let answer = read_until_silence(&mut socket).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(world.http.post("/user").body("{}").send().await.status, 200);
}

/// A connection that has asked for a long answer and read nothing but its first line.
async fn unread(world: &World, method: &str, client: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(world.address()).await.unwrap();
    let head = format!(
        "{method} /user?answer=long HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
            X-Forwarded-For: {client}\r\nContent-Length: 0\r\n\r\n",
        world.token()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut line = vec![0; "HTTP/1.1 200".len()];
    socket.read_exact(&mut line).await.unwrap();
    let mut line = String::from_utf8(line).unwrap();
    (socket, line.split_off(line.len() - 3))
}

#[tokio::test]
async fn who_does_not_read_long_answers_takes_neither_every_place_nor_all_of_the_memory() {
    let room = (LONG * 5 / 2).to_string();
    let world = World::with(&[
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_MAX_BUFFERED_RESPONSE_BYTES", room.as_str()),
        ("TRUSTED_PROXIES", "127.0.0.0/8"),
    ])
    .await;
    let (first, status) = unread(&world, "GET", "203.0.113.1").await;
    assert_eq!(status, "200");
    // What has changed something may not look as if it had not.
    for (method, refusal) in [("GET", "503"), ("POST", "502")] {
        assert_eq!(unread(&world, method, "203.0.113.1").await.1, refusal);
    }
    assert_eq!(world.http.post("/user").send().await.status, 200);
    let (_second, status) = unread(&world, "GET", "203.0.113.2").await;
    assert_eq!(status, "200");
    assert_eq!(unread(&world, "GET", "203.0.113.3").await.1, "503");
    drop(first);
    testkit::eventually(
        "the room of an answer that nobody wants any more",
        || async {
            let (_, status) = unread(&world, "GET", "203.0.113.3").await;
            (status == "200").then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn a_body_that_finds_no_place_at_its_end_never_looks_complete() {
    let settings = [
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_UPSTREAM_TIMEOUT", "2s"),
    ];
    let world = World::with(&settings).await;
    let slow = tokio::spawn(world.http.post("/user?answer=slow").send());
    testkit::eventually("the first request", || async {
        (world.users.count() == 1).then_some(())
    })
    .await;
    let reply = world.http.post("/user").body("{}").send().await;
    reply.expect_problem(503, "overloaded");
    let incomplete = |state: &mut crate::services::State| {
        state.seen.iter().skip(1).all(|seen| seen.body.is_none())
    };
    assert!(world.users.with(incomplete));
    slow.await.unwrap().expect_problem(504, "upstream-timeout");
}
