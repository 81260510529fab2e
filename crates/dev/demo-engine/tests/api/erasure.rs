use std::time::{Duration, Instant};

use demo_engine::{ControlChange, Settings};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use values::Secret;

use crate::fixture::Fixture;

pub(crate) const CALLS: [(Method, &str); 5] = [
    (Method::POST, "flows/stop"),
    (Method::DELETE, "flows"),
    (Method::DELETE, "logs"),
    (Method::DELETE, "accounts"),
    (Method::DELETE, "tokens"),
];
const USER: &str = "0123456789abcdef01234567";

async fn call(engine: &Fixture, (method, name): &(Method, &str)) -> Response {
    let path = format!("/users/{USER}/{name}");
    let request = engine.request(method.clone(), &path);
    request.send().await.unwrap()
}

#[tokio::test]
async fn the_five_calls_erase_all_data_of_a_user() {
    let engine = Fixture::start().await;
    let path = format!("/users/{USER}");
    let fields = ["runningFlows", "flows", "logs", "accounts", "tokens"];
    let before = engine.get(&path).await;

    for (step, field) in CALLS.iter().zip(fields) {
        let count = before[field].as_u64().unwrap();
        assert!(count > 0, "{field}");
        let response = call(&engine, step).await;
        assert_eq!(response.status(), 200, "{field}");
        let body: Value = response.json().await.unwrap();
        let name = if field == "runningFlows" {
            "stopped"
        } else {
            "deleted"
        };
        assert_eq!(body, json!({ name: count }));
        assert_eq!(engine.get(&path).await[field], 0);
    }
    let other = engine.get("/users/ffffffffffffffffffffffff").await;
    assert_ne!(other["flows"], 0, "the data of another user stay");
}

#[tokio::test]
async fn a_second_call_finds_nothing() {
    let engine = Fixture::start().await;
    for step in &CALLS {
        call(&engine, step).await;
    }
    for (step, status) in CALLS.iter().zip([204, 404, 404, 404, 404]) {
        assert_eq!(call(&engine, step).await.status(), status, "{}", step.1);
    }
}

#[tokio::test]
async fn a_user_lists_the_calls() {
    let engine = Fixture::start().await;
    engine.server.change_control(&ControlChange {
        fail: Some(1),
        ..ControlChange::default()
    });
    call(&engine, &CALLS[2]).await;
    call(&engine, &CALLS[2]).await;
    let user = engine.get(&format!("/users/{USER}")).await;
    let calls = user["calls"].as_array().unwrap();
    assert_eq!(
        (&calls[0]["step"], &calls[0]["status"]),
        (&json!("logs"), &json!(500))
    );
    assert_eq!(
        (&calls[1]["step"], &calls[1]["status"]),
        (&json!("logs"), &json!(200))
    );
}

#[tokio::test]
async fn without_the_token_nothing_is_erased() {
    let engine = Fixture::start_with(Settings {
        token: Some(Secret::new("t0ken")),
        ..Settings::default()
    })
    .await;
    let before = engine.get(&format!("/users/{USER}")).await;
    for (method, name) in &CALLS {
        let path = format!("/users/{USER}/{name}");
        for authorization in [
            None,
            Some("Bearer other"),
            Some("Basic t0ken"),
            Some("Bearer"),
        ] {
            let mut request = engine.request(method.clone(), &path);
            if let Some(value) = authorization {
                request = request.header("Authorization", value);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 401, "{path} {authorization:?}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
        }
    }
    assert_eq!(engine.get(&format!("/users/{USER}")).await, before);

    let request = engine.request(Method::DELETE, &format!("/users/{USER}/logs"));
    let response = request.bearer_auth("t0ken").send().await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn each_call_of_each_user_fails_as_often_as_configured() {
    let engine = Fixture::start().await;
    let response = engine.put("/control", &json!({"fail": 2})).await;
    assert_eq!(response.status(), 200);
    for step in &CALLS {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(call(&engine, step).await.status().as_u16());
        }
        assert_eq!(statuses, [500, 500, 200], "{}", step.1);
    }
    engine.put("/control", &json!({"fail": 1})).await;
    let again = call(&engine, &CALLS[1]).await;
    assert_eq!(again.status(), 500, "the count is reset");
}

#[tokio::test]
async fn a_call_can_be_accepted_before_it_is_done() {
    let engine = Fixture::start().await;
    engine.put("/control", &json!({"accepted": "300ms"})).await;
    let start = Instant::now();
    let first = call(&engine, &CALLS[0]).await;
    assert_eq!(first.status(), 202);
    assert_eq!(first.headers()["retry-after"], "1");
    assert_ne!(
        engine.get(&format!("/users/{USER}")).await["runningFlows"],
        0
    );
    let done = loop {
        let response = call(&engine, &CALLS[0]).await;
        if response.status() != 202 {
            break response;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "still not done");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(done.status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_delay_delays_the_response() {
    let engine = Fixture::start().await;
    engine.put("/control", &json!({"delay": "200ms"})).await;
    let start = Instant::now();
    assert_eq!(call(&engine, &CALLS[0]).await.status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(200));
}
