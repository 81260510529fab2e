use std::time::{Duration, Instant};

use reqwest::Method;
use testkit::eventually;

use crate::services::FakeService;
use crate::world::World;

#[tokio::test]
async fn a_dead_service_is_503_at_once_until_a_request_finds_it_alive() {
    let settings = [
        ("GATEWAY_CIRCUIT_FAILURES", "3"),
        ("GATEWAY_CIRCUIT_PAUSE", "300ms"),
    ];
    let world = World::with(&settings).await;
    world.users.stop().await;
    for _ in 0..3 {
        let reply = world.http.post("/user").send().await;
        reply.expect_problem(502, "bad-gateway");
    }
    let reply = world.http.post("/user").send().await;
    reply.expect_problem(503, "upstream-unavailable");
    assert_eq!(reply.header("retry-after"), Some("1"));
    // The other service has a circuit of its own.
    let other = world.http.get("/people-task/tasks").send().await;
    assert_eq!(other.status, 200);

    let back = FakeService::start_at(world.users.running.address.unwrap());
    eventually("a request to find it alive", || async {
        let reply = world.http.post("/user").send().await;
        (reply.status == 200).then_some(())
    })
    .await;
    assert_eq!(world.http.post("/user").send().await.status, 200);
    assert_eq!(back.count(), 2);
}

#[tokio::test]
async fn a_service_that_hangs_costs_time_only_until_the_circuit_opens() {
    let settings = [
        ("GATEWAY_CIRCUIT_FAILURES", "2"),
        ("GATEWAY_CIRCUIT_PAUSE", "5m"),
        ("GATEWAY_UPSTREAM_TIMEOUT", "300ms"),
    ];
    let world = World::with(&settings).await;
    for _ in 0..2 {
        let reply = world.http.post("/user?answer=slow").send().await;
        reply.expect_problem(504, "upstream-timeout");
    }
    let started = Instant::now();
    for method in [Method::POST, Method::GET] {
        let request = world.http.request(method, "/user").bearer(&world.token());
        let reply = request.send().await;
        reply.expect_problem(503, "upstream-unavailable");
        assert_eq!(reply.header("retry-after"), Some("300"));
    }
    assert!(started.elapsed() < Duration::from_millis(300));
}

#[tokio::test]
async fn errors_that_a_service_answers_and_bodies_that_callers_break_off_open_nothing() {
    let settings = [
        ("GATEWAY_CIRCUIT_FAILURES", "1"),
        ("GATEWAY_BODY_TIMEOUT", "100ms"),
    ];
    let world = World::with(&settings).await;
    let reply = world.http.post("/user?answer=panic").send().await;
    reply.expect_problem(502, "bad-gateway");
    let trickle = "POST /user HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
    let answer = world.raw(trickle).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert_eq!(world.http.post("/user").send().await.status, 200);
}
