use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::fixture::Fixture;
use crate::services::{FakeService, LONG, medium};

#[tokio::test]
async fn an_unreachable_service_is_502_until_it_is_back() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    fixture.tasks.stop().await;
    let reply = fixture
        .http
        .get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await;
    reply.expect_problem(502, "bad-gateway");
    assert!(!reply.text.contains("127.0.0.1"), "{}", reply.text);
    let reply = fixture
        .http
        .post("/people-task/tasks")
        .bearer(&token)
        .body("{}")
        .send()
        .await;
    reply.expect_problem(502, "bad-gateway");
    let unconcerned = fixture.http.get("/user").bearer(&token).send().await;
    assert_eq!(unconcerned.status, 200);

    let back = FakeService::start_at(fixture.tasks.running.address.unwrap());
    let reply = fixture
        .http
        .get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await;
    assert_eq!((reply.status, back.count()), (200, 1));
}

#[tokio::test]
async fn a_slow_service_is_504() {
    let fixture = Fixture::with(&[
        // The second request needs the place of the first one.
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_UPSTREAM_TIMEOUT", "300ms"),
    ])
    .await;
    let started = Instant::now();
    let reply = fixture
        .http
        .get("/user?response=slow")
        .bearer(&fixture.token())
        .send()
        .await;
    reply.expect_problem(504, "upstream-timeout");
    let reply = fixture
        .http
        .post("/user?response=slow")
        .body("{}")
        .send()
        .await;
    reply.expect_problem(504, "upstream-timeout");
    // Without the setting, each would take as long.
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_response_that_stalls_never_looks_complete() {
    let fixture = Fixture::with(&[("GATEWAY_UPSTREAM_TIMEOUT", "2s")]).await;
    let url = format!("{}/user?response=stream", fixture.http.base());
    let request = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url);
    let response = request.bearer_auth(fixture.token()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.text().await.is_err());
}

#[tokio::test]
async fn a_short_response_that_stalls_is_504() {
    let fixture = Fixture::with(&[("GATEWAY_UPSTREAM_TIMEOUT", "300ms")]).await;
    let reply = fixture
        .http
        .get("/user?response=stall-short")
        .bearer(&fixture.token())
        .send()
        .await;
    reply.expect_problem(504, "upstream-timeout");
}

#[tokio::test]
async fn a_response_in_several_parts_is_complete() {
    let fixture = Fixture::start().await;
    let token = fixture.token();
    for _ in 0..3 {
        let request = fixture.http.get("/user?response=medium").bearer(&token);
        assert_eq!(request.send().await.expect(200).text, medium());
    }
}

#[tokio::test]
async fn problems_of_a_service_are_forwarded_and_other_errors_are_hidden() {
    let fixture = Fixture::start().await;
    let reply = fixture
        .http
        .post("/user?response=problem")
        .send()
        .await
        .expect(409);
    assert_eq!(reply.json["code"], "username-taken");
    let reply = fixture.http.post("/user?response=panic").send().await;
    reply.expect_problem(502, "bad-gateway");
    assert!(!reply.text.contains("secret.rs"));
    let reply = fixture
        .http
        .post("/user?response=redirect")
        .send()
        .await
        .expect(302);
    assert_eq!(reply.header("location"), Some("/docs"));
}

#[tokio::test]
async fn a_request_above_the_in_flight_limit_is_503_at_once() {
    let fixture = Fixture::with(&[("GATEWAY_MAX_IN_FLIGHT", "1")]).await;
    let slow = fixture.http.post("/user?response=slow").send();
    let slow = tokio::spawn(slow);
    testkit::eventually("the first request", || async {
        (fixture.users.count() == 1).then_some(())
    })
    .await;
    let reply = fixture.http.post("/user").send().await;
    reply.expect_problem(503, "overloaded");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(!slow.is_finished());
    fixture.users.with(|state| state.go_on.notify_one());
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(fixture.http.post("/user").send().await.status, 200);
}

/// A connection with a long response of which only the status has been read.
async fn unread(fixture: &Fixture, method: &str, client: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(fixture.address()).await.unwrap();
    let head = format!(
        "{method} /user?response=long HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
            X-Forwarded-For: {client}\r\nContent-Length: 0\r\n\r\n",
        fixture.token()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut line = vec![0; "HTTP/1.1 200".len()];
    socket.read_exact(&mut line).await.unwrap();
    let mut line = String::from_utf8(line).unwrap();
    (socket, line.split_off(line.len() - 3))
}

#[tokio::test]
async fn unread_responses_are_limited_per_client_and_in_total() {
    let metrics = telemetry::metrics_recorder();
    let budget = (LONG * 5 / 2).to_string();
    let fixture = Fixture::with(&[
        ("GATEWAY_MAX_IN_FLIGHT", "1"),
        ("GATEWAY_MAX_BUFFERED_RESPONSE_BYTES", budget.as_str()),
        ("TRUSTED_PROXIES", "127.0.0.0/8"),
    ])
    .await;
    let (first, status) = unread(&fixture, "GET", "203.0.113.1").await;
    assert_eq!(status, "200");
    // A `429` would mean that the `POST` has changed nothing.
    for (method, status) in [("GET", "429"), ("POST", "502")] {
        assert_eq!(unread(&fixture, method, "203.0.113.1").await.1, status);
    }
    let measured = metrics.render();
    let counted = |line: &str| measured.lines().any(|shown| shown == line);
    assert!(counted("gateway_requests_over_share_total 2"), "{measured}");
    assert!(!measured.contains("kind=\"broken\"} 1"), "{measured}");
    assert_eq!(fixture.http.post("/user").send().await.status, 200);
    let (_second, status) = unread(&fixture, "GET", "203.0.113.2").await;
    assert_eq!(status, "200");
    assert_eq!(unread(&fixture, "GET", "203.0.113.3").await.1, "503");
    drop(first);
    testkit::eventually("the budget of the closed connection", || async {
        let (_, status) = unread(&fixture, "GET", "203.0.113.3").await;
        (status == "200").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_refused_request_with_a_body_never_reaches_the_service() {
    let fixture = Fixture::with(&[("GATEWAY_MAX_IN_FLIGHT", "1")]).await;
    let _slow = tokio::spawn(fixture.http.post("/user?response=slow").send());
    testkit::eventually("the first request", || async {
        (fixture.users.count() == 1).then_some(())
    })
    .await;
    let reply = fixture.http.post("/user").body("{}").send().await;
    reply.expect_problem(503, "overloaded");
    assert_eq!(fixture.users.count(), 1);
}

/// A service that closes each connection after it has read a request, and counts them.
async fn closing_service(listener: TcpListener, count: Arc<AtomicUsize>) {
    loop {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\n") {
            assert_ne!(connection.read_buf(&mut received).await.unwrap(), 0);
        }
        // The gateway also asks for keys and revocations.
        if [
            &b"GET /user "[..],
            b"POST /user ",
            b"GET /people-task/webhooks/",
        ]
        .iter()
        .any(|head| received.starts_with(head))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn only_a_request_that_changes_nothing_is_sent_again_when_its_service_closes_the_connection()
{
    let fixture = Fixture::start().await;
    let token = fixture.token();
    let count = Arc::<AtomicUsize>::default();
    let mut closing = JoinSet::new();
    for service in [&fixture.users, &fixture.tasks] {
        let address = service.running.address.unwrap();
        service.stop().await;
        let listener = TcpListener::bind(address).await.unwrap();
        closing.spawn(closing_service(listener, Arc::clone(&count)));
    }
    // A GET of a webhook deletes it.
    let deletes = format!("/people-task/webhooks/{}", "0".repeat(24));
    for (request, times) in [
        (fixture.http.get("/user"), 2),
        (fixture.http.post("/user"), 1),
        (fixture.http.get(&deletes), 1),
    ] {
        let reply = request.bearer(&token).send().await;
        reply.expect_problem(502, "bad-gateway");
        assert_eq!(count.swap(0, Ordering::Relaxed), times);
    }
}
