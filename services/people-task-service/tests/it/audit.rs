//! The audit log of tasks, and `GET /people-task/audit`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::Request;

use crate::fixture::{Fixture, Task, User, WithSecret as _};

const FROM: &str = "203.0.113.7";

/// Adds a request id, by which the log is filtered, and client addresses.
fn traced(request: Request, id: &str) -> Request {
    let request = request.header("X-Request-Id", id);
    request.header("X-Forwarded-For", &format!("198.51.100.1, {FROM}"))
}

pub(crate) async fn rows(app: &Fixture, root: &User, query: &str) -> Vec<Value> {
    let path = format!("/people-task/audit{query}");
    let reply = app.get(root, &path).await.expect(200);
    reply.json.as_array().unwrap().clone()
}

pub(crate) fn actions(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["action"].as_str().unwrap())
        .collect()
}

/// The details of a decision's row: what was decided on.
pub(crate) fn decided_on(version: i32, title: &str, description: &str) -> Value {
    let hash = Sha256::digest(format!("{title}\0{description}"));
    json!({ "version": version, "contentSha256": hex::encode(hash) })
}

/// Sends a request, and returns its row of the log without number and time.
async fn logged(app: &Fixture, root: &User, request: Request, id: &str) -> Value {
    let _ = traced(request, id).send().await.expect(200);
    let rows = rows(app, root, &format!("?filter=requestId:{id}")).await;
    assert_eq!(rows.len(), 1, "{id}: {rows:?}");
    let mut row = rows[0].clone();
    let fields = row.as_object_mut().unwrap();
    assert!(fields.remove("id").unwrap().as_i64().unwrap() > 0);
    assert!(
        fields
            .remove("at")
            .unwrap()
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    row
}

fn expected(
    (action, request): (&str, &str),
    (actor_kind, actor): (&str, Option<&User>),
    task: &Task,
    proof: &str,
    detail: &Value,
) -> Value {
    json!({
        "action": action, "actorKind": actor_kind, "actor": actor.map(|user| user.id),
        "subjectKind": "task", "subject": task.id, "proof": proof,
        "clientAddress": FROM, "requestId": request, "detail": detail,
    })
}

#[tokio::test]
async fn a_decision_is_logged_with_actor_and_proof() {
    let app = Fixture::start().await;
    let (ada, grace, root) = (
        app.user("ada@example.com"),
        app.user("grace@example.com"),
        app.admin(),
    );
    let eve = app.user("eve@example.com");
    for (decision, action) in [("approve", "task-approved"), ("reject", "task-rejected")] {
        let put = |task: &Task| app.http.put(&format!("{}/{decision}", task.path));
        let none = decided_on(1, "Buy a second printer", "");
        for (who, kind, name) in [
            (&grace, "user", "approver"),
            (&ada, "user", "creator"),
            (&root, "admin", "admin"),
        ] {
            let task = app.create(&ada, json!({})).await;
            let id = format!("{decision}-{name}");
            let row = logged(&app, &root, put(&task).bearer(&who.token), &id).await;
            let expected = expected((action, &id), (kind, Some(who)), &task, "token", &none);
            assert_eq!(row, expected);
        }
        // The approver's secret, without a token and with one that does not suffice.
        let task = app.create(&ada, json!({})).await;
        let id = format!("{decision}-secret");
        let request = put(&task).json(&json!({"secret": task.approver_secret}));
        let row = logged(&app, &root, request, &id).await;
        let secret_holder = ("approver-secret", None);
        assert_eq!(
            row,
            expected((action, &id), secret_holder, &task, "task-secret", &none)
        );
        let task = app.create(&ada, json!({})).await;
        let id = format!("{decision}-both");
        let request = put(&task).bearer(&eve.token).secret(&task.approver_secret);
        let row = logged(&app, &root, request, &id).await;
        assert_eq!(
            row,
            expected(
                (action, &id),
                ("user", Some(&eve)),
                &task,
                "task-secret",
                &none
            )
        );
        // A token that is enough is what counts.
        let task = app.create(&ada, json!({})).await;
        let id = format!("{decision}-more");
        let request = put(&task)
            .bearer(&grace.token)
            .secret(&task.approver_secret);
        let row = logged(&app, &root, request, &id).await;
        assert_eq!(
            row,
            expected((action, &id), ("user", Some(&grace)), &task, "token", &none)
        );
    }
}

#[tokio::test]
async fn creating_a_task_is_logged() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let body =
        json!({"title": "t", "requester": "ada@example.com", "approver": "grace@example.com"});
    let request = app.http.post("/people-task/tasks").bearer(&ada.token);
    let row = logged(&app, &root, request.json(&body), "create").await;
    let tasks = app.get(&ada, "/people-task/tasks").await.expect(200);
    let expected = json!({
        "action": "task-created", "actorKind": "user", "actor": ada.id,
        "subjectKind": "task", "subject": tasks.json[0]["id"], "proof": "token",
        "clientAddress": FROM, "requestId": "create", "detail": null,
    });
    assert_eq!(row, expected);
}

#[tokio::test]
async fn editing_a_task_is_logged_with_the_names_of_changed_fields() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let task = app.create(&ada, json!({})).await;
    let edit = || app.http.put(&task.path);
    let change = json!({"title": "new", "description": "", "decisionBy": "2030-01-01 00:00:00"});
    let row = logged(&app, &root, edit().bearer(&ada.token).json(&change), "edit").await;
    let fields = json!({"fields": ["title", "decisionBy"]});
    let by_ada = ("user", Some(&ada));
    let edited = expected(("task-edited", "edit"), by_ada, &task, "token", &fields);
    assert_eq!(row, edited);

    let by_secret = edit().secret(&task.requester_secret);
    let request = by_secret.json(&json!({"public": true}));
    let row = logged(&app, &root, request, "edit-2").await;
    let (action, actor) = (("task-edited", "edit-2"), ("requester-secret", None));
    let fields = json!({"fields": ["public"]});
    assert_eq!(row, expected(action, actor, &task, "task-secret", &fields));
}

#[tokio::test]
async fn registering_and_removing_a_webhook_is_logged() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let root = app.admin();
    let task = app.create(&ada, json!({})).await;
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let register = app.http.post("/people-task/webhooks").bearer(&grace.token);
    let row = logged(&app, &root, register.json(&body), "register").await;
    let webhook = row["detail"]["webhookId"].as_str().unwrap().to_owned();
    let detail = json!({ "webhookId": webhook });
    let by_grace = ("user", Some(&grace));
    let action = ("webhook-registered", "register");
    assert_eq!(row, expected(action, by_grace, &task, "token", &detail));

    let remove = app.http.delete(&format!("/people-task/webhooks/{webhook}"));
    let row = logged(&app, &root, remove.bearer(&grace.token), "remove").await;
    let action = ("webhook-removed", "remove");
    assert_eq!(row, expected(action, by_grace, &task, "token", &detail));
}

#[tokio::test]
async fn redelivery_is_logged() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let task = app.create(&ada, json!({})).await;
    let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let _ = app.approve(&ada, &task).await.expect(200);
    let deliveries = app.get(&ada, &format!("{}/deliveries", task.path)).await;
    let delivery = deliveries.json[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/people-task/deliveries/{delivery}/redeliver");
    let request = app.http.post(&path).bearer(&root.token);
    let row = logged(&app, &root, request, "redeliver").await;
    let (action, by_root) = (
        ("delivery-redelivered", "redeliver"),
        ("admin", Some(&root)),
    );
    let detail = json!({ "deliveryId": delivery });
    assert_eq!(row, expected(action, by_root, &task, "token", &detail));
}

#[tokio::test]
async fn unchanged_tasks_are_not_logged_and_concurrent_decisions_are_logged_once() {
    let app = Fixture::start().await;
    let (ada, grace, root) = (
        app.user("ada@example.com"),
        app.user("grace@example.com"),
        app.admin(),
    );
    let task = app.create(&ada, json!({})).await;
    let _ = app.get(&ada, &task.path).await.expect(200);
    let same = json!({"title": "Buy a second printer", "approver": "grace@example.com"});
    let _ = app.put(&ada, &task.path, &same).await.expect(200);
    let eve = app.user("eve@example.com");
    app.approve(&eve, &task)
        .await
        .expect_problem(404, "not-found");
    let decisions = (0..16).map(|n| {
        let decision = if n % 2 == 0 { "approve" } else { "reject" };
        let path = format!("{}/{decision}", task.path);
        app.http.put(&path).bearer(&grace.token).send()
    });
    let replies = join_all(decisions).await;
    let won: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
    let rows = rows(&app, &root, &format!("?filter=subject:{}", task.id)).await;
    let decided = format!("task-{}", won[0].text_of("status"));
    assert_eq!(actions(&rows), [decided.as_str(), "task-created"]);
}

/// Erases a user as the deletion-worker does, in a request with the id `erasure`.
async fn erase(app: &Fixture, user: &User) {
    let signer = app.authority.signer();
    let token = signer.sign_for_service("deletion-worker");
    let erase = app.http.post(&format!("/internal/users/{}/erase", user.id));
    let erase = erase.bearer(token.expose());
    let request = erase.header("X-Request-Id", "erasure");
    let body = json!({"emails": [user.email], "incarnation": testkit::INCARNATION});
    let _ = request.json(&body).send().await.expect(200);
}

#[tokio::test]
async fn erasure_replaces_ids_by_pseudonyms_and_removes_addresses() {
    let app = Fixture::start().await;
    let (grace, root) = (app.user("grace@example.com"), app.admin());
    let ada = app.user("ada.lovelace@example.com");
    let mine = app.create(&ada, json!({"requester": ada.email})).await;
    let theirs = app.create(&grace, json!({"approver": ada.email})).await;
    let put = |path: &str| app.http.put(path);
    let edit = put(&mine.path).secret(&mine.requester_secret);
    let edit = edit.json(&json!({"title": "x"}));
    let approve_theirs = put(&format!("{}/approve", theirs.path)).bearer(&ada.token);
    let approve_mine = put(&format!("{}/approve", mine.path)).bearer(&grace.token);
    let _ = logged(&app, &root, edit, "by-secret").await;
    let _ = logged(&app, &root, approve_theirs, "mine").await;
    let _ = logged(&app, &root, approve_mine, "theirs").await;

    erase(&app, &ada).await;

    let left = app.database.rows_that_hold("people_task", "lovelace");
    let mut tables: Vec<_> = left
        .iter()
        .filter_map(|row| row.split(':').next())
        .collect();
    tables.sort_unstable();
    assert_eq!(
        tables,
        ["task_states", "tasks"],
        "of the task that she approved: {left:?}"
    );
    for (request, address) in [("by-secret", None), ("mine", None), ("theirs", Some(FROM))] {
        let rows = rows(&app, &root, &format!("?filter=requestId:{request}")).await;
        assert_eq!(rows[0]["clientAddress"].as_str(), address, "{request}");
    }
    let rows = rows(&app, &root, "?filter=requestId:erasure").await;
    assert_eq!(actions(&rows), ["user-erased"]);
    assert_eq!(rows[0]["detail"], json!({"tasks": 1, "webhooks": 0}));
    assert_eq!(rows[0]["subjectKind"], "user");
    assert_eq!(rows[0]["subject"], pseudonym(&ada.id.to_string()));
    assert_eq!(rows[0]["actorKind"], "service");
    assert_eq!(rows[0]["proof"], "service-token");
    for (filter, expected) in [
        ("actor", vec!["task-approved", "task-created"]),
        ("subject", vec!["user-erased"]),
    ] {
        let query = format!("?filter={filter}:{}", ada.id);
        let rows = self::rows(&app, &root, &query).await;
        assert_eq!(actions(&rows), expected, "{filter}");
    }
}

#[tokio::test]
async fn erasure_removes_the_addresses_from_the_entries_of_the_oldest_of_several_tasks() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let old = app.create(&ada, json!({})).await;
    let edit = app.http.put(&old.path).secret(&old.requester_secret);
    let edit = edit.json(&json!({"title": "x"}));
    let _ = logged(&app, &root, edit, "by-secret").await;
    for (table, time) in [
        ("tasks", "created"),
        ("task_states", "created"),
        ("audit_log", "at"),
    ] {
        let age = format!("UPDATE {table} SET {time} = {time} - interval '5 days'");
        app.execute(&age);
    }
    let _ = app.create(&ada, json!({})).await;
    erase(&app, &ada).await;
    let rows = rows(&app, &root, "?filter=requestId:by-secret").await;
    assert_eq!(rows[0]["actorKind"], "requester-secret");
    assert_eq!(rows[0]["clientAddress"], Value::Null);
}

#[tokio::test]
async fn the_log_has_no_values_of_fields() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let task = app.create(&ada, json!({"title": "unmistakable"})).await;
    let change = json!({"title": "unmistakable, too", "approver": "unmistakable@example.com"});
    let edit = app.http.put(&task.path).bearer(&ada.token).json(&change);
    let _ = logged(&app, &root, edit, "edit").await;
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/unmistakable"});
    let _ = app.try_register(&ada, &body).await.expect(200);
    for text in ["unmistakable", "@example.com", &task.approver_secret] {
        let mut left = app.database.rows_that_hold("people_task", text);
        left.retain(|row| row.starts_with("audit_log:"));
        assert_eq!(left, Vec::<String>::new());
    }
}

/// The pseudonym of a deleted user.
fn pseudonym(user: &str) -> String {
    let hash = hex::encode(Sha256::digest(hex::decode(user).unwrap()));
    hash.chars().take(24).collect()
}
