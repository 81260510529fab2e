use std::collections::{BTreeMap, BTreeSet};

use http_kit::{FieldError, ProblemBody};
use serde_json::{Value, json};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::model::{Document, Operation, PathItem};
use crate::table::{Access, ROUTES, Route};

/// What the gateway itself says: title, server, tags, shared answers, its own paths.
const OWN: &str = include_str!("own.json");
const PREFIX: &str = "/people-task/";
const NEWER_PREFIX: &str = "/plugins/appmixer/utils/tasks/";

/// One document out of the gateway's own and those of the services. Paths that the gateway does not route
/// are left out; what the gateway may answer on its own is added to each operation.
pub(super) fn merge(documents: [Document; 2]) -> Document {
    let mut merged = own();
    let mut described = BTreeMap::new();
    for mut document in documents {
        rename_clashes(&merged, &mut document);
        for (kind, components) in document.components {
            let known = merged.components.entry(kind).or_default();
            for (name, component) in components {
                known.entry(name).or_insert(component);
            }
        }
        described.extend(document.paths);
    }
    for route in ROUTES {
        match described_as(&described, route) {
            Some((path, operation)) => {
                let item = merged.paths.entry(path).or_default();
                item.set(route.method.as_str(), completed(operation, route));
            }
            None => {
                tracing::debug!(method = %route.method, path = route.path, "a route is not documented");
            }
        }
    }
    merged
}

fn own() -> Document {
    // A test reads the file, so it cannot be malformed here.
    let mut own: Document = serde_json::from_str(OWN).unwrap_or_default();
    if let Some(info) = own.rest.get_mut("info").and_then(Value::as_object_mut) {
        info.insert("version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    }
    let schemas = own.components.entry("schemas".to_owned()).or_default();
    schemas.insert(
        ProblemBody::name().into_owned(),
        json!(ProblemBody::schema()),
    );
    schemas.insert(FieldError::name().into_owned(), json!(FieldError::schema()));
    own
}

/// A route's path and operation as a service describes them; the newer prefix borrows from the older one.
fn described_as(
    described: &BTreeMap<String, PathItem>,
    route: &Route,
) -> Option<(String, Operation)> {
    let find = |wanted: &str| {
        let shape = shape(wanted);
        let (path, item) = described
            .iter()
            .find(|(path, _)| self::shape(path) == shape)?;
        let mut operation = item.operation(route.method.as_str())?.clone();
        operation.parameters.extend(item.parameters.iter().cloned());
        Some((path.clone(), operation))
    };
    if let Some(found) = find(route.path) {
        return Some(found);
    }
    let older = route.path.strip_prefix(NEWER_PREFIX)?;
    let (path, mut operation) = find(&format!("{PREFIX}{older}"))?;
    operation.operation_id = operation.operation_id.map(|id| format!("{id}_plugins"));
    Some((path.replacen(PREFIX, NEWER_PREFIX, 1), operation))
}

/// A path without its parameters' names.
fn shape(path: &str) -> String {
    let segments = path.split('/');
    let shapes = segments.map(|segment| {
        if segment.starts_with('{') {
            "{}"
        } else {
            segment
        }
    });
    shapes.collect::<Vec<_>>().join("/")
}

/// Adds what the gateway may answer, where the service does not describe the status itself.
fn completed(mut operation: Operation, route: &Route) -> Operation {
    let mut added = vec![
        ("429", "RateLimited"),
        ("502", "BadGateway"),
        ("503", "Unavailable"),
        ("504", "Timeout"),
    ];
    if route.access != Access::Public {
        added.push(("401", "Unauthorized"));
    }
    if operation.request_body.is_some() {
        added.extend([("408", "BodyTimeout"), ("413", "TooLarge")]);
    }
    if route.path.starts_with(NEWER_PREFIX) {
        operation.tags = vec!["plugins".to_owned()];
    }
    for (status, name) in added {
        let reference = json!({"$ref": format!("#/components/responses/{name}")});
        operation.responses.entry(status).or_insert(reference);
    }
    if operation.security.is_none() {
        operation.security = Some(match route.access {
            Access::Public => json!([]),
            Access::Token => json!([{"bearer": []}]),
            Access::TokenOrSecret => json!([{"bearer": []}, {}]),
        });
    }
    operation
}

/// Gives schemas of `document` another name where the merged document has a different one of theirs.
fn rename_clashes(merged: &Document, document: &mut Document) {
    let known = merged.components.get("schemas");
    let clashes: BTreeSet<String> = document
        .components
        .get("schemas")
        .into_iter()
        .flatten()
        .filter(|(name, schema)| {
            let known = known.and_then(|known| known.get(*name));
            known.is_some_and(|known| known != *schema)
        })
        .map(|(name, _)| name.clone())
        .collect();
    if clashes.is_empty() {
        return;
    }
    let Ok(mut value) = serde_json::to_value(&*document) else {
        return;
    };
    rename_references(&mut value, &clashes);
    if let Ok(renamed) = serde_json::from_value(value) {
        *document = renamed;
    }
    if let Some(schemas) = document.components.get_mut("schemas") {
        for name in &clashes {
            if let Some(schema) = schemas.remove(name) {
                schemas.insert(renamed(name), schema);
            }
        }
    }
}

fn renamed(name: &str) -> String {
    format!("PeopleTask{name}")
}

fn rename_references(value: &mut Value, names: &BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let name = value
                    .as_str()
                    .and_then(|text| text.strip_prefix("#/components/schemas/"));
                match name {
                    Some(name) if key == "$ref" && names.contains(name) => {
                        *value = json!(format!("#/components/schemas/{}", renamed(name)));
                    }
                    _ => rename_references(value, names),
                }
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| rename_references(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Document, merge};

    fn merged() -> Value {
        let documents = documents().map(|d| serde_json::from_value::<Document>(d).unwrap());
        serde_json::to_value(merge(documents)).unwrap()
    }

    fn documents() -> [Value; 2] {
        let answer = json!({"200": {"description": "Done.", "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Id"}}}}});
        [
            json!({
                "paths": {
                    "/users/{id}": {"get": {"operationId": "read_user", "responses": answer}},
                    "/internal/revocations": {"get": {"responses": {}}}
                },
                "components": {"schemas": {"Id": {"type": "string"}, "Same": {"type": "null"}}}
            }),
            json!({
                "paths": {
                    "/people-task/tasks/{taskId}": {"put": {
                        "operationId": "edit_task", "requestBody": {}, "responses": answer
                    }}
                },
                "components": {"schemas": {"Id": {"type": "integer"}, "Same": {"type": "null"}}}
            }),
        ]
    }

    #[test]
    fn only_routed_paths_are_described_and_the_newer_prefix_borrows() {
        let merged = merged();
        let paths = merged["paths"].as_object().unwrap();
        assert!(paths.contains_key("/users/{id}"));
        assert!(!paths.contains_key("/internal/revocations"));
        let newer = &paths["/plugins/appmixer/utils/tasks/tasks/{taskId}"]["put"];
        assert_eq!(newer["operationId"], "edit_task_plugins");
        assert_eq!(merged["openapi"], "3.1.0");
        assert_eq!(merged["info"]["title"], "Countersign");
    }

    #[test]
    fn the_gateways_answers_are_added_and_every_reference_leads_somewhere() {
        let merged = merged();
        let edit = &merged["paths"]["/people-task/tasks/{taskId}"]["put"];
        for status in ["200", "401", "413", "429", "502", "503", "504"] {
            assert!(edit["responses"].get(status).is_some(), "{status}");
        }
        check_references(&merged, &merged);
    }

    #[test]
    fn schemas_of_one_name_and_two_meanings_are_told_apart() {
        let merged = merged();
        let schemas = &merged["components"]["schemas"];
        assert_eq!(schemas["Id"]["type"], "string");
        assert_eq!(schemas["PeopleTaskId"]["type"], "integer");
        assert!(schemas.get("PeopleTaskSame").is_none());
    }

    fn check_references(document: &Value, value: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                object
                    .values()
                    .for_each(|value| check_references(document, value));
            }
            Value::Array(values) => values
                .iter()
                .for_each(|value| check_references(document, value)),
            _ => {}
        }
    }
}
