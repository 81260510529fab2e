//! The Big List of Naughty Strings in every text field: a string is stored unchanged or refused with a 400
//! that names the field. Fields are tried together.

use std::collections::HashMap;

use naughty_strings::BLNS;
use serde_json::{Value, json};
use testkit::Reply;

use crate::harness::System;

const ADA: &str = "ada@example.com";

/// How a field stores a text.
type Storing = fn(&str) -> String;

fn whole(text: &str) -> String {
    text.to_owned()
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}

/// A field of a body, what it is set to, and where and how the response has the text.
type Field = (&'static str, Value, &'static str, Storing);

/// Expects a `400` that names some of these fields and no others. Returns the fields that it does not name.
fn not_refused(reply: &Reply, fields: &[Field], text: &str) -> Vec<Field> {
    assert_eq!(reply.status, 400, "{text:?}: {}", reply.text);
    let errors = reply.json["errors"].as_array().unwrap();
    let named: Vec<_> = errors
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    let (refused, left): (Vec<_>, Vec<_>) = fields
        .iter()
        .cloned()
        .partition(|(name, ..)| named.contains(name));
    assert!(!refused.is_empty(), "{text:?}: {}", reply.text);
    for name in named {
        assert!(
            refused.iter().any(|(refused, ..)| *refused == name),
            "{text:?}: {name}"
        );
    }
    left
}

/// Expects a `200` with the text in each of these fields.
fn expect_stored(reply: &Reply, fields: &[Field], text: &str) {
    assert_eq!(reply.status, 200, "{text:?}: {}", reply.text);
    for (name, _, pointer, stored) in fields {
        let found = reply.json.pointer(pointer);
        assert_eq!(found, Some(&Value::String(stored(text))), "{name}");
    }
}

fn with_fields(mut body: Value, fields: &[Field]) -> Value {
    for (name, value, ..) in fields {
        body[*name] = value.clone();
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn task_fields_store_or_refuse_every_string() {
    let system = System::start().await;
    let token = system.sign_up(ADA).await;
    let mut accepted: HashMap<&str, usize> = HashMap::new();
    for text in BLNS {
        let fields: [Field; 5] = [
            ("title", json!(text), "/title", trimmed),
            ("description", json!(text), "/description", whole),
            ("requester", json!(text), "/requester", trimmed),
            ("approver", json!(text), "/approver", trimmed),
            ("decisionBy", json!(text), "/decisionBy", whole),
        ];
        let create = async |fields: &[Field]| {
            let body = json!({"title": "t", "requester": ADA, "approver": "b@example.com"});
            let post = system.http.post("/people-task/tasks").bearer(&token);
            post.json(&with_fields(body, fields)).send().await
        };
        let left = not_refused(&create(&fields).await, &fields, text);
        let created = create(&left).await;
        expect_stored(&created, &left, text);
        let path = format!("/people-task/tasks/{}", created.text_of("id"));
        let read = system.http.get(&path).bearer(&token).send().await;
        expect_stored(&read, &left, text);
        for (name, ..) in left {
            *accepted.entry(name).or_default() += 1;
        }
    }
    let (all, accepted) = (BLNS.len(), |name| {
        accepted.get(name).copied().unwrap_or_default()
    });
    assert!(
        accepted("title") > all * 9 / 10,
        "{} of {all} titles",
        accepted("title")
    );
    assert_eq!(
        accepted("description"),
        all,
        "a description may be any text"
    );
    for name in ["requester", "approver", "decisionBy"] {
        assert!(accepted(name) < all, "{name}");
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn account_fields_store_or_refuse_every_string() {
    let system = System::start().await;
    system.sign_up(ADA).await;
    let path = format!("/users/{}", system.user_id(ADA).await);
    for text in BLNS {
        let fields: [Field; 7] = [
            ("plan", json!(text), "/plan", whole),
            ("vendor", json!([text]), "/vendor/0", whole),
            (
                "allowedPrivateComponents",
                json!([text]),
                "/allowedPrivateComponents/0",
                whole,
            ),
            ("metadata", json!({"a key": text}), "/metadata/a key", whole),
            ("scope", json!([text]), "/scope/0", whole),
            ("username", json!(text), "/username", trimmed),
            ("email", json!(text), "/email", trimmed),
        ];
        let vendor: [Field; 1] = [("vendor", json!(text), "/vendor", whole)];
        for fields in [&fields[..], &vendor] {
            let put = async |fields: &[Field]| {
                let put = system.http.put(&path).bearer(&system.admin);
                put.json(&with_fields(json!({}), fields)).send().await
            };
            let first = put(fields).await;
            let mut left = fields.to_vec();
            if first.status == 400 {
                left = not_refused(&first, fields, text);
                if !left.is_empty() {
                    assert_eq!(put(&left).await.status, 200, "{text:?}");
                }
            }
            let read = system.http.get(&path).bearer(&system.admin).send().await;
            expect_stored(&read, &left, text);
        }
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_password_signs_in_and_a_similar_one_does_not() {
    let system = System::start().await;
    for (number, password) in BLNS.iter().enumerate() {
        let email = format!("user{number}@example.com");
        let body = json!({"username": email, "password": password});
        let signed_up = system.http.post("/user").json(&body).send().await;
        if signed_up.status == 400 {
            assert_eq!(signed_up.json["errors"][0]["field"], "password");
            continue;
        }
        let _ = signed_up.expect(200);
        let _ = system.sign_in(&email, password).await.expect(200);
        let other = format!("{password} ");
        system
            .sign_in(&email, &other)
            .await
            .expect_problem(401, "invalid-credentials");
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_fields_store_or_refuse_every_string() {
    let system = System::start().await;
    let token = system.sign_up(ADA).await;
    for text in BLNS {
        let task = system.create_task(&token, ADA, "b@example.com").await;
        let urls = [
            (*text).to_owned(),
            format!("{}?text={text}", system.webhook_url()),
        ];
        let register = async |fields: &[Field]| {
            let body = json!({"url": system.webhook_url(), "taskId": task.id});
            let post = system.http.post("/people-task/webhooks").bearer(&token);
            post.json(&with_fields(body, fields)).send().await
        };
        for url in urls {
            let field: [Field; 1] = [("url", json!(url), "/url", whole)];
            let reply = register(&field).await;
            if reply.status == 400 {
                not_refused(&reply, &field, &url);
            } else {
                expect_stored(&reply, &field, &url);
            }
        }
        let fields: [Field; 2] = [
            ("secret", json!(text), "/secret", whole),
            ("taskId", json!(text), "/taskId", whole),
        ];
        let left = not_refused(&register(&fields).await, &fields, text);
        assert!(left.is_empty(), "{text:?}: one of both was accepted");
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_paths_with_any_string_never_fail() {
    let system = System::start().await;
    let encoded =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    for text in BLNS {
        let text = encoded(text);
        let paths = [
            format!("/users?filter=plan:{text}&pattern={text}"),
            format!("/users?sort={text}"),
            format!("/users?limit={text}"),
            format!("/people-task/tasks?filter=title:{text}&pattern={text}"),
            format!("/people-task/tasks?role={text}&include={text}&projection={text}"),
            format!("/people-task/tasks/{text}"),
            format!("/people-task/tasks?secret={text}"),
            format!("/users/{text}"),
        ];
        let sent = paths.map(|path| {
            let request = system.http.get(&path).bearer(&system.admin);
            (path, tokio::spawn(request.send()))
        });
        for (path, reply) in sent {
            let reply = reply.await.unwrap();
            let status = reply.status;
            assert!(
                [200, 400, 403, 404].contains(&status),
                "{path}: {status} {}",
                reply.text
            );
        }
    }
    system.stop().await;
}
