use std::collections::BTreeMap;

use actix_web::http::Method;
use http_kit::{FieldError, ProblemBody};
use utoipa::openapi::path::{HttpMethod, Operation, Paths};
use utoipa::openapi::{OpenApi, Ref, RefOr, Response};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::routes::{Access, ROUTES, Route};

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
        let operation = method.and_then(|method| described.get_path_operation(route.path, method));
        let (Some(method), Some(operation)) = (http_method(&route.method), operation) else {
            tracing::debug!(method = %route.method, path = route.path, "a route is not documented");
            continue;
        };
        let operation = complete(operation.clone(), route, &own);
        let paths = &mut merged.paths;
        paths.add_path_operation(route.path, vec![method], operation);
    }
    merged
}

fn base() -> OpenApi {
    // A test reads the file, so it is valid.
    let mut base: OpenApi = serde_json::from_str(BASE).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BASE, base, merge};

    fn merged() -> Value {
        let documents = documents().map(|document| serde_json::from_value(document).unwrap());
        serde_json::to_value(merge(documents)).unwrap()
    }

    fn document(paths: &Value, schemas: &Value) -> Value {
        json!({
            "openapi": "3.1.0",
            "info": {"title": "", "version": ""},
            "paths": paths,
            "components": {"schemas": schemas}
        })
    }

    fn documents() -> [Value; 2] {
        let responses = json!({"200": {"description": "Done.", "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Id"}}}}});
        let user = json!({
            "/users/{userId}": {"get": {"operationId": "getUser", "responses": responses}},
            "/internal/revocations": {"get": {"responses": {}}}
        });
        let mut of_edit = responses.clone();
        of_edit["429"] = json!({"description": "Quota.", "headers": {"Retry-After": {
            "description": "Own.", "schema": {"type": "integer"}}}});
        let task = json!({
            "/people-task/tasks/{id}": {"put": {
                "operationId": "editTask", "requestBody": {"content": {}}, "responses": of_edit,
                "security": [{"bearer": []}, {}]
            }},
            "/plugins/appmixer/utils/tasks/tasks/{id}": {"put": {
                "operationId": "editTaskPlugin", "responses": responses
            }}
        });
        let schemas = json!({"Id": {"type": "string"}});
        [document(&user, &schemas), document(&task, &schemas)]
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
    fn only_routed_paths_are_described() {
        let merged = merged();
        let paths = merged["paths"].as_object().unwrap();
        assert!(paths.contains_key("/users/{userId}"));
        assert!(!paths.contains_key("/internal/revocations"));
        assert_eq!(merged["openapi"], "3.1.0");
        assert_eq!(merged["info"]["title"], "Countersign");
        let plugin = &paths["/plugins/appmixer/utils/tasks/tasks/{id}"]["put"];
        assert_eq!(plugin["tags"], json!(["plugins"]));
    }

    #[test]
    fn the_gateways_responses_are_added() {
        let merged = merged();
        let edit = &merged["paths"]["/people-task/tasks/{id}"]["put"];
        for status in ["200", "401", "408", "413", "429", "502", "503", "504"] {
            assert!(edit["responses"].get(status).is_some(), "{status}");
        }
        assert_eq!(edit["security"], json!([{"bearer": []}, {}]));
    }

    #[test]
    fn a_services_response_has_the_headers_of_the_gateways_with_the_same_status() {
        let merged = merged();
        let limited = &merged["paths"]["/people-task/tasks/{id}"]["put"]["responses"]["429"];
        let description = limited["description"].as_str().unwrap();
        assert!(
            description.starts_with("Quota. Too many requests"),
            "{description}"
        );
        assert_eq!(limited["headers"]["Retry-After"]["description"], "Own.");
        for name in ["RateLimit", "RateLimit-Policy"] {
            assert!(limited["headers"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn every_reference_resolves() {
        let merged = merged();
        let text = merged.to_string();
        let references = text.split("\"$ref\":\"#").skip(1);
        for reference in references {
            let pointer = reference.split('"').next().unwrap();
            assert!(merged.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
