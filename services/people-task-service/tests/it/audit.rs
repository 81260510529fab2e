//! The audit log of tasks, and `GET /people-task/audit`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::Request;

use crate::app::{App, Task, User, WithSecret as _};

const FROM: &str = "203.0.113.7";

/// A request that is found again in the log by its id.
fn traced(request: Request, id: &str) -> Request {
    let request = request.header("X-Request-Id", id);
    request.header("X-Forwarded-For", &format!("198.51.100.1, {FROM}"))
}

pub(crate) async fn rows(app: &App, root: &User, query: &str) -> Vec<Value> {
    let path = format!("/people-task/audit{query}");
    let reply = app.get(root, &path).await.expect(200);
    reply.json.as_array().unwrap().clone()
}

pub(crate) fn actions(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["action"].as_str().unwrap())
        .collect()
}

/// Sends a request, and returns its one row without its number and its moment.
async fn logged(app: &App, root: &User, request: Request, id: &str) -> Value {
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
async fn a_decision_tells_who_made_it_and_by_which_proof() {
    let app = App::start().await;
    let (ada, grace, root) = (
        app.user("ada@example.com"),
        app.user("grace@example.com"),
        app.admin(),
    );
    let eve = app.user("eve@example.com");
    for (decision, action) in [("approve", "task-approved"), ("reject", "task-rejected")] {
        let put = |task: &Task| app.http.put(&format!("{}/{decision}", task.path));
        let none = Value::Null;
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
        // The approver's secret, without a token and with one that is not enough.
        let task = app.create(&ada, json!({})).await;
        let id = format!("{decision}-secret");
        let request = put(&task).json(&json!({"secret": task.approver_secret}));
        let row = logged(&app, &root, request, &id).await;
        let nobody = ("approver-secret", None);
        assert_eq!(
            row,
            expected((action, &id), nobody, &task, "task-secret", &none)
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
async fn every_other_change_of_a_task_leaves_one_row() {
    let app = App::start().await;
    let (ada, grace, root) = (
        app.user("ada@example.com"),
        app.user("grace@example.com"),
        app.admin(),
    );
    let body =
        json!({"title": "t", "requester": "ada@example.com", "approver": "grace@example.com"});
    let request = app.http.post("/people-task/tasks").bearer(&ada.token);
    let row = logged(&app, &root, request.json(&body), "create").await;
    assert_eq!(
        (&row["action"], &row["actor"]),
        (&json!("task-created"), &json!(ada.id))
    );
    assert_eq!(
        (&row["proof"], &row["clientAddress"]),
        (&json!("token"), &json!(FROM))
    );

    let task = app.create(&ada, json!({})).await;
    assert_ne!(row["subject"], task.id.as_str());
    let edit = || app.http.put(&task.path);
    let change = json!({"title": "new", "description": "", "decisionBy": "2030-01-01 00:00:00"});
    let row = logged(&app, &root, edit().bearer(&ada.token).json(&change), "edit").await;
    let fields = json!({"fields": ["title", "decisionBy"]});
    let by_ada = ("user", Some(&ada));
    assert_eq!(
        row,
        expected(("task-edited", "edit"), by_ada, &task, "token", &fields)
    );
    let request = edit()
        .secret(&task.requester_secret)
        .json(&json!({"public": true}));
    let row = logged(&app, &root, request, "edit-2").await;
    let fields = json!({"fields": ["public"]});
    let requester = ("requester-secret", None);
    assert_eq!(
        row,
        expected(
            ("task-edited", "edit-2"),
            requester,
            &task,
            "task-secret",
            &fields
        )
    );

    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let register = |who: &User| {
        app.http
            .post("/people-task/webhooks")
            .bearer(&who.token)
            .json(&body)
    };
    let row = logged(&app, &root, register(&grace), "register").await;
    let webhook = row["detail"]["webhookId"].as_str().unwrap().to_owned();
    let detail = json!({"webhookId": webhook});
    let by_grace = ("user", Some(&grace));
    assert_eq!(
        row,
        expected(
            ("webhook-registered", "register"),
            by_grace,
            &task,
            "token",
            &detail
        )
    );
    let remove = app.http.delete(&format!("/people-task/webhooks/{webhook}"));
    let row = logged(&app, &root, remove.bearer(&grace.token), "remove").await;
    assert_eq!(
        row,
        expected(
            ("webhook-removed", "remove"),
            by_grace,
            &task,
            "token",
            &detail
        )
    );

    let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let _ = app.approve(&grace, &task).await.expect(200);
    let deliveries = app.get(&ada, &format!("{}/deliveries", task.path)).await;
    let delivery = deliveries.json[0]["id"].as_str().unwrap().to_owned();
    let again = app
        .http
        .post(&format!("/people-task/deliveries/{delivery}/redeliver"));
    let row = logged(&app, &root, again.bearer(&root.token), "redeliver").await;
    let detail = json!({"deliveryId": delivery});
    let by_root = ("admin", Some(&root));
    assert_eq!(
        row,
        expected(
            ("delivery-redelivered", "redeliver"),
            by_root,
            &task,
            "token",
            &detail
        )
    );
}

#[tokio::test]
async fn what_changes_nothing_leaves_no_row_and_of_simultaneous_decisions_one_is_logged() {
    let app = App::start().await;
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

#[tokio::test]
async fn an_erasure_leaves_pseudonyms_without_names_and_addresses() {
    let app = App::start().await;
    let (ada, grace, root) = (
        app.user("ada.lovelace@example.com"),
        app.user("grace@example.com"),
        app.admin(),
    );
    let mine = app
        .create(&ada, json!({"requester": "ada.lovelace@example.com"}))
        .await;
    let theirs = app
        .create(&grace, json!({"approver": "ada.lovelace@example.com"}))
        .await;
    let request = |path: &str| app.http.put(path);
    let edit = request(&mine.path)
        .secret(&mine.requester_secret)
        .json(&json!({"title": "x"}));
    let _ = logged(&app, &root, edit, "by-secret").await;
    let _ = logged(
        &app,
        &root,
        request(&format!("{}/approve", theirs.path)).bearer(&ada.token),
        "mine",
    )
    .await;
    let _ = logged(
        &app,
        &root,
        request(&format!("{}/approve", mine.path)).bearer(&grace.token),
        "theirs",
    )
    .await;

    let token = app
        .authority
        .signer()
        .sign_for_service("deletion-worker")
        .unwrap();
    let erase = app.http.post(&format!("/internal/users/{}/erase", ada.id));
    let erase = erase
        .bearer(token.expose())
        .header("X-Request-Id", "erasure");
    let body = json!({"emails": ["ada.lovelace@example.com"]});
    let _ = erase.json(&body).send().await.expect(200);

    let left = app.database.rows_that_hold("people_task", "lovelace");
    assert_eq!(
        left.len(),
        1,
        "the task of another that she was to approve: {left:?}"
    );
    assert!(left[0].starts_with("tasks:"));
    for (request, address) in [("by-secret", None), ("mine", None), ("theirs", Some(FROM))] {
        let rows = rows(&app, &root, &format!("?filter=requestId:{request}")).await;
        assert_eq!(rows[0]["clientAddress"].as_str(), address, "{request}");
    }
    let rows = rows(&app, &root, "?filter=requestId:erasure").await;
    assert_eq!(actions(&rows), ["user-erased"]);
    assert_eq!(rows[0]["detail"], json!({"tasks": 1, "webhooks": 0}));
    assert_eq!(
        (&rows[0]["subjectKind"], &rows[0]["subject"]),
        (&json!("user"), &json!(pseudonym(&ada.id.to_string())))
    );
    assert_eq!(
        (&rows[0]["actorKind"], &rows[0]["proof"]),
        (&json!("service"), &json!("service-token"))
    );
}

#[tokio::test]
async fn the_log_holds_no_value_that_somebody_typed() {
    let app = App::start().await;
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

/// What stands in the audit log for a user who was deleted.
fn pseudonym(user: &str) -> String {
    let hash = hex::encode(Sha256::digest(hex::decode(user).unwrap()));
    hash.chars().take(24).collect()
}
