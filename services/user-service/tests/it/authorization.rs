//! Who may call what. The operations come from the OpenAPI document, so none is forgotten.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::fixture::{Fixture, Person};

const UNKNOWN_ID: &str = "000000000000000000000000";

/// An operation of the document, with a path that names an unknown user and ticket.
struct Operation {
    method: String,
    path: String,
    needs_token: bool,
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().unwrap().iter()
}

fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(user_service::openapi()).unwrap();
    let mut found = Vec::new();
    for (path, operations) in object(document.get("paths").unwrap()) {
        for (method, operation) in object(operations) {
            assert!(operation.pointer("/responses/200").is_some());
            assert!(operation.get("tags").is_some() && operation.get("summary").is_some());
            found.push(Operation {
                method: method.to_uppercase(),
                path: path
                    .replace("{userId}", UNKNOWN_ID)
                    .replace("{sessionId}", UNKNOWN_ID)
                    .replace("{keyId}", UNKNOWN_ID)
                    .replace("{ticket}", "1"),
                needs_token: operation.get("security") == Some(&json!([{"bearer": []}])),
            });
        }
    }
    found
}

/// The status of a call without a body, and its code if it is a problem.
async fn call(app: &Fixture, method: &str, path: &str, token: Option<&str>) -> String {
    let request = app.http.request(method.parse().unwrap(), path);
    let reply = match token {
        Some(token) => request.bearer(token).send().await,
        None => request.send().await,
    };
    if reply.status == 401 {
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
    }
    let code = reply.json.get("code").and_then(Value::as_str);
    format!("{} {}", reply.status, code.unwrap_or("-"))
}

#[tokio::test]
async fn each_operation_is_open_to_the_roles_that_may_call_it() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let mut table = String::new();
    for Operation {
        method,
        path,
        needs_token,
    } in operations()
    {
        let outcomes = [
            ("anonymous", call(&app, &method, &path, None).await),
            ("user", call(&app, &method, &path, Some(&ada.token)).await),
            (
                "admin",
                call(&app, &method, &path, Some(&admin.token)).await,
            ),
        ];
        assert_eq!(needs_token, outcomes[0].1 == "401 token-missing", "{path}");
        writeln!(table, "{method} {path}").unwrap();
        for (role, outcome) in outcomes {
            writeln!(table, "    {role}: {outcome}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[tokio::test]
async fn token_and_scope_are_checked_before_the_request() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let guarded = operations().into_iter().filter(|found| found.needs_token);
    for Operation { method, path, .. } in guarded {
        let outcome = call(&app, &method, &path, Some("junk")).await;
        assert_eq!(outcome, "401 invalid-token", "{method} {path}");
    }
    for (method, path) in [
        ("GET", "/audit?limit=0"),
        ("GET", "/users?limit=0"),
        ("PUT", "/users/not-an-id"),
    ] {
        let Person { token, .. } = &ada;
        assert_eq!(call(&app, method, path, None).await, "401 token-missing");
        let outcome = call(&app, method, path, Some(token)).await;
        assert_eq!(outcome, "403 insufficient-scope", "{method} {path}");
    }
}
