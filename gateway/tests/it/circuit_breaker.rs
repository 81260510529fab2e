use actix_web::http::StatusCode;
use auth::ApiKey;
use reqwest::Method;
use testkit::eventually;
use values::CredentialId;

use crate::fixture::Fixture;
use crate::services::FakeService;

#[tokio::test]
async fn the_circuit_of_a_dead_service_opens_and_closes_again() {
    let settings = [
        ("GATEWAY_CIRCUIT_FAILURES", "3"),
        ("GATEWAY_CIRCUIT_PAUSE", "2s"),
        ("RATE_LIMIT", "off"),
    ];
    let fixture = Fixture::with(&settings).await;
    fixture.users.stop().await;
    for _ in 0..3 {
        let reply = fixture.http.post("/user").send().await;
        reply.expect_problem(502, "bad-gateway");
    }
    let reply = fixture.http.post("/user").send().await;
    reply.expect_problem(503, "upstream-unavailable");
    assert!(matches!(reply.header("retry-after"), Some("1" | "2")));
    // Each service has its own circuit.
    let other = fixture.http.get("/people-task/tasks").send().await;
    assert_eq!(other.status, 200);

    let back = FakeService::start_at(fixture.users.running.address.unwrap());
    eventually("the circuit to close", || async {
        let reply = fixture.http.post("/user").send().await;
        (reply.status == 200).then_some(())
    })
    .await;
    assert_eq!(fixture.http.post("/user").send().await.status, 200);
    assert_eq!(back.count(), 2);
}

#[tokio::test]
async fn timeouts_open_the_circuit() {
    let settings = [
        ("GATEWAY_CIRCUIT_FAILURES", "2"),
        ("GATEWAY_CIRCUIT_PAUSE", "5m"),
        ("GATEWAY_UPSTREAM_TIMEOUT", "1s"),
    ];
    let fixture = Fixture::with(&settings).await;
    for _ in 0..2 {
        let reply = fixture.http.post("/user?response=slow").send().await;
        reply.expect_problem(504, "upstream-timeout");
    }
    for method in [Method::POST, Method::GET] {
        let request = fixture
            .http
            .request(method, "/user")
            .bearer(&fixture.token());
        let reply = request.send().await;
        reply.expect_problem(503, "upstream-unavailable");
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((290..=300).contains(&wait), "{wait}");
    }
    assert!(fixture.users.count() <= 2);
}

#[tokio::test]
async fn error_responses_and_slow_callers_do_not_open_the_circuit() {
    let settings = [
        ("GATEWAY_CIRCUIT_FAILURES", "1"),
        ("GATEWAY_BODY_TIMEOUT", "100ms"),
    ];
    let fixture = Fixture::with(&settings).await;
    let reply = fixture.http.post("/user?response=panic").send().await;
    reply.expect_problem(502, "bad-gateway");
    let overloaded = (StatusCode::SERVICE_UNAVAILABLE, 1);
    fixture
        .users
        .with(|state| state.key_refusal = Some(overloaded));
    let key = ApiKey::generate(CredentialId::generate());
    let by_key = fixture.http.get("/people-task/tasks").bearer(key.expose());
    by_key.send().await.expect_problem(503, "keys-unavailable");
    let trickle = "POST /user HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
    let response = fixture.raw(trickle).await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert_eq!(fixture.http.post("/user").send().await.status, 200);
}
