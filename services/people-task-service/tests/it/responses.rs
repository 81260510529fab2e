//! Snapshots of response bodies: their fields, and the texts of problems.

use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{Fixture, Task, User, WithSecret as _, redacted};

const ALL_FIELDS: &str = "include=public,created,mtime,decisionMade,isApprover,isRequester,canDecide,decidedBy,\
                          comment,commentRequired,confirmationRequired,version";

fn assert_snapshot(name: &str, reply: &Reply) {
    insta::assert_json_snapshot!(name, redacted(&reply.json));
}

/// A decided task with one webhook.
async fn decided(app: &Fixture, by: &User) -> Task {
    let due = json!({"decisionBy": "2030-01-31 09:30:00", "description": "The first one jams."});
    let task = app.create(by, due).await;
    let _ = app.register(by, &task, "http://127.0.0.1:9/hook?x=1").await;
    let _ = app.approve(by, &task).await.expect(200);
    task
}

#[tokio::test]
async fn tasks() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    assert_snapshot(
        "created_task",
        &app.try_create(&ada, json!({})).await.expect(200),
    );
    let task = decided(&app, &ada).await;
    let path = format!("{}?{ALL_FIELDS}", task.path);
    assert_snapshot("task", &app.get(&ada, &path).await.expect(200));
    let edit = json!({"approver": "linus@example.com"});
    let pending = app.create(&ada, json!({})).await;
    let edited = app.put(&ada, &pending.path, &edit).await.expect(200);
    assert_snapshot("edited_task", &edited);
    let list = app
        .get(&ada, "/people-task/tasks?sort=created:1&limit=1")
        .await;
    assert_snapshot("task_list", &list.expect(200));
    let count = app.get(&ada, "/people-task/tasks-count").await;
    assert_snapshot("task_count", &count.expect(200));
}

#[tokio::test]
async fn webhooks_and_deliveries() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = decided(&app, &ada).await;
    let webhooks = app.get(&ada, &format!("{}/webhooks", task.path)).await;
    assert_snapshot("webhooks", &webhooks.expect(200));
    app.execute(
        r#"UPDATE deliveries SET attempt_log = '[
            {"at": "2026-01-01T00:00:01.000Z", "durationMs": 42, "statusCode": null, "error": "connection refused",
             "response": null},
            {"at": "2026-01-01T00:00:02.000Z", "durationMs": 43, "statusCode": 503, "error": null,
             "response": "busy"}]'"#,
    );
    let path = format!("{}/deliveries", task.path);
    let deliveries = app.get(&ada, &path).await.expect(200);
    let id = deliveries.json[0]["id"].as_str().unwrap().to_owned();
    assert_snapshot("deliveries", &deliveries);
    let path = format!("/people-task/deliveries/{id}/redeliver");
    let redelivered = app.http.post(&path).bearer(&ada.token).send().await;
    assert_snapshot("redelivered", &redelivered.expect(200));
    let root = app.admin();
    let path = "/people-task/audit?filter=action:task-approved";
    let mut row = app.get(&root, path).await.expect(200);
    row.json[0]["id"] = Value::Null;
    assert_snapshot("audit", &row);
}

#[tokio::test]
async fn problems() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app
        .create(&ada, json!({"requester": "x@example.com"}))
        .await;
    let by_requester = app.http.put(&format!("{}/approve", task.path));
    let by_requester = by_requester.secret(&task.requester_secret).send().await;
    let list = app.get(&ada, "/people-task/tasks?role=any").await;
    let bad_list = app.get(&ada, "/people-task/tasks?include=colour").await;
    let bad_task = app.try_create(&ada, json!({"title": "", "decisionBy": "soon"}));
    let private = json!({"taskId": task.id, "url": "http://10.0.0.1/"});
    for _ in 0..20 {
        let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    }
    let more = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let too_many = app.try_register(&ada, &more).await;
    let webhook = app.get(&ada, &format!("{}/webhooks", task.path)).await.json[0]["id"].clone();
    let path = format!("/people-task/webhooks/{}", webhook.as_str().unwrap());
    let foreign_webhook = app.http.delete(&path).bearer(&grace.token).send().await;
    let unknown = "0123456789abcdef01234567";
    let _ = app.approve(&grace, &task).await.expect(200);
    for (name, reply) in [
        ("requester_decides", by_requester),
        ("all_tasks", list),
        ("unknown_field", bad_list),
        ("invalid_task", bad_task.await),
        ("private_address", app.try_register(&ada, &private).await),
        ("too_many_webhooks", too_many),
        ("webhook_of_another_user", foreign_webhook),
        ("resolved_task", app.approve(&grace, &task).await),
        ("no_token", app.http.get(&task.path).send().await),
        (
            "unknown_task",
            app.get(&ada, &format!("/people-task/tasks/{unknown}"))
                .await,
        ),
        (
            "unknown_webhook",
            app.get(&ada, &format!("/people-task/webhooks/{unknown}"))
                .await,
        ),
    ] {
        assert_snapshot(&format!("problem_{name}"), &reply);
    }
}
