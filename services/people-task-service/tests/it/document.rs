//! The OpenAPI document, and requests to paths that it does not have.

use serde_json::Value;

use crate::fixture::Fixture;

fn document() -> Value {
    serde_json::to_value(people_task_service::openapi()).unwrap()
}

fn described(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((method.clone(), path.clone(), operation.clone()));
        }
    }
    all
}

#[test]
fn the_outline_of_the_document() {
    let document = document();
    let operations = described(&document).into_iter();
    let lines = operations.map(|(method, path, operation)| {
        let id = operation["operationId"].as_str().unwrap();
        let responses = operation["responses"].as_object().unwrap();
        let statuses: Vec<_> = responses.keys().map(String::as_str).collect();
        format!("{method} {path} {id} {}", statuses.join(" "))
    });
    insta::assert_snapshot!("outline", lines.collect::<Vec<_>>().join("\n"));
    assert!(!document.to_string().contains("/internal/"));
}

#[test]
fn every_operation_has_a_unique_id_and_documents_its_responses() {
    let document = document();
    let mut names = Vec::new();
    for (method, path, operation) in described(&document) {
        names.push(operation["operationId"].as_str().unwrap().to_owned());
        assert!(operation["summary"].is_string(), "{method} {path}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200"), "{method} {path}");
        let is_public = path.starts_with("/.well-known/") || path.ends_with("/unsubscribe");
        if !is_public {
            assert!(responses.contains_key("401"), "{method} {path}");
            assert!(operation["security"].is_array(), "{method} {path}");
        }
        for (status, response) in responses.iter().filter(|(status, _)| *status != "200") {
            let content = &response["content"]["application/problem+json"];
            assert_eq!(content["schema"]["$ref"], "#/components/schemas/Problem");
            for (code, example) in content["examples"].as_object().unwrap() {
                assert_eq!(example["value"]["code"], code.as_str());
                assert_eq!(example["value"]["status"].to_string(), *status);
            }
        }
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[tokio::test]
async fn unknown_paths_are_404_and_wrong_methods_405_with_allow() {
    let app = Fixture::start().await;
    for path in [
        "/",
        "/people-task",
        "/people-task/tasks/",
        "/people-task/nothing",
        "/internal/x",
    ] {
        let reply = app.http.get(path).send().await;
        reply.expect_problem(404, "not-found");
    }
    let reply = app.http.delete("/people-task/tasks").send().await;
    reply.expect_problem(405, "method-not-allowed");
    assert_eq!(reply.header("allow"), Some("GET, POST"));
    let reply = app
        .http
        .post("/people-task/tasks/0123456789abcdef01234567/approve")
        .send()
        .await;
    reply.expect_problem(405, "method-not-allowed");
    assert_eq!(reply.header("allow"), Some("PUT"));
}
