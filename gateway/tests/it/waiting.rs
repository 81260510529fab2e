//! Callers that wait for the end of a task.

use std::time::{Duration, Instant};

use testkit::{Reply, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use values::UserId;

use crate::fixture::{Fixture, token};
use crate::services::{FakeService, State};

const BEHIND_A_PROXY: (&str, &str) = ("TRUSTED_PROXIES", "127.0.0.0/8");
const CLIENT: &str = "203.0.113.1";
/// Less than any wait that the tests ask for.
const SOON: Duration = Duration::from_secs(5);

/// Starts to wait, and returns when the service has been asked once for this caller.
async fn wait(fixture: &Fixture, path: &str, client: &str) -> JoinHandle<Reply> {
    let token = fixture.token();
    let request = fixture.http.get(path).bearer(&token);
    let waiting = tokio::spawn(request.header("x-forwarded-for", client).send());
    until_asked(fixture, &token).await;
    waiting
}

/// Waits until the service has been asked for the caller with this token. It may be asked again for others meanwhile.
async fn until_asked(fixture: &Fixture, token: &str) {
    let authorization = format!("Bearer {token}");
    eventually("the service to be asked", || async {
        let asked = |state: &mut State| {
            let mut headers = state.received.iter().map(|r| r.header("authorization"));
            headers.any(|header| header == Some(&*authorization))
        };
        fixture.tasks.with(asked).then_some(())
    })
    .await;
}

/// The reply, which must come long before the wait is over.
async fn soon(waiting: JoinHandle<Reply>) -> Reply {
    tokio::time::timeout(SOON, waiting)
        .await
        .expect("no reply")
        .unwrap()
}

#[tokio::test]
async fn a_caller_is_answered_when_the_task_ends() {
    let fixture = Fixture::start().await;
    let (path, other) = (fixture.tasks.pending_task(), fixture.tasks.pending_task());
    let waiting = wait(&fixture, &path, CLIENT).await;
    let of_other = wait(&fixture, &other, CLIENT).await;
    fixture.tasks.end(&other);
    assert_eq!(soon(of_other).await.expect(200).json["ok"], true);
    assert!(!waiting.is_finished());
    fixture.tasks.end(&path);
    let reply = soon(waiting).await.expect(200);
    assert_eq!(reply.json["ok"], true);
    assert_eq!(reply.header("x-may-wait"), None);
    // A caller that does not want to wait, and one whose task is not pending, are answered at once.
    let pending = fixture.tasks.pending_task();
    let (pending, _) = pending.split_once('?').unwrap();
    for path in [pending, &path] {
        let reply = fixture.http.get(path).bearer(&fixture.token()).send();
        let _ = tokio::time::timeout(SOON, reply).await.unwrap().expect(200);
    }
}

#[tokio::test]
async fn a_caller_with_a_long_head_is_answered_at_once() {
    let fixture = Fixture::start().await;
    let path = fixture.tasks.pending_task();
    let reply = |length| {
        let request = fixture.http.get(&path).bearer(&fixture.token());
        request.header("x-long", &"a".repeat(length)).send()
    };
    let short = tokio::spawn(reply(7 * 1024));
    let long = tokio::time::timeout(SOON, reply(8 * 1024)).await.unwrap();
    assert_eq!(long.expect(200).json["status"], "pending");
    assert!(!short.is_finished());
    fixture.tasks.end(&path);
    assert_eq!(soon(short).await.expect(200).json["ok"], true);
}

#[tokio::test]
async fn neither_chunks_nor_blank_lines_hide_a_long_head() {
    let fixture = Fixture::start().await;
    let path = fixture.tasks.pending_task();
    let (blank, long) = ("\r\n".repeat(5_000), "a".repeat(10_000));
    let chunked = format!("x-long: {long}\r\ntransfer-encoding: chunked\r\n\r\n0");
    for (before, rest) in [(&*blank, ""), ("", &*chunked)] {
        let token = fixture.token();
        let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
        let request = format!(
            "{before}GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{rest}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        let read = tokio::time::timeout(SOON, socket.read_to_string(&mut response)).await;
        read.unwrap().unwrap();
        assert!(response.contains("\"pending\""), "{response}");
    }
}

#[tokio::test]
async fn the_state_of_a_task_that_does_not_end_comes_when_the_wait_is_over() {
    let fixture = Fixture::with(&[("GATEWAY_LONGEST_WAIT", "1s")]).await;
    let path = fixture.tasks.pending_task();
    let started = Instant::now();
    let waiting = wait(&fixture, &path, CLIENT).await;
    let reply = soon(waiting).await.expect(200);
    assert_eq!(reply.json["status"], "pending");
    assert!(started.elapsed() >= Duration::from_secs(1));
    let times = |pattern: &str| {
        fixture.tasks.with(|s| {
            s.received
                .iter()
                .filter(|r| r.target.contains(pattern))
                .count()
        })
    };
    // Once at the beginning, once because the feed has just begun, and once at the end.
    assert!((2..=3).contains(&times("wait=30")), "{}", times("wait=30"));
}

#[tokio::test]
async fn the_token_is_judged_again_at_the_answer() {
    let fixture = Fixture::start().await;
    let path = fixture.tasks.pending_task();
    let user = UserId::generate();
    let token = token(&fixture.signer, user);
    let waiting = tokio::spawn(fixture.http.get(&path).bearer(&token).send());
    until_asked(&fixture, &token).await;
    fixture.users.with(|state| state.raised.push((user, 2)));
    eventually("the token to be revoked", || async {
        let reply = fixture.http.get("/user").bearer(&token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
    fixture.tasks.end(&path);
    soon(waiting).await.expect_problem(401, "token-revoked");
}

#[tokio::test]
async fn a_gateway_that_stops_answers_everyone_at_once() {
    let fixture = Fixture::start().await;
    let path = fixture.tasks.pending_task();
    let mut waiting = Vec::new();
    let tokens: Vec<_> = (0..100).map(|_| fixture.token()).collect();
    for token in &tokens {
        let request = fixture.http.get(&path).bearer(token);
        waiting.push(tokio::spawn(request.send()));
    }
    for token in &tokens {
        until_asked(&fixture, token).await;
    }
    fixture.gateway.drain(Duration::ZERO).await;
    for waiting in waiting {
        assert_eq!(soon(waiting).await.expect(200).json["status"], "pending");
    }
}

#[tokio::test]
async fn one_network_cannot_take_all_places() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY, ("GATEWAY_MAX_WAITING", "3")]).await;
    let path = fixture.tasks.pending_task();
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(wait(&fixture, &path, CLIENT).await);
    }
    let request = fixture
        .http
        .get(&path)
        .bearer(&fixture.token())
        .header("x-forwarded-for", CLIENT);
    request
        .send()
        .await
        .expect_problem(429, "too-many-concurrent-requests");
    let other = wait(&fixture, &path, "203.0.113.2").await;
    // The newest one of the network with the most is answered.
    let displaced = soon(waiting.pop().unwrap()).await.expect(200);
    assert_eq!(displaced.json["status"], "pending");
    fixture.tasks.end(&path);
    for waiting in waiting.into_iter().chain([other]) {
        assert_eq!(soon(waiting).await.expect(200).json["ok"], true);
    }
}

#[tokio::test]
async fn a_caller_that_does_not_read_its_answer_keeps_its_place() {
    let fixture = Fixture::with(&[("GATEWAY_MAX_WAITING", "1")]).await;
    let path = fixture.tasks.pending_task();
    let head = format!(
        "GET {path}&response=long HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
        fixture.token()
    );
    let mut unread = TcpStream::connect(fixture.address()).await.unwrap();
    unread.write_all(head.as_bytes()).await.unwrap();
    eventually("the service to be asked", || async {
        (fixture.tasks.count() > 0).then_some(())
    })
    .await;
    fixture.tasks.end(&path);
    unread.readable().await.unwrap();
    let other = format!("/people-task/tasks/{}?wait=30", "0".repeat(24));
    let status = async || {
        let other = fixture.http.get(&other).bearer(&fixture.token());
        other.send().await.status
    };
    assert_eq!(status().await, 429);
    drop(unread);
    eventually("the place to be free", async || {
        (status().await == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn who_waits_takes_no_place_of_other_requests_and_no_connection() {
    let limits = [
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_UPSTREAM_TIMEOUT", "2s"),
        ("HTTP_WORKERS", "1"),
        ("HTTP_MAX_CONNECTIONS", "4"),
        ("GATEWAY_MAX_WAITING", "40"),
    ];
    let fixture = Fixture::with(&limits).await;
    let path = fixture.tasks.pending_task();
    let mut waiting = Vec::new();
    for _ in 0..30 {
        waiting.push(wait(&fixture, &path, CLIENT).await);
    }
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        let reply = fixture
            .http
            .get("/people-task/tasks")
            .bearer(&fixture.token())
            .send();
        let _ = reply.await.expect(200);
    }
    fixture.tasks.end(&path);
    for waiting in waiting {
        let reply = soon(waiting).await.expect(200);
        assert_eq!(reply.json["ok"], true);
        // The connection was not counted, so it is not kept.
        assert_eq!(reply.header("connection"), Some("close"));
    }
}

#[tokio::test]
async fn an_answer_closes_the_connection_of_a_trusted_proxy_too() {
    let fixture = Fixture::with(&[BEHIND_A_PROXY]).await;
    let path = fixture.tasks.pending_task();
    let waiting = wait(&fixture, &path, CLIENT).await;
    fixture.tasks.end(&path);
    let reply = soon(waiting).await.expect(200);
    // What limits the answers is kept until then.
    assert_eq!(reply.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_restart_of_the_service_is_no_end_of_the_wait() {
    let fixture = Fixture::start().await;
    let path = fixture.tasks.pending_task();
    let waiting = wait(&fixture, &path, CLIENT).await;
    let address = fixture.tasks.running.address.unwrap();
    fixture.tasks.stop().await;
    let restarted = FakeService::start_at(address);
    let pending = fixture.tasks.with(|state| state.pending.clone());
    restarted.with(|state| state.pending = pending);
    restarted.end(&path);
    assert_eq!(soon(waiting).await.expect(200).json["ok"], true);
}

#[tokio::test]
async fn a_service_that_ends_its_feed_at_once_is_asked_again_after_a_pause() {
    for lines in [0, 1] {
        let fixture = Fixture::with(&[("GATEWAY_LONGEST_WAIT", "2s")]).await;
        fixture.tasks.with(|state| state.feed_lines = Some(lines));
        let path = fixture.tasks.pending_task();
        let started = Instant::now();
        let _ = soon(wait(&fixture, &path, CLIENT).await).await.expect(200);
        let asked = fixture.tasks.with(|state| state.feeds);
        // The pause is half a second.
        let most = usize::try_from(started.elapsed().as_millis() / 500).unwrap() + 1;
        assert!((2..=most).contains(&asked), "{lines} lines: {asked}");
    }
}
