//! What the creator of a task keeps with it.

use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{Fixture, Task, User};

const RUN: &str = "run";

/// Reads a task with its metadata.
async fn read(app: &Fixture, by: &User, task: &Task) -> Reply {
    let path = format!("{}?include=metadata", task.path);
    app.get(by, &path).await.expect(200)
}

#[tokio::test]
async fn it_is_told_to_the_creator_and_administrators_who_include_it() {
    let app = Fixture::start().await;
    let (creator, admin) = (app.user("flow@example.com"), app.admin());
    let metadata = json!({"run": "b1946ac9", "n_1": [1.5, {"any name": null}], "big": u64::MAX});
    let body = json!({"metadata": metadata, "public": true});
    let created = app.try_create(&creator, body).await.expect(200);
    assert!(
        created.json.get("metadata").is_none(),
        "only with `include`"
    );
    let with = json!({"metadata": metadata, "title": "t", "requester": "ada@example.com", "approver": "grace@example.com"});
    let request = app.http.post("/people-task/tasks?include=metadata");
    let request = request.bearer(&creator.token).json(&with);
    assert_eq!(request.send().await.expect(200).json["metadata"], metadata);
    let path = format!(
        "/people-task/tasks/{}?include=metadata",
        created.text_of("id")
    );
    for teller in [&creator, &admin] {
        assert_eq!(
            app.get(teller, &path).await.expect(200).json["metadata"],
            metadata
        );
    }
    let list = "/people-task/tasks?include=metadata&projection=-title&sort=created:1";
    let listed = app.get(&creator, list).await.expect(200);
    assert_eq!(listed.json[0]["metadata"], metadata);
    for address in ["ada@example.com", "grace@example.com", "eve@example.com"] {
        let reply = app.get(&app.user(address), &path).await.expect(200);
        assert!(reply.json.get("metadata").is_none(), "{address}");
    }
    let listed = app
        .get(&app.user("ada@example.com"), list)
        .await
        .expect(200);
    assert!(listed.json[0].get("metadata").is_none());
}

#[tokio::test]
async fn a_task_without_it_has_null() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({"metadata": null})).await;
    assert_eq!(
        read(&app, &creator, &task).await.json["metadata"],
        Value::Null
    );
}

#[tokio::test]
async fn an_edit_replaces_or_removes_it_and_makes_no_other_version() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app
        .create(&creator, json!({"metadata": {"run": 1, "old": 1}}))
        .await;
    let version = format!("{}?include=version", task.path);
    for (edit, expected) in [
        (json!({"metadata": {"run": 2}}), json!({"run": 2})),
        (json!({"title": "Other"}), json!({"run": 2})),
        (json!({"metadata": null}), Value::Null),
        (json!({"metadata": {}}), json!({})),
    ] {
        let _ = app.put(&creator, &task.path, &edit).await.expect(200);
        assert_eq!(
            read(&app, &creator, &task).await.json["metadata"],
            expected,
            "{edit}"
        );
    }
    // The title only.
    assert_eq!(
        app.get(&creator, &version).await.expect(200).json["version"],
        2
    );
    let changed =
        "audit_log WHERE action = 'task-edited' AND detail = '{\"fields\": [\"metadata\"]}'";
    assert_eq!(app.count(changed), 3);
    // What is the same already is no edit.
    let _ = app
        .put(&creator, &task.path, &json!({"metadata": {}}))
        .await
        .expect(200);
    assert_eq!(app.count(changed), 3);
}

#[tokio::test]
async fn only_the_creator_and_administrators_change_it() {
    let app = Fixture::start().await;
    let (creator, admin) = (app.user("flow@example.com"), app.admin());
    let task = app.create(&creator, json!({"metadata": {"run": 1}})).await;
    for address in ["ada@example.com", "grace@example.com"] {
        // The same value, too, so that it cannot be guessed.
        for guess in [json!({"run": 1}), json!({"run": 2}), Value::Null] {
            let edit = json!({"metadata": guess});
            let refused = app.put(&app.user(address), &task.path, &edit).await;
            refused.expect_problem(403, "forbidden");
        }
    }
    assert_eq!(
        read(&app, &creator, &task).await.json["metadata"],
        json!({"run": 1})
    );
    let _ = app
        .put(&admin, &task.path, &json!({"metadata": {"run": 3}}))
        .await
        .expect(200);
    assert_eq!(
        read(&app, &creator, &task).await.json["metadata"],
        json!({"run": 3})
    );
}

#[tokio::test]
async fn what_is_no_object_of_4_kib_or_has_other_keys_is_refused() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    let fits = json!({"metadata": {RUN: "x".repeat(4096 - 10)}});
    let _ = app.try_create(&creator, fits).await.expect(200);
    for (wrong, code) in [
        (json!([]), "invalid-type"),
        (json!("text"), "invalid-type"),
        (json!({RUN: "x".repeat(4096 - 9)}), "too-long"),
        (json!({"a.b": 1}), "invalid-key"),
        (json!({"": 1}), "invalid-key"),
        (json!({"k".repeat(65): 1}), "invalid-key"),
    ] {
        let body = json!({"metadata": wrong});
        for refused in [
            app.try_create(&creator, body.clone()).await,
            app.put(&creator, &task.path, &body).await,
        ] {
            refused.expect_problem(400, "validation-failed");
            assert_eq!(refused.bad_fields(), ["metadata"]);
            assert_eq!(refused.json["errors"][0]["code"], code, "{body}");
        }
    }
    let inexact = r#"{"title": "t", "requester": "a@example.com", "approver": "a@example.com", "metadata": {"a": 0.10000000000000001}}"#;
    let request = app.http.post("/people-task/tasks").bearer(&creator.token);
    let refused = request
        .header("content-type", "application/json")
        .body(inexact)
        .send()
        .await;
    assert_eq!(refused.json["errors"][0]["code"], "inexact-number");
    assert_eq!(app.count("tasks"), 2);
}

#[tokio::test]
async fn its_bytes_count_until_the_task_is_gone() {
    let mut app = Fixture::start().await;
    let (me, text) = (
        app.user("me@example.com"),
        |length: usize| json!({RUN: "x".repeat(length - 10)}),
    );
    let settings = [("QUOTA_USER_BYTES", "5000")];
    app.restart_with(&settings).await;
    let task = app
        .create(&me, json!({"title": "t", "metadata": text(4000)}))
        .await;
    let refused = app
        .try_create(&me, json!({"title": "t", "metadata": text(1500)}))
        .await;
    refused.expect_problem(409, "quota-exceeded");
    let _ = app
        .put(&me, &task.path, &json!({"metadata": text(1000)}))
        .await
        .expect(200);
    assert!(app.stop().await);
    assert_eq!(app.count("stored_bytes WHERE bytes = 1001"), 1);
    app.execute("DELETE FROM tasks");
    assert_eq!(app.count("stored_bytes WHERE bytes = 0"), 1);
}
