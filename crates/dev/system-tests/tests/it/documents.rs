//! The OpenAPI document is complete: every route is in it, and everything in it is a route.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::world::World;

/// The endpoints of the API document, and the additions.
const ROUTES: [(&str, &str); 47] = [
    ("POST", "/user/auth"),
    ("POST", "/user"),
    ("GET", "/user"),
    ("GET", "/users/{userId}"),
    ("GET", "/users"),
    ("GET", "/users/count"),
    ("PUT", "/users/{userId}"),
    ("DELETE", "/users/{userId}"),
    ("GET", "/users/{userId}/delete-status/{ticket}"),
    ("POST", "/user/change-password"),
    ("POST", "/user/reset-password"),
    ("POST", "/user/forgot-password"),
    ("POST", "/user/forgot-password/reset"),
    ("GET", "/people-task/tasks"),
    ("GET", "/people-task/tasks-count"),
    ("GET", "/people-task/tasks/{id}"),
    ("POST", "/people-task/tasks"),
    ("POST", "/people-task/webhooks"),
    ("GET", "/people-task/webhooks/{id}"),
    ("PUT", "/people-task/tasks/{id}"),
    ("PUT", "/people-task/tasks/{id}/approve"),
    ("PUT", "/people-task/tasks/{id}/reject"),
    ("DELETE", "/users/{userId}/delete-status/{ticket}"),
    ("GET", "/users/deletions"),
    ("DELETE", "/people-task/webhooks/{id}"),
    ("GET", "/people-task/tasks/{id}/webhooks"),
    ("GET", "/people-task/tasks/{id}/deliveries"),
    ("POST", "/people-task/deliveries/{id}/redeliver"),
    ("GET", "/audit"),
    ("GET", "/people-task/audit"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/.well-known/webhook-keys.json"),
    ("GET", "/plugins/appmixer/utils/tasks/tasks"),
    ("POST", "/plugins/appmixer/utils/tasks/tasks"),
    ("GET", "/plugins/appmixer/utils/tasks/tasks-count"),
    ("GET", "/plugins/appmixer/utils/tasks/tasks/{id}"),
    ("PUT", "/plugins/appmixer/utils/tasks/tasks/{id}"),
    ("PUT", "/plugins/appmixer/utils/tasks/tasks/{id}/approve"),
    ("PUT", "/plugins/appmixer/utils/tasks/tasks/{id}/reject"),
    ("POST", "/plugins/appmixer/utils/tasks/webhooks"),
    ("DELETE", "/plugins/appmixer/utils/tasks/webhooks/{id}"),
    ("GET", "/plugins/appmixer/utils/tasks/dashboard-url"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/reset-password"),
];

/// Routes that are no part of the API, and so not in its document.
const PAGES: [&str; 5] = [
    "/openapi.json",
    "/docs",
    "/healthz",
    "/readyz",
    "/reset-password",
];

/// The method and path of every operation, with parameters of any name.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        let methods =
            methods.filter(|m| ["get", "put", "post", "delete", "patch"].contains(&m.as_str()));
        methods.map(|method| (method.to_uppercase(), unnamed(path)))
    });
    operations.collect()
}

fn unnamed(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|s| if s.starts_with('{') { "{}" } else { s });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_documented_and_every_documented_route_exists() {
    let world = World::start().await;
    let document = world
        .http
        .get("/openapi.json")
        .send()
        .await
        .expect(200)
        .json;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let documented = operations(&document);
    for (method, path) in ROUTES {
        if !PAGES.contains(&path) {
            let operation = (method.to_owned(), unnamed(path));
            assert!(
                documented.contains(&operation),
                "{method} {path} is not in the document"
            );
        }
        let real = path
            .replace("{userId}", "0")
            .replace("{id}", "0")
            .replace("{ticket}", "0");
        let reply = world
            .http
            .request(method.parse().unwrap(), &real)
            .send()
            .await;
        assert_ne!(reply.status, 405, "{method} {path} is not routed");
        let unrouted = reply.status == 404 && reply.text.contains("no such path");
        assert!(!unrouted, "{method} {path} is not routed");
    }
    let known: BTreeSet<_> = ROUTES
        .iter()
        .map(|(m, p)| ((*m).to_owned(), unnamed(p)))
        .collect();
    let unknown: Vec<_> = documented.difference(&known).collect();
    let addition = ("POST".to_owned(), "/user/verify-email".to_owned());
    assert!(
        unknown.iter().all(|operation| **operation == addition),
        "documented but not known here: {unknown:?}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_says_what_it_answers() {
    let world = World::start().await;
    let document = world
        .http
        .get("/openapi.json")
        .send()
        .await
        .expect(200)
        .json;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(responses) = operation["responses"].as_object() else {
                continue;
            };
            assert!(
                responses.contains_key("200"),
                "{method} {path} documents no 200"
            );
            assert!(
                operation["summary"].is_string() || operation["description"].is_string(),
                "{method} {path}"
            );
            let plain = path.starts_with("/.well-known/") || path == "/healthz";
            assert!(
                plain || responses.len() > 1,
                "{method} {path} documents no problem"
            );
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_routes_do_not_exist_from_outside() {
    let world = World::start().await;
    for path in [
        "/internal/revocations",
        "/internal/users/0/erase",
        "/people-task/../internal/revocations",
        "//internal/revocations",
        "/metrics",
    ] {
        let reply = world.http.get(path).bearer(&world.admin).send().await;
        assert_eq!(reply.status, 404, "{path}");
    }
    world.stop().await;
}
