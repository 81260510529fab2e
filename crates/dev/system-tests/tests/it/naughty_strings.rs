//! The Big List of Naughty Strings in every text field: it comes back byte for byte, or the field is named
//! in a 400; nothing else ever happens.

use naughty_strings::BLNS;
use serde_json::{Value, json};
use testkit::Reply;

use crate::harness::System;

const ADA: &str = "ada@example.com";

/// What a text field does with a text that it takes.
type Kept = fn(&str) -> String;

fn whole(text: &str) -> String {
    text.to_owned()
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}

/// `200`, and the text is where it should be; or `400` that names the field. Says which.
fn check(reply: &Reply, field: &str, text: &str, kept: Kept) -> bool {
    if reply.status == 400 {
        let errors = reply.json["errors"].as_array().unwrap();
        let named = errors.iter().any(|error| error["field"] == field);
        assert!(named, "{field} = {text:?}: {}", reply.text);
        return false;
    }
    assert_eq!(reply.status, 200, "{field} = {text:?}: {}", reply.text);
    let found = reply.json.pointer(&format!("/{field}")).unwrap();
    assert_eq!(found, &Value::String(kept(text)), "{field}");
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_holds_every_text_or_says_which_field_it_refuses() {
    let system = System::start().await;
    let token = system.sign_up(ADA).await;
    let fields: [(&str, Kept); 5] = [
        ("title", trimmed),
        ("description", whole),
        ("requester", trimmed),
        ("approver", trimmed),
        ("decisionBy", whole),
    ];
    for (field, kept) in fields {
        let mut taken = 0;
        for text in BLNS {
            let mut body = json!({"title": "t", "requester": ADA, "approver": "b@example.com"});
            body[field] = json!(text);
            let post = system.http.post("/people-task/tasks").bearer(&token);
            let created = post.json(&body).send().await;
            if !check(&created, field, text, kept) {
                continue;
            }
            taken += 1;
            let path = format!("/people-task/tasks/{}", created.text_of("id"));
            let read = system.http.get(&path).bearer(&token).send().await;
            assert!(
                check(&read, field, text, kept),
                "{text:?} was taken, and is not read"
            );
        }
        let all = BLNS.len();
        match field {
            "title" => assert!(taken > all * 9 / 10, "{taken} of {all} titles"),
            "description" => assert_eq!(taken, all, "a description may be anything"),
            _ => assert!(taken < all, "{field}"),
        }
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_holds_every_text_or_says_which_field_it_refuses() {
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
            let kept: Kept = if ["username", "email"].contains(&name) {
                trimmed
            } else {
                whole
            };
            if put.status == 400 {
                check(&put, name, text, kept);
                continue;
            }
            let read = system.http.get(&path).bearer(&system.admin).send().await;
            check(&read, field, text, kept);
        }
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_password_signs_in_again_and_no_other_text_does() {
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
async fn a_webhook_holds_every_text_or_says_which_field_it_refuses() {
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
                check(&reply, field, value, whole);
            } else {
                assert_eq!(reply.status, 400, "{field} = {text:?}: {}", reply.text);
                assert_eq!(reply.json["errors"][0]["field"], field);
            }
        }
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_paths_take_every_text() {
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
