use std::time::{Duration, Instant};

use demo_engine::Kind;
use reqwest::Method;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_webhook_is_recorded_unchanged() {
    let engine = Fixture::start().await;
    let task = json!({"id": "0123456789abcdef01234567", "status": "approved"});
    let path = "/webhooks/flows/7/components/c?correlationId=a%20b&correlationInPort=in";

    let request = engine.request(Method::POST, path).json(&task);
    let response = request.header("Webhook-Id", "msg_1").send().await.unwrap();

    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.unwrap(), "{}");
    let items = engine.received("").await;
    assert_eq!(items.len(), 1);
    let item = &items[0];
    assert_eq!(item["kind"], "webhook");
    assert_eq!(item["method"], "POST");
    assert_eq!(item["path"], "/webhooks/flows/7/components/c");
    let query = json!({"correlationId": "a b", "correlationInPort": "in"});
    assert_eq!(item["query"], query);
    assert_eq!(item["headers"]["webhook-id"], "msg_1");
    assert_eq!(item["headers"]["content-type"], "application/json");
    assert_eq!(item["body"], task);
    assert_eq!(item["text"], task.to_string());
    let at = item["at"].as_str().unwrap();
    assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
}

#[tokio::test]
async fn a_body_that_is_not_json_is_kept_as_text() {
    let engine = Fixture::start().await;
    let request = engine.request(Method::POST, "/webhooks/x").body("plain");
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(engine.received("").await[0]["body"], "plain");
}

#[tokio::test]
async fn a_body_over_256_kib_is_refused() {
    let engine = Fixture::start().await;
    for (size, status) in [(256 * 1024, 200), (256 * 1024 + 1, 413)] {
        let request = engine.request(Method::POST, "/webhooks/x");
        let response = request.body("x".repeat(size)).send().await.unwrap();
        assert_eq!(response.status(), status);
    }
    assert_eq!(engine.server.received().len(), 1);
}

#[tokio::test]
async fn a_forgot_password_message_is_recorded() {
    let engine = Fixture::start().await;
    let body = json!({"code": "c", "email": "ada@example.com", "userId": "u"});
    let response = engine.post("/forgot-password", &body).await;
    assert_eq!(response.status(), 200);
    let received = engine.server.received();
    assert_eq!(received[0].kind, Kind::ForgotPassword);
    assert_eq!(received[0].body, body);
}

#[tokio::test]
async fn received_calls_can_be_filtered_and_cleared() {
    let engine = Fixture::start().await;
    let none = json!({});
    engine.post("/webhooks/a?correlationId=1", &none).await;
    engine.post("/webhooks/a?correlationId=2", &none).await;
    for email in ["ada@example.com", "bob@example.com"] {
        engine
            .post("/forgot-password", &json!({"email": email}))
            .await;
    }

    for (query, count) in [
        ("", 4),
        ("?kind=webhook", 2),
        ("?kind=forgot-password", 2),
        ("?correlationId=2", 1),
        ("?email=ada%40example.com", 1),
        ("?kind=webhook&email=ada%40example.com", 0),
    ] {
        assert_eq!(engine.received(query).await.len(), count, "{query}");
    }
    let items = engine.received("?kind=webhook").await;
    assert_eq!(items[1]["query"]["correlationId"], "2", "newest last");

    assert_eq!(engine.delete("/received").await.status(), 200);
    assert!(engine.received("").await.is_empty());
}

#[tokio::test]
async fn an_unknown_filter_is_refused() {
    let engine = Fixture::start().await;
    for query in ["?kind=other", "?mail=a"] {
        let path = format!("/received{query}");
        let response = engine.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), 400, "{query}");
    }
}

#[tokio::test]
async fn the_url_chooses_the_status_and_retry_after() {
    let engine = Fixture::start().await;
    for status in [201, 204, 400, 410, 429, 500, 503] {
        let path = format!("/webhooks/x?status={status}&retryAfter=3");
        let response = engine.post(&path, &json!({})).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["retry-after"], "3");
    }
    assert_eq!(engine.server.received().len(), 7, "failures are recorded");
}

#[tokio::test]
async fn the_first_calls_of_a_url_fail() {
    let engine = Fixture::start().await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let response = engine.post("/webhooks/x?failFirst=2&n=1", &json!({})).await;
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [503, 503, 200]);
    let other = engine.post("/webhooks/x?failFirst=2&n=2", &json!({})).await;
    assert_eq!(other.status(), 503, "each URL has its own count");
}

#[tokio::test]
async fn a_webhook_can_be_delayed() {
    let engine = Fixture::start().await;
    let start = Instant::now();
    let response = engine.post("/webhooks/x?delay=200ms", &json!({})).await;
    assert_eq!(response.status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_redirect_leads_to_a_recorded_path() {
    let engine = Fixture::start().await;
    let response = engine.post("/webhooks/x?redirect=true", &json!({})).await;
    assert_eq!(response.status(), 302);
    let target = response.headers()["location"].to_str().unwrap().to_owned();
    engine.get(&target).await;
    let received = engine.server.received();
    assert_eq!(received[1].path, target);
    assert_eq!(received[1].method, "GET");
}

#[tokio::test]
async fn a_hanging_call_is_recorded_and_ends_when_the_engine_stops() {
    let engine = Fixture::start().await;
    let request = engine.request(Method::POST, "/webhooks/x?hang=true");
    let call = tokio::spawn(request.send());
    while engine.server.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!call.is_finished());

    let start = Instant::now();
    assert!(engine.server.running.stop(Duration::from_secs(10)).await);
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_invalid_option_is_refused() {
    let engine = Fixture::start().await;
    let response = engine.post("/webhooks/x?delay=soon", &json!({})).await;
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("`delay`"));
}
