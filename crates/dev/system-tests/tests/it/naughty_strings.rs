//! The Big List of Naughty Strings in every text field: a string is stored unchanged or refused with a 400
//! that names the field.

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

/// Expects a `200` with the stored text (returns `true`) or a `400` that names the field.
fn is_stored(reply: &Reply, field: &str, text: &str, stored: Storing) -> bool {
    if reply.status == 400 {
        let errors = reply.json["errors"].as_array().unwrap();
        let named = errors.iter().any(|error| error["field"] == field);
        assert!(named, "{field} = {text:?}: {}", reply.text);
        return false;
    }
    assert_eq!(reply.status, 200, "{field} = {text:?}: {}", reply.text);
    let found = reply.json.pointer(&format!("/{field}")).unwrap();
    assert_eq!(found, &Value::String(stored(text)), "{field}");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn task_fields_store_or_refuse_every_string() {
    let system = System::start().await;
    let token = system.sign_up(ADA).await;
    let fields: [(&str, Storing); 5] = [
        ("title", trimmed),
        ("description", whole),
        ("requester", trimmed),
        ("approver", trimmed),
        ("decisionBy", whole),
    ];
    for (field, stored) in fields {
        let mut accepted = 0;
        for text in BLNS {
            let mut body = json!({"title": "t", "requester": ADA, "approver": "b@example.com"});
            body[field] = json!(text);
            let post = system.http.post("/people-task/tasks").bearer(&token);
            let created = post.json(&body).send().await;
            if !is_stored(&created, field, text, stored) {
                continue;
            }
            accepted += 1;
            let path = format!("/people-task/tasks/{}", created.text_of("id"));
            let read = system.http.get(&path).bearer(&token).send().await;
            assert!(
                is_stored(&read, field, text, stored),
                "{text:?} was accepted and is not stored"
            );
        }
        let all = BLNS.len();
        match field {
            "title" => assert!(accepted > all * 9 / 10, "{accepted} of {all} titles"),
            "description" => assert_eq!(accepted, all, "a description may be any text"),
            _ => assert!(accepted < all, "{field}"),
        }
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn account_fields_store_or_refuse_every_string() {
    let system = System::start().await;
    system.sign_up(ADA).await;
    let path = format!("/users/{}", system.user_id(ADA).await);
    for text in BLNS {
        for (field, value) in [
            ("plan", json!(text)),
            ("vendor", json!(text)),
            ("vendor/0", json!([text])),
            ("allowedPrivateComponents/0", json!([text])),
            ("metadata/a key", json!({"a key": text})),
            ("scope/0", json!([text])),
            ("username", json!(text)),
            ("email", json!(text)),
        ] {
            let name = field.split('/').next().unwrap();
            let put = system.http.put(&path).bearer(&system.admin);
            let put = put.json(&json!({name: value})).send().await;
            let stored: Storing = if ["username", "email"].contains(&name) {
                trimmed
            } else {
                whole
            };
            if put.status == 400 {
                is_stored(&put, name, text, stored);
                continue;
            }
            let read = system.http.get(&path).bearer(&system.admin).send().await;
            is_stored(&read, field, text, stored);
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
        let fields = urls.iter().map(|url| ("url", url.as_str()));
        for (field, value) in fields.chain([("secret", *text), ("taskId", *text)]) {
            let mut body = json!({"url": system.webhook_url(), "taskId": task.id});
            body[field] = json!(value);
            let post = system.http.post("/people-task/webhooks").bearer(&token);
            let reply = post.json(&body).send().await;
            if field == "url" {
                is_stored(&reply, field, value, whole);
            } else {
                assert_eq!(reply.status, 400, "{field} = {text:?}: {}", reply.text);
                assert_eq!(reply.json["errors"][0]["field"], field);
            }
        }
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
        for path in [
            format!("/users?filter=plan:{text}&pattern={text}"),
            format!("/users?sort={text}"),
            format!("/users?limit={text}"),
            format!("/people-task/tasks?filter=title:{text}&pattern={text}"),
            format!("/people-task/tasks?role={text}&include={text}&projection={text}"),
            format!("/people-task/tasks/{text}"),
            format!("/people-task/tasks?secret={text}"),
            format!("/users/{text}"),
        ] {
            let reply = system.http.get(&path).bearer(&system.admin).send().await;
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
