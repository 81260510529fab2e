use std::collections::BTreeSet;

use demo_engine::{ControlChange, Settings};
use reqwest::Method;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn single_fields_of_the_control_can_be_changed() {
    let engine = Fixture::start().await;
    let default = json!({"delay": "0s", "fail": 0, "accepted": "0s", "down": false});
    assert_eq!(engine.get("/control").await, default);

    let response = engine
        .put("/control", &json!({"delay": "1500ms", "fail": 3}))
        .await;
    assert_eq!(response.status(), 200);
    let changed = json!({"delay": "1500ms", "fail": 3, "accepted": "0s", "down": false});
    assert_eq!(engine.get("/control").await, changed);
    let control = engine.server.change_control(&ControlChange::default());
    assert_eq!(control.fail, 3);
}

#[tokio::test]
async fn an_invalid_control_changes_nothing() {
    let engine = Fixture::start().await;
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
async fn during_an_outage_calls_return_503_and_are_not_recorded() {
    let engine = Fixture::start().await;
    engine.server.change_control(&ControlChange {
        down: Some(true),
        ..ControlChange::default()
    });
    for path in ["/webhooks/x", "/forgot-password", "/users/a/flows/stop"] {
        let response = engine.post(path, &json!({})).await;
        assert_eq!(response.status(), 503, "{path}");
        assert!(response.headers().contains_key("retry-after"));
    }
    assert!(engine.received("").await.is_empty());
    assert_eq!(engine.get("/readyz").await["status"], "ready");

    engine.put("/control", &json!({"down": false})).await;
    assert_eq!(engine.post("/webhooks/x", &json!({})).await.status(), 200);
}

#[tokio::test]
async fn health_readiness_and_metrics_are_served() {
    let engine = Fixture::start().await;
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
    let engine = Fixture::start().await;
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
    let engine = Fixture::start().await;
    let settings = Settings {
        listen_address: engine.server.address,
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
