//! Compares the engine with the published contract.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::erasure::CALLS;
use crate::fixture::Fixture;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn document() -> Value {
    let text = include_str!("../../../../../deploy/flow-engine.openapi.yaml");
    serde_saphyr::from_str(text).unwrap()
}

/// Returns the operations of `paths` or `webhooks`, as method, name and description.
fn operations(document: &Value, section: &str) -> Vec<(Method, String, Value)> {
    let mut operations = Vec::new();
    for (name, item) in document[section].as_object().unwrap() {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                let method = method.to_uppercase().parse().unwrap();
                operations.push((method, name.clone(), operation.clone()));
            }
        }
    }
    operations
}

#[tokio::test]
async fn every_documented_call_is_served() {
    let engine = Fixture::start().await;
    let operations = operations(&document(), "paths");
    for (number, (method, path, operation)) in operations.into_iter().enumerate() {
        // Another user for each call, because deleting flows leaves none to stop.
        let path = path.replace("{id}", &format!("{number:024x}"));
        let statuses = [204, 404].map(|status| status.to_string());
        let first = engine.request(method.clone(), &path).send().await.unwrap();
        assert_eq!(first.status(), 200, "{method} {path}");
        let second = engine.request(method, &path).send().await.unwrap();
        let second = second.status().as_u16().to_string();
        assert!(statuses.contains(&second));
        assert!(operation["responses"].get(&second).is_some());
    }
}

#[test]
fn exactly_the_five_calls_are_documented() {
    let document = document();
    let documented = operations(&document, "paths");
    let documented: BTreeSet<String> = documented
        .iter()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    let expected: BTreeSet<String> = CALLS
        .iter()
        .map(|(method, name)| format!("{method} /users/{{id}}/{name}"))
        .collect();
    assert_eq!(documented, expected);
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn every_documented_call_has_the_responses_of_the_contract() {
    for (method, path, operation) in operations(&document(), "paths") {
        for status in ["200", "202", "204", "404"] {
            let responses = &operation["responses"];
            assert!(responses.get(status).is_some(), "{method} {path} {status}");
        }
    }
}

#[tokio::test]
async fn every_documented_webhook_is_received() {
    let engine = Fixture::start().await;
    let webhooks = operations(&document(), "webhooks");
    assert_eq!(webhooks.len(), 2);
    for (method, name, operation) in webhooks {
        let path = match name.as_str() {
            "taskDecided" => "/webhooks/x",
            "forgotPassword" => "/forgot-password",
            other => panic!("unknown webhook {other}"),
        };
        let content = &operation["requestBody"]["content"]["application/json"];
        let example = &content["example"];
        assert!(example.is_object(), "{name} has an example");
        let response = engine.request(method, path).json(example).send().await;
        assert_eq!(response.unwrap().status(), 200);
        assert_eq!(engine.received("").await.last().unwrap()["body"], *example);
        assert_ne!(operation["responses"], json!(null));
    }
}

#[test]
fn every_reference_can_be_resolved() {
    let document = document();
    let mut pending = vec![&document];
    let mut references = 0;
    while let Some(value) = pending.pop() {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target}");
            references += 1;
        }
        pending.extend(value.as_object().into_iter().flat_map(|map| map.values()));
        pending.extend(value.as_array().into_iter().flatten());
    }
    assert!(references > 0);
}
