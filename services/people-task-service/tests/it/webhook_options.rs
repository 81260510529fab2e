//! What a registration may have of its own: `include`, `headers`, `method`, `body` and `success`.

use serde_json::{Value, json};
use testkit::{Reply, eventually};

use crate::fixture::{Fixture, Task, User, WithSecret as _, merge};

/// Two keys, the newer one first.
pub(crate) const KEYS: &str = "1111111111111111111111111111111111111111111111111111111111111111,\
                               2222222222222222222222222222222222222222222222222222222222222222";
/// The second one alone.
pub(crate) const OLD_KEY: &str = "2222222222222222222222222222222222222222222222222222222222222222";
/// Settings with which webhooks to loopback may have everything.
pub(crate) const ENGINES: [(&str, &str); 2] = [
    ("WEBHOOK_ENGINE_ORIGINS", "http://127.0.0.1:*"),
    ("WEBHOOK_HEADER_KEYS", KEYS),
];
const URL: &str = "http://127.0.0.1:9/hook?x=1";
pub(crate) const VALUE: &str = "Bearer engine-token-2b44b0c0";

/// Tries to register a webhook with options.
pub(crate) async fn try_options(
    app: &Fixture,
    by: &User,
    task: &Task,
    url: &str,
    options: Value,
) -> Reply {
    let mut body = json!({"taskId": task.id, "url": url});
    merge(&mut body, options);
    app.try_register(by, &body).await
}

fn all_options() -> Value {
    json!({
        "include": ["decidedBy", "metadata"],
        "headers": {"Authorization": VALUE, "X-Key": "k"},
        "method": "PUT",
        "body": {"run_input": {"status": "{{status}}", "by": "decided by {{decidedBy}} for {{metadata.run}}"}},
        "success": {"status": [200, 201], "pointer": "/status", "value": "ACCEPT"},
    })
}

#[tokio::test]
async fn a_registration_returns_its_options_with_the_names_of_headers() {
    let app = Fixture::start_with(&ENGINES).await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let reply = try_options(&app, &ada, &task, URL, all_options())
        .await
        .expect(200);
    let mut expected = all_options();
    expected["headers"] = json!(["authorization", "x-key"]);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&reply.json[name], value, "{name}");
    }
    assert!(!reply.text.contains(VALUE));
    let path = format!("{}/webhooks", task.path);
    let list = app.get(&ada, &path).await.expect(200);
    assert_eq!(list.json, json!([reply.json]));
    // The approver sees neither the whole URL nor what is sent.
    let list = app.get(&grace, &path).await.expect(200);
    let fields: Vec<_> = list.json[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "status", "taskId", "url"]);
    assert!(app.database.columns_that_hold(VALUE).is_empty());
    assert_eq!(
        app.count("webhooks WHERE options IS NOT NULL AND header_key IS NOT NULL"),
        1
    );
}

#[tokio::test]
async fn every_invalid_option_is_named_with_what_is_expected() {
    let app = Fixture::start_with(&ENGINES).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (options, field, code, expected) in [
        (
            json!({"include": ["decidedBy", "isApprover"]}),
            "include",
            "unknown-field",
            "decisionMade",
        ),
        (
            json!({"include": "comment"}),
            "include",
            "invalid-type",
            "array",
        ),
        (
            json!({"headers": {"Host": "a"}}),
            "headers",
            "reserved-header",
            "`host`",
        ),
        (
            json!({"headers": {"webhook-id": "a"}}),
            "headers",
            "reserved-header",
            "`webhook-id`",
        ),
        (
            json!({"headers": {"x": "a\nb"}}),
            "headers",
            "invalid-header-value",
            "`x`",
        ),
        (
            json!({"headers": {"x": 1}}),
            "headers",
            "invalid-type",
            "strings",
        ),
        (
            json!({"method": "DELETE"}),
            "method",
            "unknown-value",
            "POST, PUT, PATCH",
        ),
        (
            json!({"body": {"a": "{{approverSecret}}"}}),
            "body",
            "unknown-name",
            "`{{approverSecret}}`",
        ),
        (
            json!({"body": "{{ status }}"}),
            "body",
            "unknown-name",
            "status",
        ),
        (
            json!({"body": "a".repeat(16 * 1024)}),
            "body",
            "too-long",
            "16 KiB",
        ),
        (
            json!({"success": {"status": [302]}}),
            "success",
            "invalid-status",
            "200 to 599",
        ),
        (
            json!({"success": {"pointer": "status"}}),
            "success",
            "invalid-pointer",
            "RFC 6901",
        ),
        (
            json!({"success": {}}),
            "success",
            "required",
            "`status` or `pointer`",
        ),
    ] {
        let reply = try_options(&app, &ada, &task, URL, options.clone()).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field], "{options}");
        let error = &reply.json["errors"][0];
        assert_eq!(error["code"], code, "{options}");
        assert!(
            error["message"].as_str().unwrap().contains(expected),
            "{error}"
        );
    }
    let all =
        json!({"include": 1, "headers": 1, "method": 1, "success": 1, "body": "{{x}}", "url": "x"});
    let reply = try_options(&app, &ada, &task, URL, all).await;
    assert_eq!(
        reply.bad_fields(),
        ["url", "include", "headers", "method", "body", "success"]
    );
    assert_eq!(app.count("webhooks"), 0);
}

#[tokio::test]
async fn numbers_that_would_change_and_names_that_are_twice_are_refused() {
    let app = Fixture::start_with(&ENGINES).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (field, text, code) in [
        (
            "body",
            r#"{"n": 12345678901234567890123}"#,
            "inexact-number",
        ),
        ("body", r#"[{"a": 1, "a": 2}]"#, "duplicate-name"),
        (
            "success",
            r#"{"pointer": "", "value": 0.12345678901234567890123}"#,
            "inexact-number",
        ),
        (
            "success",
            r#"{"pointer": "/a", "pointer": "/b"}"#,
            "duplicate-name",
        ),
    ] {
        let body = format!(
            r#"{{"taskId": "{}", "url": "{URL}", "{field}": {text}}}"#,
            task.id
        );
        let post = app.http.post("/people-task/webhooks").bearer(&ada.token);
        let reply = post
            .header("Content-Type", "application/json")
            .body(body)
            .send()
            .await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field]);
        assert_eq!(reply.json["errors"][0]["code"], code, "{text}");
    }
}

#[tokio::test]
async fn only_engines_that_the_operator_lists_may_be_called_in_private_networks() {
    let settings = [
        ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8"),
        (
            "WEBHOOK_ENGINE_ORIGINS",
            "http://127.0.0.1:4200,https://127.0.0.1:*",
        ),
        ("WEBHOOK_HEADER_KEYS", KEYS),
    ];
    let app = Fixture::start_with(&settings).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let shaping = [
        ("headers", json!({"x-a": "b"})),
        ("method", json!("POST")),
        ("body", json!({})),
    ];
    for url in [
        "http://127.0.0.1:4201/",
        "http://127.0.0.1/",
        "http://127.0.0.2:4200/",
        "http://localhost:4200/",
        "http://2130706434:4200/",
    ] {
        for (field, value) in &shaping {
            let reply = try_options(&app, &ada, &task, url, json!({*field: value})).await;
            reply.expect_problem(400, "validation-failed");
            assert_eq!(reply.bad_fields(), [*field], "{url}");
            let message = reply.json["errors"][0]["message"].as_str().unwrap();
            assert!(message.contains("WEBHOOK_ENGINE_ORIGINS"), "{message}");
        }
        let all: Value = shaping
            .iter()
            .cloned()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let reply = try_options(&app, &ada, &task, url, all).await;
        assert_eq!(reply.bad_fields(), ["headers", "method", "body"], "{url}");
        // They say nothing to the receiver that others do not.
        let options = json!({"include": ["comment"], "success": {"pointer": ""}});
        let _ = try_options(&app, &ada, &task, url, options)
            .await
            .expect(200);
    }
    for url in [
        "http://127.0.0.1:4200/api",
        "https://127.0.0.1:1/",
        "http://127.1:4200",
    ] {
        for (field, value) in &shaping {
            let _ = try_options(&app, &ada, &task, url, json!({*field: value}))
                .await
                .expect(200);
            app.execute("DELETE FROM webhooks");
        }
    }
}

#[tokio::test]
async fn headers_go_over_https_or_to_engines_only() {
    let app = Fixture::start_with(&ENGINES).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let options = json!({"headers": {"x-a": "b"}});
    // A public address that nothing calls.
    let reply = try_options(&app, &ada, &task, "http://8.8.8.8/", options.clone()).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["headers"]);
    assert_eq!(reply.json["errors"][0]["code"], "https-required");
    let _ = try_options(&app, &ada, &task, "https://8.8.8.8/", options)
        .await
        .expect(200);
    let options = json!({"method": "PATCH", "body": []});
    let _ = try_options(&app, &ada, &task, "http://8.8.8.8/", options)
        .await
        .expect(200);
}

#[tokio::test]
async fn without_keys_headers_are_refused_and_the_setting_is_named() {
    let app = Fixture::start_with(&[("WEBHOOK_ENGINE_ORIGINS", "http://127.0.0.1:*")]).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let reply = try_options(&app, &ada, &task, URL, all_options()).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["headers"]);
    assert!(reply.text.contains("WEBHOOK_HEADER_KEYS") && !reply.text.contains(VALUE));
    let mut options = all_options();
    options["headers"] = Value::Null;
    let _ = try_options(&app, &ada, &task, URL, options)
        .await
        .expect(200);
}

#[tokio::test]
async fn metadata_is_for_webhooks_of_those_who_may_see_it() {
    let app = Fixture::start_with(&ENGINES).await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({"metadata": {"run": 1}})).await;
    for (field, value) in [
        ("include", json!(["metadata"])),
        ("body", json!({"a": ["x{{metadata.run}}"]})),
        ("body", json!("{{metadata}}")),
    ] {
        let options = json!({field: value});
        let reply = try_options(&app, &grace, &task, URL, options.clone()).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field]);
        assert_eq!(reply.json["errors"][0]["code"], "hidden-field");
        for by in [&ada, &app.admin()] {
            let _ = try_options(&app, by, &task, URL, options.clone())
                .await
                .expect(200);
        }
    }
    let options = json!({"include": ["comment"], "body": {"{{metadata}}": "metadata"}});
    let _ = try_options(&app, &grace, &task, URL, options)
        .await
        .expect(200);
    // A secret of the task is no more than its approver.
    let linus = app.user("linus@example.com");
    let body = json!({"taskId": task.id, "url": URL, "include": ["metadata"]});
    let post = app.http.post("/people-task/webhooks").bearer(&linus.token);
    let reply = post.secret(&task.approver_secret).json(&body).send().await;
    assert_eq!(reply.bad_fields(), ["include"]);
}

#[tokio::test]
async fn the_bytes_of_options_are_limited_and_given_back() {
    let settings = [ENGINES[0], ENGINES[1], ("QUOTA_USER_BYTES", "40000")];
    let app = Fixture::start_with(&settings).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let options = json!({"body": "a".repeat(15_000)});
    let mut registered = Vec::new();
    for _ in 0..2 {
        registered.push(
            try_options(&app, &ada, &task, URL, options.clone())
                .await
                .expect(200)
                .text_of("id"),
        );
    }
    let refused = try_options(&app, &ada, &task, URL, options.clone()).await;
    refused.expect_problem(409, "quota-exceeded");
    assert_eq!(refused.json["resource"], "bytes");
    // The bytes are written first.
    eventually("the bytes to be stored", async || {
        (app.count("stored_bytes WHERE bytes > 30000") == 1).then_some(())
    })
    .await;
    for id in registered {
        let path = format!("/people-task/webhooks/{id}");
        let _ = app
            .http
            .delete(&path)
            .bearer(&ada.token)
            .send()
            .await
            .expect(200);
    }
    assert_eq!(app.count("stored_bytes WHERE bytes < 1000"), 1);
}

#[tokio::test]
async fn a_url_with_a_password_leads_to_headers() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let reply = try_options(&app, &ada, &task, "http://ada:secret@127.0.0.1/", json!({})).await;
    assert_eq!(reply.bad_fields(), ["url"]);
    let message = reply.json["errors"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("`headers`") && !message.contains("secret"),
        "{message}"
    );
}

#[tokio::test]
async fn the_plugin_paths_take_options_too() {
    let app = Fixture::start_with(&ENGINES).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let mut body = json!({"taskId": task.id, "url": URL});
    merge(&mut body, all_options());
    let post = app
        .http
        .post("/plugins/appmixer/utils/tasks/webhooks")
        .bearer(&ada.token);
    let reply = post.json(&body).send().await.expect(200);
    assert_eq!(reply.json["method"], "PUT");
    assert_eq!(reply.json["webhookId"], reply.json["id"]);
}
