//! The services' routes, the gateway's routes and the OpenAPI document agree. The document is made here, of what both document.

mod merge;

use std::collections::BTreeSet;
use std::process::Command;

use serde::Serialize as _;
use serde_json::ser::PrettyFormatter;
use serde_json::{Serializer, Value};
use utoipa::openapi::OpenApi;

use crate::harness::System;

/// The document that the gateway serves.
const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../gateway/src/pages/site/openapi.json"
);

/// Routes of the gateway that the document does not describe.
const PAGES: [&str; 9] = [
    "/account",
    "/admin",
    "/docs",
    "/keys",
    "/openapi.json",
    "/reset-password",
    "/sessions",
    "/tasks",
    "/verify-email",
];

/// The methods, paths and contents of all operations of a document.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let operation = operation.clone();
            operations.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    operations
}

/// The method and path of every route behind the gateway.
fn routes() -> impl Iterator<Item = (String, String)> {
    let routes = gateway::routes::ROUTES.iter();
    routes.map(|route| (route.method.to_string(), route.path.to_owned()))
}

fn document() -> Value {
    serde_json::from_str(&std::fs::read_to_string(DOCUMENT).unwrap()).unwrap()
}

fn documents_of_services() -> [OpenApi; 2] {
    [user_service::openapi(), people_task_service::openapi()]
}

#[test]
fn the_document_is_what_the_services_and_the_routes_document() {
    let merged = serde_json::to_value(merge::merge(documents_of_services())).unwrap();
    let mut made = Vec::new();
    let formatter = PrettyFormatter::with_indent(b" ");
    let mut serializer = Serializer::with_formatter(&mut made, formatter);
    merged.serialize(&mut serializer).unwrap();
    made.push(b'\n');
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(DOCUMENT, &made).unwrap();
    }
    assert!(
        std::fs::read(DOCUMENT).unwrap() == made,
        "gateway/src/pages/site/openapi.json is out of date: run the tests with UPDATE_OPENAPI=1"
    );
}

#[test]
fn the_gateway_serves_exactly_the_routes_that_the_services_document() {
    let documents = documents_of_services().map(|document| serde_json::to_value(document).unwrap());
    let documented = documents.iter().flat_map(operations);
    let documented: BTreeSet<_> = documented.map(|(method, path, _)| (method, path)).collect();
    let served: BTreeSet<_> = routes().collect();
    let missing: Vec<_> = documented.difference(&served).collect();
    assert!(missing.is_empty(), "the gateway does not serve {missing:?}");
    let unknown: Vec<_> = served.difference(&documented).collect();
    assert!(unknown.is_empty(), "no service documents {unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_has_every_route_of_the_gateway_and_every_operation_is_routed() {
    let system = System::start().await;
    let document = document();
    let served = system.http.get("/openapi.json").send().await.expect(200);
    assert!(served.json == document, "another document is served");
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let operations = operations(&document);
    let outline = operations.iter().map(|(method, path, operation)| {
        format!(
            "{method} {path} {}",
            operation["operationId"].as_str().unwrap()
        )
    });
    insta::assert_snapshot!(outline.collect::<Vec<_>>().join("\n"));

    let documented = operations
        .into_iter()
        .map(|(method, path, _)| (method, path));
    let documented: BTreeSet<_> = documented.collect();
    for route in routes() {
        assert!(documented.contains(&route), "{route:?} is missing");
    }
    let pages = PAGES.map(|path| ("GET".to_owned(), path.to_owned()));
    let unknown = system.http.get("/unknown").send().await;
    for (method, path) in documented.into_iter().chain(pages) {
        let segments = path.split('/').map(|segment| {
            if segment.starts_with('{') {
                "0"
            } else {
                segment
            }
        });
        let url = segments.collect::<Vec<_>>().join("/");
        let request = system.http.request(method.parse().unwrap(), &url);
        let reply = request.send().await;
        let is_routed = reply.status != 405 && reply.json["detail"] != unknown.json["detail"];
        assert!(is_routed, "{method} {path} is not routed");
    }
    system.stop().await;
}

/// The document keeps one schema of each name.
#[test]
fn schemas_of_the_same_name_are_equal_in_both_services() {
    let merged = document();
    for document in documents_of_services() {
        let document = serde_json::to_value(document).unwrap();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            assert_eq!(*schema, merged["components"]["schemas"][name], "{name}");
        }
    }
}

#[test]
fn every_reference_in_the_document_resolves() {
    let document = document();
    let text = document.to_string();
    let references = text.split("\"$ref\":\"#").skip(1);
    for reference in references {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

/// Runs `.ci/check-api`, which must pass.
fn check_api(argument: &str) {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../.ci/check-api");
    let output = Command::new(program).arg(argument).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn nothing_breaks_the_api_of_the_last_release() {
    check_api(DOCUMENT);
}

#[test]
fn the_check_of_the_api_finds_breaking_changes_and_no_harmless_ones() {
    check_api("--self-test");
}

#[test]
fn every_operation_documents_its_responses() {
    for (method, path, operation) in operations(&document()) {
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200"), "{method} {path} has no 200");
        assert!(
            operation["summary"].is_string() || operation["description"].is_string(),
            "{method} {path} has no summary"
        );
        let never_fails = path.starts_with("/.well-known/") || path == "/healthz";
        assert!(
            never_fails || responses.len() > 1,
            "{method} {path} has no problem"
        );
    }
}

#[test]
fn every_list_with_pages_documents_the_link_to_the_next_one() {
    for (method, path, operation) in operations(&document()) {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let has_pages = parameters.any(|parameter| parameter["name"] == "limit");
        let link = &operation["responses"]["200"]["headers"]["Link"];
        assert_eq!(link.is_object(), has_pages, "{method} {path}");
    }
}

#[test]
fn fields_that_are_absent_are_never_null_and_one_that_is_null_is_required() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let deletion = &schemas["Deletion"]["allOf"][1];
    let required = deletion["required"].as_array().unwrap();
    assert!(required.contains(&"finished".into()));
    let (progress, webhook) = (&schemas["DeletionStatus"], &schemas["WebhookResponse"]);
    for (schema, field) in [
        (deletion, "deletedTasks"),
        (progress, "failure"),
        (webhook, "method"),
        (webhook, "success"),
    ] {
        let described = &schema["properties"][field];
        assert!(described["type"].is_string(), "{field}: {described}");
    }
}

#[test]
fn operation_ids_are_unique_and_in_camel_case() {
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document()) {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        let camel_case = id.starts_with(|first: char| first.is_ascii_lowercase())
            && id
                .chars()
                .all(|character| character.is_ascii_alphanumeric());
        assert!(camel_case, "{method} {path}: {id}");
        assert!(
            ids.insert(id.clone()),
            "{method} {path}: {id} is not unique"
        );
    }
}

/// The types that the parts of each `allOf` in a value demand.
fn combined_types(value: &Value) -> Vec<BTreeSet<String>> {
    let parts = value.as_object().into_iter().flat_map(|map| map.values());
    let parts = parts.chain(value.as_array().into_iter().flatten());
    let mut combined: Vec<_> = parts.flat_map(combined_types).collect();
    if let Some(all_of) = value.get("allOf").and_then(Value::as_array) {
        let types = all_of.iter().filter_map(|part| part.get("type"));
        combined.push(types.map(ToString::to_string).collect());
    }
    combined
}

/// utoipa adds an object with the field's description to an inlined type, which no string matches.
#[test]
fn no_schema_demands_two_types_at_once() {
    let combined = combined_types(&document());
    assert!(!combined.is_empty());
    for types in combined {
        assert!(types.len() <= 1, "one value cannot be all of {types:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_routes_are_not_reachable_through_the_gateway() {
    let system = System::start().await;
    for path in [
        "/internal/revocations",
        "/internal/users/0/erase",
        "/people-task/../internal/revocations",
        "//internal/revocations",
        "/metrics",
    ] {
        let reply = system.http.get(path).bearer(&system.admin).send().await;
        assert_eq!(reply.status, 404, "{path}");
    }
    system.stop().await;
}

/// What the guide says of the scopes that a call needs of a key.
fn scopes_in_words(route: &gateway::routes::Route) -> String {
    use gateway::routes::Access;
    use values::Names as _;

    match route.keys {
        [] if route.access == Access::Public => "none needed".to_owned(),
        [] => "no key".to_owned(),
        scopes => {
            let scopes = scopes.iter();
            let scopes: Vec<_> = scopes.map(|scope| format!("`{}`", scope.name())).collect();
            scopes.join(" and ")
        }
    }
}

#[test]
fn the_guide_says_for_every_route_which_scope_a_key_needs() {
    let guide = include_str!("../../../../../docs/api-guide.md");
    let (_, table) = guide.split_once("| call | scope |\n|---|---|\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let said: BTreeSet<String> = table.lines().map(str::to_owned).collect();
    let plugin = "/plugins/appmixer/utils/tasks/";
    let routes = gateway::routes::ROUTES.iter();
    let routes = routes.filter(|route| {
        // The others need what the same path under `/people-task/` needs.
        !route.path.starts_with(plugin) || route.path.ends_with("/dashboard-url")
    });
    let expected: BTreeSet<String> = routes
        .map(|route| {
            let path = route.path.replace('{', ":").replace('}', "");
            let scopes = scopes_in_words(route);
            format!("| `{} {path}` | {scopes} |", route.method)
        })
        .collect();
    assert_eq!(said, expected);
}
