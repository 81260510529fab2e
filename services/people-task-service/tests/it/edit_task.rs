use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{DEFAULT_FIELDS, Fixture, Task, WithSecret as _, merge};

/// Whether a secret gives access to a task.
async fn opens(app: &Fixture, task: &Task, secret: &str) -> bool {
    let reply = app.http.get(&task.path).secret(secret).send().await;
    assert!([200, 404].contains(&reply.status));
    reply.status == 200
}

fn secrets_in(reply: &Reply) -> (bool, bool) {
    let has = |name: &str| reply.json[name].is_string();
    (has("approverSecret"), has("requesterSecret"))
}

#[tokio::test]
async fn the_creator_changes_every_field_but_status() {
    let app = Fixture::start().await;
    let carol = app.user("carol@example.com");
    let task = app.create(&carol, json!({})).await;
    let body = json!({
        "title": " New ", "description": "d", "decisionBy": "2030-01-01T00:00:00Z",
        "public": true, "status": "approved", "id": "x", "approverSecret": "y",
    });
    let path = format!("{}?include=public", task.path);
    let reply = app.put(&carol, &path, &body).await.expect(200);
    let mut expected = DEFAULT_FIELDS.to_vec();
    expected.push("public");
    expected.sort_unstable();
    assert_eq!(reply.fields(), expected);
    assert_eq!(reply.json["title"], "New");
    assert_eq!(reply.json["description"], "d");
    assert_eq!(reply.json["decisionBy"], "2030-01-01 00:00:00");
    assert_eq!(reply.json["public"], true);
    assert_eq!(reply.json["status"], "pending");
    assert_eq!(reply.json["id"], task.id.as_str());
    assert!(opens(&app, &task, &task.approver_secret).await);
    let reply = app
        .put(&carol, &task.path, &json!({"decisionBy": null}))
        .await
        .expect(200);
    assert_eq!(reply.json["decisionBy"], Value::Null);
    assert_eq!(reply.json["title"], "New");
}

#[tokio::test]
async fn the_creator_and_administrators_renew_the_secret_of_the_approver() {
    let app = Fixture::start().await;
    let (carol, root) = (app.user("carol@example.com"), app.admin());
    let (grace, ada) = (app.user("grace@example.com"), app.user("ada@example.com"));
    let task = app.create(&carol, json!({})).await;
    let body = json!({"renewApproverSecret": true});
    for other in [&grace, &ada] {
        let reply = app.put(other, &task.path, &body).await;
        reply.expect_problem(403, "forbidden");
    }
    let reply = app.http.put(&task.path).secret(&task.approver_secret);
    let reply = reply.json(&body).send().await;
    reply.expect_problem(403, "forbidden");
    assert!(opens(&app, &task, &task.approver_secret).await);
    let mut secret = task.approver_secret.clone();
    for user in [&carol, &root] {
        let reply = app.put(user, &task.path, &body).await.expect(200);
        assert_eq!(secrets_in(&reply), (true, false));
        // What is decided on is the same.
        assert_eq!(reply.header("etag"), Some("\"1\""));
        assert_eq!(reply.json["approver"], "grace@example.com");
        assert!(!opens(&app, &task, &secret).await);
        secret = reply.text_of("approverSecret");
        assert!(opens(&app, &task, &secret).await);
        let entry = app.value(
            "SELECT detail::text AS value FROM audit_log WHERE action = 'task-edited' ORDER BY id DESC LIMIT 1",
        );
        assert_eq!(entry.unwrap(), r#"{"fields": ["approverSecret"]}"#);
    }
    let unchanged = json!({"renewApproverSecret": false});
    let reply = app.put(&carol, &task.path, &unchanged).await.expect(200);
    assert_eq!(secrets_in(&reply), (false, false));
    assert!(opens(&app, &task, &secret).await);
    let to_linus = json!({"approver": "linus@example.com", "renewApproverSecret": true});
    let reply = app.put(&carol, &task.path, &to_linus).await.expect(200);
    assert_eq!(reply.json["approver"], "linus@example.com");
    assert!(!opens(&app, &task, &secret).await);
    app.get(&grace, &task.path)
        .await
        .expect_problem(404, "not-found");
    let invalid = json!({"renewApproverSecret": "yes"});
    let reply = app.put(&carol, &task.path, &invalid).await;
    reply.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn every_invalid_field_is_reported() {
    let app = Fixture::start().await;
    let carol = app.user("carol@example.com");
    let task = app.create(&carol, json!({})).await;
    let body =
        json!({"title": "", "approver": 5, "requester": "x", "decisionBy": "x", "public": 1});
    let reply = app.put(&carol, &task.path, &body).await;
    reply.expect_problem(400, "validation-failed");
    let expected = ["title", "decisionBy", "approver", "requester", "public"];
    assert_eq!(reply.bad_fields(), expected);
}

#[tokio::test]
async fn a_resolved_task_cannot_be_edited() {
    let app = Fixture::start().await;
    let (carol, eve) = (app.user("carol@example.com"), app.user("eve@example.com"));
    let task = app.create(&carol, json!({})).await;
    let _ = app.approve(&carol, &task).await.expect(200);
    for body in [
        json!({"title": "x"}),
        json!({"approver": "new@example.com"}),
        json!({}),
    ] {
        let reply = app.put(&carol, &task.path, &body).await;
        reply.expect_problem(409, "task-already-resolved");
        assert_eq!(reply.json["taskStatus"], "approved");
        app.put(&eve, &task.path, &body)
            .await
            .expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn a_new_approver_gets_a_new_secret_and_the_old_one_stops_working() {
    let app = Fixture::start().await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let task = app.create(&carol, json!({})).await;
    let body = json!({"approver": "Linus@Example.com"});
    let reply = app.put(&carol, &task.path, &body).await.expect(200);
    assert_eq!(secrets_in(&reply), (true, false));
    assert_eq!(reply.json["approver"], "Linus@Example.com");
    let new = reply.text_of("approverSecret");
    assert!(opens(&app, &task, &new).await);
    assert!(!opens(&app, &task, &task.approver_secret).await);
    assert!(opens(&app, &task, &task.requester_secret).await);
    app.approve(&grace, &task)
        .await
        .expect_problem(404, "not-found");
    let path = format!("{}/approve", task.path);
    let reply = app
        .http
        .put(&path)
        .secret(&task.approver_secret)
        .send()
        .await;
    reply.expect_problem(404, "not-found");
    let linus = app.user("linus@example.com");
    let _ = app.approve(&linus, &task).await.expect(200);
}

#[tokio::test]
async fn a_new_requester_gets_a_new_secret_and_the_old_one_stops_working() {
    let app = Fixture::start().await;
    let (carol, ada) = (app.user("carol@example.com"), app.user("ada@example.com"));
    let task = app.create(&carol, json!({})).await;
    let body = json!({"requester": "linus@example.com"});
    let reply = app.put(&carol, &task.path, &body).await.expect(200);
    assert_eq!(secrets_in(&reply), (false, true));
    assert!(opens(&app, &task, &reply.text_of("requesterSecret")).await);
    assert!(!opens(&app, &task, &task.requester_secret).await);
    assert!(opens(&app, &task, &task.approver_secret).await);
    app.get(&ada, &task.path)
        .await
        .expect_problem(404, "not-found");
}

#[tokio::test]
async fn an_approver_who_hands_over_can_no_longer_decide() {
    let app = Fixture::start().await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let task = app.create(&carol, json!({})).await;
    let path = format!("{}?include=isApprover", task.path);
    let to_linus = json!({"approver": "linus@example.com"});
    let reply = app.put(&grace, &path, &to_linus).await.expect(200);
    assert_eq!(reply.json["isApprover"], false);
    app.approve(&grace, &task)
        .await
        .expect_problem(404, "not-found");
    assert!(!opens(&app, &task, &task.approver_secret).await);
}

#[tokio::test]
async fn a_requester_cannot_become_the_approver() {
    let app = Fixture::start().await;
    let (carol, ada) = (app.user("carol@example.com"), app.user("ada@example.com"));
    let task = app.create(&carol, json!({})).await;
    let to = |address: &str| json!({"approver": address, "requester": "linus@example.com"});
    let reply = app.put(&ada, &task.path, &to("ADA@example.com")).await;
    reply.expect_problem(403, "forbidden");
    let by_secret = |body| {
        let request = app.http.put(&task.path).secret(&task.requester_secret);
        request.json(&body)
    };
    let reply = by_secret(to("ada@example.com")).send().await;
    reply.expect_problem(403, "forbidden");
    // Nor another user with the requester's secret.
    let eve = app.user("eve@example.com");
    let reply = by_secret(to("eve@example.com")).bearer(&eve.token);
    reply.send().await.expect_problem(403, "forbidden");
    // Those who may decide may also give the decision to the requester.
    let grace = app.user("grace@example.com");
    let to_ada = json!({"approver": "ada@example.com"});
    let _ = app.put(&grace, &task.path, &to_ada).await.expect(200);
    let _ = app.approve(&ada, &task).await.expect(200);
}

#[tokio::test]
async fn a_field_that_is_null_is_not_a_change() {
    let app = Fixture::start().await;
    let carol = app.user("carol@example.com");
    let task = app.create(&carol, json!({"description": "d"})).await;
    let path = format!("{}?include=mtime", task.path);
    let before = app.get(&carol, &path).await.expect(200);
    let nulls = json!({"title": null, "description": null, "approver": null, "requester": null});
    let reply = app.put(&carol, &path, &nulls).await.expect(200);
    assert_eq!(reply.json, before.json);
    assert!(opens(&app, &task, &task.approver_secret).await);
    assert!(opens(&app, &task, &task.requester_secret).await);
}

#[tokio::test]
async fn a_field_with_its_current_value_is_not_a_change() {
    let app = Fixture::start().await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let due = json!({"decisionBy": "2030-01-01 00:00:00", "description": "d"});
    let task = app.create(&carol, due).await;
    let before = app
        .get(&carol, &format!("{}?include=mtime", task.path))
        .await;
    let mut whole = before.json.clone();
    merge(
        &mut whole,
        json!({
            "approver": "GRACE@EXAMPLE.COM", "title": " Buy a second printer ", "public": false,
            "commentRequired": false, "confirmationRequired": false,
        }),
    );
    let reply = app
        .put(&grace, &format!("{}?include=mtime", task.path), &whole)
        .await;
    assert_eq!(reply.expect(200).json, before.json);
    assert!(opens(&app, &task, &task.approver_secret).await);
    // So the approver may send the whole task with only the approver changed.
    whole["approver"] = json!("linus@example.com");
    let mut with_title = whole.clone();
    with_title["title"] = json!("Another title");
    app.put(&grace, &task.path, &with_title)
        .await
        .expect_problem(403, "forbidden");
    let mut with_requester = whole.clone();
    with_requester["requester"] = json!("grace@example.com");
    app.put(&grace, &task.path, &with_requester)
        .await
        .expect_problem(403, "forbidden");
    let reply = app.put(&grace, &task.path, &whole).await.expect(200);
    assert_eq!(reply.json["approver"], "linus@example.com");
    assert_eq!(reply.fields(), DEFAULT_FIELDS);
}
