use serde_json::json;

use crate::fixture::Fixture;

fn service_token(app: &Fixture) -> String {
    let token = app.authority.signer().sign_for_service("deletion-worker");
    token.unwrap().expose().to_owned()
}

#[tokio::test]
async fn erasure_deletes_a_users_tasks_but_not_those_the_user_approves() {
    let app = Fixture::start().await;
    let (me, other) = (app.user("Me@example.com"), app.user("other@example.com"));
    let created = app.create(&me, json!({})).await;
    let _ = app
        .register(
            &other,
            &app.create(&other, json!({})).await,
            "http://127.0.0.1:9/",
        )
        .await;
    let _ = app.register(&me, &created, "http://127.0.0.1:9/").await;
    let _ = app.approve(&me, &created).await.expect(200);
    let _ = app
        .create(&other, json!({"requester": "me@example.com"}))
        .await;
    let to_approve = app
        .create(&other, json!({"approver": "me@example.com"}))
        .await;
    let mine = app.register(&me, &to_approve, "http://127.0.0.1:9/").await;
    let _ = app
        .register(&other, &to_approve, "http://127.0.0.1:9/")
        .await;
    assert_eq!(
        (
            app.count("tasks"),
            app.count("webhooks"),
            app.count("deliveries")
        ),
        (4, 4, 1)
    );

    let erase = || {
        let request = app.http.post(&format!("/internal/users/{}/erase", me.id));
        let body = json!({"emails": ["ME@example.com"]});
        request.bearer(&service_token(&app)).json(&body).send()
    };
    let reply = erase().await.expect(200);
    assert_eq!(reply.json, json!({"deleted": 3, "more": false}));
    assert_eq!(
        (
            app.count("tasks"),
            app.count("webhooks"),
            app.count("deliveries")
        ),
        (2, 2, 0)
    );
    let left = app
        .database
        .rows_that_hold("people_task", &me.id.to_string());
    assert_eq!(left, Vec::<String>::new());
    // The audit log still has the ids of tasks.
    let mut left = app.database.rows_that_hold("people_task", &mine);
    left.retain(|row| !row.starts_with("audit_log:"));
    assert_eq!(left, Vec::<String>::new());
    let _ = app.get(&other, &to_approve.path).await.expect(200);
    assert_eq!(
        erase().await.expect(200).json,
        json!({"deleted": 0, "more": false})
    );
}

#[tokio::test]
async fn many_tasks_are_erased_in_batches() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    app.execute(&format!(
        "INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title,
            description, public, approver_secret, requester_secret)
         SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), decode('{}', 'hex'),
            'x@example.com', 'x@example.com', 'y@example.com', 'y@example.com', 't', '',
            false, sha256(('a' || n)::bytea), sha256(('r' || n)::bytea)
         FROM generate_series(1, 4500) AS n",
        me.id
    ));
    let mut replies = Vec::new();
    for _ in 0..3 {
        let request = app.http.post(&format!("/internal/users/{}/erase", me.id));
        let request = request
            .bearer(&service_token(&app))
            .json(&json!({"emails": []}));
        replies.push(request.send().await.expect(200).json);
    }
    let expected = [(2000, true), (2000, true), (500, false)];
    assert_eq!(
        replies,
        expected.map(|(deleted, more)| json!({"deleted": deleted, "more": more}))
    );
    assert_eq!(app.count("tasks"), 0);
}

#[tokio::test]
async fn only_internal_processes_may_erase() {
    let app = Fixture::start().await;
    let (me, root) = (app.user("me@example.com"), app.admin());
    let path = format!("/internal/users/{}/erase", me.id);
    let body = json!({"emails": ["me@example.com"]});
    app.http
        .post(&path)
        .json(&body)
        .send()
        .await
        .expect_problem(401, "token-missing");
    for token in [&me.token, &root.token] {
        let reply = app.http.post(&path).bearer(token).json(&body).send().await;
        reply.expect_problem(401, "invalid-token");
    }
    let with_token = || app.http.post(&path).bearer(&service_token(&app));
    let reply = with_token().json(&json!({})).send().await;
    assert_eq!(reply.bad_fields(), ["emails"]);
    let reply = with_token().json(&json!({"emails": ["x"]})).send().await;
    assert_eq!(reply.bad_fields(), ["emails"]);
    // A service token gives access to nothing else.
    let reply = app
        .http
        .get("/people-task/tasks")
        .bearer(&service_token(&app))
        .send()
        .await;
    reply.expect_problem(401, "invalid-token");
}
