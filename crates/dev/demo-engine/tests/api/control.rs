use std::collections::BTreeSet;

use demo_engine::{ControlChange, Settings};
use reqwest::Method;
use serde_json::json;

use crate::client::Engine;

#[tokio::test]
async fn the_control_shows_and_takes_single_fields() {
    let engine = Engine::start().await;
    let fresh = json!({"delay": "0s", "fail": 0, "accepted": "0s", "down": false});
    assert_eq!(engine.get("/control").await, fresh);

    let answer = engine
        .put("/control", &json!({"delay": "1500ms", "fail": 3}))
        .await;
    assert_eq!(answer.status(), 200);
    let changed = json!({"delay": "1500ms", "fail": 3, "accepted": "0s", "down": false});
    assert_eq!(engine.get("/control").await, changed);
    assert_eq!(engine.server.control().fail, 3);
}

#[tokio::test]
async fn a_control_that_cannot_be_read_changes_nothing() {
    let engine = Engine::start().await;
    let before = engine.get("/control").await;
    for body in [
        json!({"delay": "soon"}),
        json!({"fail": -1}),
        json!({"other": 1}),
    ] {
        assert_eq!(engine.put("/control", &body).await.status(), 400, "{body}");
    }
    assert_eq!(engine.get("/control").await, before);
}

#[tokio::test]
async fn while_down_the_contract_answers_503_and_records_nothing() {
    let engine = Engine::start().await;
    engine.server.change_control(&ControlChange {
        down: Some(true),
        ..ControlChange::default()
    });
    for path in ["/webhooks/x", "/forgot-password", "/users/a/flows/stop"] {
        let answer = engine.post(path, &json!({})).await;
        assert_eq!(answer.status(), 503, "{path}");
        assert!(answer.headers().contains_key("retry-after"));
    }
    assert!(engine.received("").await.is_empty());
    assert_eq!(engine.get("/readyz").await["status"], "ready");

    engine.put("/control", &json!({"down": false})).await;
    assert_eq!(engine.post("/webhooks/x", &json!({})).await.status(), 200);
}

#[tokio::test]
async fn health_and_readiness_answer() {
    let engine = Engine::start().await;
    assert_eq!(engine.get("/healthz").await, json!({"status": "ok"}));
    let ready = json!({"status": "ready", "checks": {}});
    assert_eq!(engine.get("/readyz").await, ready);
    let metrics = engine
        .request(Method::GET, "/metrics")
        .send()
        .await
        .unwrap();
    assert_eq!(metrics.status(), 200);
}

#[tokio::test]
async fn an_unknown_path_and_a_wrong_method_are_refused() {
    let engine = Engine::start().await;
    let unknown = engine.request(Method::GET, "/other").send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    let wrong = engine
        .request(Method::PUT, "/received")
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 405);
}

#[tokio::test]
async fn two_engines_cannot_share_a_port() {
    let engine = Engine::start().await;
    let settings = Settings {
        listen_address: engine.server.address(),
        ..Settings::default()
    };
    let error = demo_engine::run(settings).await.err().unwrap();
    assert!(error.to_string().contains("LISTEN_ADDRESS 127.0.0.1:"));
}

#[test]
fn the_settings_describe_themselves() {
    let described = app_config::describe::<Settings>().unwrap();
    let secret = described.iter().filter(|setting| setting.secret);
    let secret: Vec<_> = secret.map(|setting| setting.name).collect();
    assert_eq!(secret, ["DEMO_ENGINE_TOKEN"]);
    let names: BTreeSet<_> = described.iter().map(|setting| setting.name).collect();
    assert_eq!(names.len(), described.len(), "each is read once");
}
