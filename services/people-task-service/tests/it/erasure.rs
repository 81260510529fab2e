use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::{INCARNATION, Reply, eventually};

use crate::decide::wait_for_lock;
use crate::erasure_batches::{deleted, deleted_of_both};
use crate::fixture::{Fixture, User};

pub(crate) fn service_token(app: &Fixture) -> String {
    let token = app.authority.signer().sign_for_service("deletion-worker");
    token.expose().to_owned()
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
        let body = json!({"emails": ["ME@example.com"], "incarnation": INCARNATION});
        request.bearer(&service_token(&app)).json(&body).send()
    };
    let reply = erase().await.expect(200);
    assert_eq!(reply.json, deleted_of_both([2, 1], false));
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
    assert_eq!(erase().await.expect(200).json, deleted(0, false));
}

#[tokio::test]
async fn tasks_requested_under_a_former_address_are_erased_as_long_as_the_user_had_it() {
    let app = Fixture::start().await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    for days in [0, 2, 4] {
        let task = json!({"title": days.to_string(), "requester": "Former@example.com"});
        let _ = app.create(&other, task).await;
    }
    app.execute("UPDATE tasks SET created = now() - title::int * interval '1 day'");
    let ago = |days| chrono::Utc::now() - chrono::TimeDelta::days(days);
    let former = json!([{"email": "former@example.com", "since": ago(3), "until": ago(1)}]);
    let body = json!({"emails": [], "formerEmails": former});
    let reply = erase(&app, &me, body).await.expect(200);
    assert_eq!(reply.json, deleted(1, false));
    assert_eq!(app.titles(&other, "").await, ["0", "4"]);
    let former = json!([{"email": "former@example.com", "until": ago(1)}]);
    let body = json!({"emails": [], "formerEmails": former});
    let reply = erase(&app, &me, body).await.expect(200);
    assert_eq!(reply.json, deleted(1, false));
    assert_eq!(app.titles(&other, "").await, ["0"]);
    for wrong in [
        json!({}),
        json!([{}]),
        json!([{"email": "a@b", "until": 1}]),
        json!([{"email": "a@b", "since": 1, "until": ago(1)}]),
    ] {
        let reply = erase(&app, &me, json!({"emails": [], "formerEmails": wrong})).await;
        assert_eq!(reply.bad_fields(), ["body"]);
    }
}

#[tokio::test]
async fn a_task_is_erased_with_the_user_who_had_the_address_when_an_edit_made_it_the_requester() {
    let app = Fixture::start().await;
    let (former, present) = (app.user("former@example.com"), app.user("new@example.com"));
    let other = app.user("other@example.com");
    let task = app.create(&other, json!({})).await;
    let ago = |days| chrono::Utc::now() - chrono::TimeDelta::days(days);
    app.execute("UPDATE tasks SET created = now() - interval '2 days'");
    let edit = json!({"requester": "Shared@example.com"});
    let _ = app.put(&other, &task.path, &edit).await.expect(200);

    // The task was created before the first user gave the address up, and edited after the second one took it.
    for (user, since, until, tasks) in [(&former, 3, 1, 0), (&present, 1, -1, 1)] {
        let had =
            json!([{"email": "shared@example.com", "since": ago(since), "until": ago(until)}]);
        let body = json!({"emails": [], "formerEmails": had});
        let reply = erase(&app, user, body).await.expect(200);
        assert_eq!(reply.json, deleted(tasks, false), "{}", user.email);
    }
    assert_eq!(app.count("tasks"), 0);
}

#[tokio::test]
async fn an_edit_that_leaves_the_requester_does_not_change_whose_task_it_is() {
    let app = Fixture::start().await;
    let (former, other) = (
        app.user("former@example.com"),
        app.user("other@example.com"),
    );
    let task = app
        .create(&other, json!({"requester": "shared@example.com"}))
        .await;
    let ago = |days| chrono::Utc::now() - chrono::TimeDelta::days(days);
    app.execute("UPDATE tasks SET created = now() - interval '2 days'");
    let edit = json!({"title": "Edited", "requester": "SHARED@example.com"});
    let _ = app.put(&other, &task.path, &edit).await.expect(200);
    let had = json!([{"email": "shared@example.com", "since": ago(3), "until": ago(1)}]);
    let body = json!({"emails": [], "formerEmails": had});
    let reply = erase(&app, &former, body).await.expect(200);
    assert_eq!(reply.json, deleted(1, false));
}

#[tokio::test]
async fn a_task_that_becomes_another_users_before_it_is_locked_is_not_erased() {
    let app = Fixture::start().await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let requested = json!({"requester": "me@example.com"});
    let _ = app.create(&other, requested).await;
    // The statement asks for this lock when it has found the task.
    let lock = "SET search_path = people_task;
        CREATE FUNCTION may_be_read() RETURNS boolean LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END';
        CREATE POLICY readable ON tasks USING (may_be_read());
        ALTER TABLE tasks ENABLE ROW LEVEL SECURITY";
    let (mut holder, mut editor) = (app.database.admin(), app.database.admin());
    editor.batch_execute(lock).unwrap();
    let hold = "BEGIN; SELECT pg_advisory_xact_lock(1)";
    holder.batch_execute(hold).unwrap();
    let erasing = erase(&app, &me, json!({"emails": ["me@example.com"]}));
    let editing = async {
        wait_for_lock(&app).await;
        let edit = "BEGIN; UPDATE tasks SET requester = 'new@example.com', requester_key = 'new@example.com';
            UPDATE task_states SET version = version + 1, requester_key = 'new@example.com'; COMMIT";
        editor.batch_execute(edit).unwrap();
        holder.batch_execute("COMMIT").unwrap();
    };
    let (erased, ()) = tokio::join!(erasing, editing);
    assert_eq!(erased.expect(200).json, deleted(0, false));
    assert_eq!(app.count("tasks"), 1);
}

async fn erase(app: &Fixture, user: &User, mut body: Value) -> Reply {
    body["incarnation"] = json!(INCARNATION);
    let path = format!("/internal/users/{}/erase", user.id);
    let request = app.http.post(&path).bearer(&service_token(app));
    request.json(&body).send().await
}

#[tokio::test]
async fn tests_of_webhooks_are_erased_with_the_user_who_requested_them() {
    let app = Fixture::start().await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    for user in [&me, &other] {
        app.execute(&format!(
            "INSERT INTO webhook_tests (id, webhook_id, requested_by, request_id, traceparent)
            SELECT id, id, id, 'r', 't' FROM decode('{}', 'hex') AS id",
            user.id
        ));
    }
    let _ = erase(&app, &me, json!({"emails": []})).await.expect(200);
    let left = app
        .database
        .rows_that_hold("people_task", &me.id.to_string());
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(app.count("webhook_tests"), 1);
}

#[tokio::test]
async fn an_erased_user_whose_token_is_not_known_to_be_revoked_adds_nothing() {
    let app = Fixture::start().await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let body = json!({"emails": ["me@example.com"]});
    let _ = erase(&app, &me, body).await.expect(200);
    let reply = app.try_create(&me, json!({})).await;
    reply.expect_problem(401, "token-revoked");
    let to_approve = json!({"approver": "me@example.com"});
    let to_approve = app.create(&other, to_approve).await;
    let webhook = json!({"taskId": to_approve.id, "url": "http://127.0.0.1:9/"});
    let reply = app.try_register(&me, &webhook).await;
    reply.expect_problem(401, "token-revoked");
    let reply = app.approve(&me, &to_approve).await;
    reply.expect_problem(401, "token-revoked");
    assert_eq!((app.count("tasks"), app.count("webhooks")), (1, 0));
    // The identifier itself is not kept.
    let left = app
        .database
        .rows_that_hold("people_task", &me.id.to_string());
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn a_user_whom_a_restore_brought_back_can_create_tasks_again() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let _ = erase(&app, &me, json!({"emails": []})).await.expect(200);
    let reply = app.try_create(&me, json!({})).await;
    reply.expect_problem(401, "token-revoked");
    app.authority.start_incarnation("restored");
    let restored = User {
        token: app.authority.token(me.id, &me.email, &["user"]),
        ..me
    };
    let task = eventually("the service to know the new incarnation", async || {
        let reply = app.try_create(&restored, json!({})).await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    let webhook = json!({"taskId": task.text_of("id"), "url": "http://127.0.0.1:9/"});
    let _ = app.try_register(&restored, &webhook).await.expect(200);
    // The bytes of the task count towards the user's quota.
    assert!(app.stop().await);
    assert_eq!(app.count("stored_bytes WHERE bytes > 0"), 1);
}

#[tokio::test]
async fn an_erasure_waits_for_a_task_that_is_being_created() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let mut creation = app.database.admin();
    creation
        .batch_execute(&format!(
            "BEGIN;
            INSERT INTO people_task.tasks (id, creator, requester, requester_key, approver, approver_key, title,
                description, public, approver_secret, requester_secret)
            SELECT decode('0000000000000000000000aa', 'hex'), decode('{id}', 'hex'),
                'x@example.com', 'x@example.com', 'y@example.com', 'y@example.com', 't', '',
                false, sha256('a'), sha256('r')
            WHERE people_task.may_add_rows(decode('{id}', 'hex'), NULL);
            INSERT INTO people_task.task_states
                (task_id, public, creator, created, approver_key, requester_key, title_key)
            SELECT id, public, creator, created, approver_key, requester_key, title FROM people_task.tasks",
            id = me.id
        ))
        .unwrap();
    let erasing = erase(&app, &me, json!({"emails": []}));
    let committing = async {
        eventually("the erasure to wait", async || {
            let waiting = "SELECT count(*)::text AS value FROM pg_locks l
                JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
                WHERE l.locktype = 'advisory' AND NOT l.granted";
            (app.value(waiting).as_deref() == Some("1")).then_some(())
        })
        .await;
        creation.batch_execute("COMMIT").unwrap();
    };
    let (erased, ()) = tokio::join!(erasing, committing);
    assert_eq!(erased.expect(200).json, deleted(1, false));
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
    assert_eq!(reply.bad_fields(), ["body"]);
    let wrong = json!({"emails": ["x"], "incarnation": INCARNATION});
    let reply = with_token().json(&wrong).send().await;
    assert_eq!(reply.bad_fields(), ["body"]);
    // A service token gives access to nothing else.
    let reply = app
        .http
        .get("/people-task/tasks")
        .bearer(&service_token(&app))
        .send()
        .await;
    reply.expect_problem(401, "invalid-token");
}
