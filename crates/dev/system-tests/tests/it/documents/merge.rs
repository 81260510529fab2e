//! The services' OpenAPI documents in one.

use std::collections::BTreeMap;

use actix_web::http::Method;
use gateway::routes::{Access, ROUTES, Route};
use http_kit::{FieldError, ProblemBody, join_problems, separate_responses};
use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, Operation, Paths};
use utoipa::openapi::{OpenApi, Ref, RefOr, Response};
use utoipa::{PartialSchema as _, ToSchema as _};
use values::Names as _;

use super::scopes_in_words;

/// The gateway's own part: title, server, tags, shared responses, its own paths.
const BASE: &str = include_str!("base.openapi.json");
const PLUGIN_PREFIX: &str = "/plugins/";

/// Merges the services' documents into the gateway's own. Paths that the gateway does not route are left out;
/// the gateway's own responses are added to each operation. The services' schemas of the same name are equal, as a test of the
/// whole system checks.
pub(super) fn merge(documents: [OpenApi; 2]) -> OpenApi {
    let mut merged = base();
    let own = merged.components.clone().unwrap_or_default().responses;
    let mut described = Paths::new();
    for document in documents {
        described.merge(document.paths);
        let components = OpenApi::builder().components(document.components);
        merged.merge(components.build());
    }
    for route in ROUTES {
        let method = http_method(&route.method);
        let operation = method
            .clone()
            .and_then(|method| described.get_path_operation(route.path, method));
        let (Some(method), Some(operation)) = (method, operation) else {
            panic!("{} {} is not documented", route.method, route.path);
        };
        let operation = complete(operation.clone(), route, &own);
        let paths = &mut merged.paths;
        paths.add_path_operation(route.path, vec![method], operation);
    }
    merged
}

fn base() -> OpenApi {
    let mut base: OpenApi = serde_json::from_str(BASE).unwrap();
    base.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let schemas = &mut base.components.get_or_insert_default().schemas;
    schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    schemas.insert(FieldError::name().into_owned(), FieldError::schema());
    base
}

fn http_method(method: &Method) -> Option<HttpMethod> {
    match *method {
        Method::GET => Some(HttpMethod::Get),
        Method::POST => Some(HttpMethod::Post),
        Method::PUT => Some(HttpMethod::Put),
        Method::DELETE => Some(HttpMethod::Delete),
        _ => None,
    }
}

fn complete(
    mut operation: Operation,
    route: &Route,
    own: &BTreeMap<String, RefOr<Response>>,
) -> Operation {
    if route.takes_token() {
        add_keys(&mut operation, route);
    }
    let mut responses = vec![
        ("429", "RateLimited"),
        ("502", "BadGateway"),
        ("503", "Unavailable"),
        ("504", "Timeout"),
    ];
    if matches!(route.access, Access::Token | Access::TokenOrSecret) {
        responses.push(("401", "Unauthorized"));
    }
    if operation.request_body.is_some() {
        responses.extend([("408", "BodyTimeout"), ("413", "TooLarge")]);
    }
    for (status, name) in responses {
        let documented = &mut operation.responses.responses;
        match (documented.get_mut(status), own.get(name)) {
            (Some(RefOr::T(response)), Some(RefOr::T(own))) => add(response, own),
            (Some(_), _) => {}
            (None, _) => {
                let reference = Ref::from_response_name(name);
                documented.insert(status.to_owned(), reference.into());
            }
        }
    }
    if route.path.starts_with(PLUGIN_PREFIX) {
        operation.tags = Some(vec!["plugins".to_owned()]);
    }
    operation
}

/// Adds what a request with an API key gets, and the scopes that the key needs.
fn add_keys(operation: &mut Operation, route: &Route) {
    let refused = if route.keys.is_empty() {
        (auth::key_not_accepted(), None)
    } else {
        let needed = format!("An API key needs {}.", scopes_in_words(route));
        let description = operation.description.take();
        let described = description.map(|text| format!("{text}\n\n{needed}"));
        operation.description = Some(described.unwrap_or(needed));
        let scopes: Vec<_> = route.keys.iter().map(|scope| scope.name()).collect();
        let problem = auth::insufficient_scope(&scopes.join(" "));
        (problem, Some("The API key lacks a scope."))
    };
    let responses = &mut operation.responses.responses;
    responses.extend(separate_responses(vec![
        (auth::invalid_key(), None),
        refused,
    ]));
    join_problems(responses);
}

/// Adds the headers of the gateway's response to a service's with the same status, and when it comes.
fn add(response: &mut Response, own: &Response) {
    if own.headers.is_empty() {
        return;
    }
    response.description = format!("{} {}", response.description, own.description);
    for (name, header) in &own.headers {
        let missing = response.headers.entry(name.clone());
        missing.or_insert_with(|| header.clone());
    }
}

fn merged_paths() -> Value {
    let documents = [user_service::openapi(), people_task_service::openapi()];
    let merged = serde_json::to_value(merge(documents)).unwrap();
    merged["paths"].clone()
}

fn merged(method: &str, path: &str) -> Value {
    merged_paths()[path][method].clone()
}

/// Whether a response of an operation has an example with this code.
fn has_code(operation: &Value, status: &str, code: &str) -> bool {
    let content = &operation["responses"][status]["content"]["application/problem+json"];
    content["examples"][code].is_object()
}

#[test]
fn the_base_document_keeps_everything_when_it_is_parsed() {
    let parsed = serde_json::to_value(base()).unwrap();
    let mut expected: Value = serde_json::from_str(BASE).unwrap();
    expected["info"]["version"] = parsed["info"]["version"].clone();
    for name in ["Problem", "FieldError"] {
        expected["components"]["schemas"][name] = parsed["components"]["schemas"][name].clone();
    }
    assert_eq!(parsed, expected);
}

#[test]
fn the_gateways_responses_are_added() {
    let edit = merged("put", "/people-task/tasks/{id}");
    for status in ["200", "401", "408", "413", "429", "502", "503", "504"] {
        assert!(edit["responses"].get(status).is_some(), "{status}");
    }
    assert_eq!(edit["security"][0], json!({"bearer": []}));
    let plugin = merged("put", "/plugins/appmixer/utils/tasks/tasks/{id}");
    assert_eq!(plugin["tags"], json!(["plugins"]));
}

#[test]
fn a_services_response_has_the_headers_of_the_gateways_with_the_same_status() {
    let create = merged("post", "/people-task/tasks");
    let limited = &create["responses"]["429"];
    let description = limited["description"].as_str().unwrap();
    let (own, of_gateway) = description.split_once(" Too many requests").unwrap();
    assert!(!own.is_empty() && !of_gateway.is_empty(), "{description}");
    for name in ["Retry-After", "RateLimit", "RateLimit-Policy"] {
        assert!(limited["headers"][name].is_object(), "{name}");
    }
}

#[test]
fn a_response_has_the_codes_of_all_groups_with_its_status() {
    for (method, path, status, codes) in [
        (
            "put",
            "/people-task/tasks/{id}",
            "409",
            &["quota-exceeded", "task-already-resolved", "task-changed"][..],
        ),
        (
            "post",
            "/user/auth",
            "429",
            &["rate-limited", "too-many-attempts"],
        ),
        (
            "post",
            "/people-task/webhooks/{id}/test",
            "503",
            &["no-test-result", "overloaded"],
        ),
    ] {
        let operation = merged(method, path);
        for code in codes {
            assert!(has_code(&operation, status, code), "{path}: {code}");
        }
    }
}

#[test]
fn what_an_api_key_gets_is_added() {
    let paths = merged_paths();
    for route in ROUTES {
        let method = route.method.as_str().to_lowercase();
        let operation = &paths[route.path][method];
        let path = route.path;
        let takes_token = route.takes_token();
        let invalid = has_code(operation, "401", "invalid-key");
        assert_eq!(invalid, takes_token, "{path}");
        let is_closed = takes_token && route.keys.is_empty();
        let refusal = if is_closed {
            "key-not-accepted"
        } else {
            "insufficient-scope"
        };
        assert_eq!(has_code(operation, "403", refusal), takes_token, "{path}");
        let description = operation["description"].as_str().unwrap_or_default();
        let needed = format!("An API key needs {}.", scopes_in_words(route));
        let says = description.ends_with(&needed);
        assert_eq!(says, !route.keys.is_empty(), "{path}");
    }
    let update = merged("put", "/users/{userId}");
    assert!(has_code(&update, "403", "key-not-accepted"));
}
