//! The version of a task, by which a caller says what was seen: `ETag`, `If-Match`, `version`.

use serde_json::{Value, json};
use testkit::{Reply, Request};

use crate::audit::decided_on;
use crate::due_dates::after;
use crate::fixture::{DEFAULT_FIELDS, Fixture, Task, User, WithSecret as _};

async fn version(app: &Fixture, by: &User, task: &Task) -> Value {
    let path = format!("{}?include=version", task.path);
    let reply = app.get(by, &path).await.expect(200);
    let etag = format!("\"{}\"", reply.json["version"]);
    assert_eq!(reply.header("etag"), Some(etag.as_str()));
    reply.json["version"].clone()
}

fn decision(app: &Fixture, by: &User, task: &Task, verb: &str) -> Request {
    let request = app.http.put(&format!("{}/{verb}", task.path));
    request.bearer(&by.token)
}

#[tokio::test]
async fn the_version_counts_changes_of_what_is_decided_on_and_nothing_else() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    assert_eq!(version(&app, &ada, &task).await, 1);
    for (n, edit) in [
        json!({"title": "Buy a third printer"}),
        json!({"description": "Both jam."}),
        json!({"decisionBy": "2030-01-01 00:00:00"}),
        json!({"approver": "linus@example.com"}),
        json!({"requester": "alan@example.com"}),
        json!({"title": "Buy a chair", "description": "", "decisionBy": null}),
    ]
    .iter()
    .enumerate()
    {
        let reply = app.put(&ada, &task.path, edit).await.expect(200);
        let etag = format!("\"{}\"", n + 2);
        assert_eq!(reply.header("etag"), Some(etag.as_str()), "{edit}");
        // The same again changes nothing.
        let reply = app.put(&ada, &task.path, edit).await.expect(200);
        assert_eq!(reply.header("etag"), Some(etag.as_str()), "{edit}");
    }
    for edit in [
        json!({"public": true}),
        json!({"commentRequired": true}),
        json!({"confirmationRequired": true}),
        json!({"approver": "Linus@Example.com"}),
    ] {
        let _ = app.put(&ada, &task.path, &edit).await.expect(200);
    }
    let webhook = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let path = format!("/people-task/webhooks/{webhook}");
    let _ = app.get(&ada, &path).await.expect(200);
    assert_eq!(version(&app, &ada, &task).await, 7);
    let reply = app.approve(&ada, &task).await.expect(200);
    assert_eq!(reply.header("etag"), Some("\"7\""));
}

#[tokio::test]
async fn a_due_date_that_passes_makes_no_new_version() {
    let app = Fixture::start_with_broker(&[]).await;
    let _worker = crate::due_dates::worker(&app).await;
    let receiver = crate::due_dates::accepting();
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({"decisionBy": after(1)})).await;
    let hook = json!({"url": receiver.url("/"), "events": ["due"]});
    let path = "/people-task/webhooks";
    let _ = crate::due_dates::register(&app, &ada, path, &task, hook)
        .await
        .expect(200);
    let _ = receiver.wait_for_calls(1).await;
    assert_eq!(version(&app, &ada, &task).await, 1);
}

#[tokio::test]
async fn every_response_about_one_task_has_its_version_and_nothing_else_is_new() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let created = app.try_create(&ada, json!({})).await.expect(200);
    assert_eq!(created.header("etag"), Some("\"1\""));
    assert!(created.json.get("version").is_none());
    let plugin = "/plugins/appmixer/utils/tasks/tasks";
    let path = format!("{plugin}/{}", created.text_of("id"));
    let reply = app.get(&ada, &path).await.expect(200);
    assert_eq!(reply.header("etag"), Some("\"1\""));
    let path = format!("/people-task/tasks/{}/reject", created.text_of("id"));
    let reply = app.put(&ada, &path, &json!({})).await.expect(200);
    assert_eq!(reply.header("etag"), Some("\"1\""));
    assert_eq!(reply.fields(), DEFAULT_FIELDS);
    let list = app.get(&ada, "/people-task/tasks?include=version").await;
    assert_eq!(list.expect(200).json[0]["version"], 1);
}

/// What a caller who has seen the first version of a task gets when it is another.
fn expect_changed(reply: &Reply, task: &Task) {
    reply.expect_problem(409, "task-changed");
    let expected = json!({
        "id": task.id, "approver": "grace@example.com", "requester": "ada@example.com", "title": "Buy a yacht",
        "description": "", "decisionBy": null, "status": "pending", "version": 2,
    });
    assert_eq!(reply.json["task"], expected);
}

#[tokio::test]
async fn what_was_not_seen_is_neither_decided_nor_edited() {
    let app = Fixture::start().await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let ada = app.user("ada@example.com");
    let task = app.create(&carol, json!({})).await;
    let yacht = json!({"title": "Buy a yacht"});
    let _ = app.put(&ada, &task.path, &yacht).await.expect(200);
    for verb in ["approve", "reject"] {
        let stale = decision(&app, &grace, &task, verb).header("If-Match", "\"1\"");
        expect_changed(&stale.send().await, &task);
        let body = json!({"version": 1});
        expect_changed(
            &decision(&app, &grace, &task, verb).json(&body).send().await,
            &task,
        );
        let path = format!("{}/{verb}", task.path);
        let by_secret = app.http.put(&path).secret(&task.approver_secret);
        expect_changed(&by_secret.json(&body).send().await, &task);
        // Several versions, none of which it is, and two that contradict each other.
        let many = decision(&app, &grace, &task, verb).header("If-Match", "\"1\", W/\"3\"");
        expect_changed(&many.send().await, &task);
        let both = decision(&app, &grace, &task, verb).header("If-Match", "\"2\"");
        expect_changed(&both.json(&body).send().await, &task);
    }
    let edit = json!({"title": "Buy a chair", "version": 1});
    expect_changed(&app.put(&ada, &task.path, &edit).await, &task);
    let edit = app
        .http
        .put(&task.path)
        .bearer(&ada.token)
        .header("If-Match", "\"1\"");
    expect_changed(
        &edit.json(&json!({"title": "Buy a yacht"})).send().await,
        &task,
    );
    assert_eq!(app.get(&ada, &task.path).await.json["status"], "pending");
    assert_eq!(app.count("audit_log WHERE action <> 'task-created'"), 1);
}

#[tokio::test]
async fn the_version_that_was_seen_is_decided_also_behind_proxies_that_change_tags() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for tag in [
        "\"1\"",
        "W/\"1\"",
        "\"1-gzip\"",
        "\"1;br\"",
        "*",
        "\"7\", \"1\"",
    ] {
        let task = app.create(&ada, json!({})).await;
        let request = decision(&app, &ada, &task, "approve").header("If-Match", tag);
        let _ = request.send().await.expect(200);
    }
    let task = app.create(&ada, json!({})).await;
    let whole = json!({"id": task.id, "title": "Buy a chair", "version": 1});
    let _ = app.put(&ada, &task.path, &whole).await.expect(200);
    let body = json!({"version": 2});
    let request = decision(&app, &ada, &task, "reject").json(&body);
    let _ = request.send().await.expect(200);
}

#[tokio::test]
async fn a_version_that_cannot_be_read_is_an_invalid_field_and_any_other_number_another_version() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for tag in ["1", "\"1", "\"\"", "\"one\"", "", "\"1\" \"2\""] {
        let request = decision(&app, &ada, &task, "approve").header("If-Match", tag);
        let reply = request.send().await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["If-Match"], "{tag}");
    }
    for version in [json!("1"), json!(1.5), json!([1])] {
        let body = json!({"version": version, "comment": 7});
        let reply = decision(&app, &ada, &task, "reject")
            .json(&body)
            .send()
            .await;
        assert_eq!(reply.bad_fields(), ["comment", "version"], "{body}");
        let reply = app
            .put(&ada, &task.path, &json!({"version": version}))
            .await;
        assert_eq!(reply.bad_fields(), ["version"], "{body}");
    }
    // To JSON Schema they are integers, and so they are versions that the task does not have.
    for version in [json!(2.0), json!(1e30), json!(-1e30), json!(u64::MAX)] {
        let body = json!({"version": version});
        let reply = decision(&app, &ada, &task, "approve").json(&body).send();
        reply.await.expect_problem(409, "task-changed");
    }
    let none = json!({"version": null});
    let _ = decision(&app, &ada, &task, "approve")
        .json(&none)
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn a_decided_task_is_decided_whatever_version_a_caller_names() {
    let app = Fixture::start().await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let task = app.create(&ada, json!({})).await;
    let stale = || decision(&app, &ada, &task, "approve").header("If-Match", "\"9\"");
    stale().send().await.expect_problem(409, "task-changed");
    let _ = app.approve(&ada, &task).await.expect(200);
    let reply = stale().send().await;
    reply.expect_problem(409, "task-already-resolved");
    let body = json!({"title": "x", "version": 9});
    let reply = app.put(&ada, &task.path, &body).await;
    reply.expect_problem(409, "task-already-resolved");
    // A stranger learns nothing.
    let request = decision(&app, &eve, &task, "approve").header("If-Match", "\"9\"");
    request.send().await.expect_problem(404, "not-found");
    // A reader who may not decide, either.
    let task = app.create(&ada, json!({"public": true})).await;
    let request = decision(&app, &eve, &task, "approve").header("If-Match", "\"9\"");
    request.send().await.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn the_audit_log_has_the_hash_of_what_was_decided() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let (title, description) = ("Grüße", "<b>1 €</b>\n😀");
    let task = app
        .create(&ada, json!({"title": "Hello", "description": description}))
        .await;
    let edit = json!({ "title": title });
    let _ = app.put(&ada, &task.path, &edit).await.expect(200);
    let body = json!({"comment": "ok"});
    let request = decision(&app, &ada, &task, "approve").json(&body);
    let _ = request.send().await.expect(200);
    let rows = crate::audit::rows(&app, &root, "?filter=action:task-approved").await;
    let mut expected = decided_on(2, title, description);
    expected["fields"] = json!(["comment"]);
    assert_eq!(rows[0]["detail"], expected);
}
