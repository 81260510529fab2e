//! What users may have and add is limited, for each of them and for all together.

use serde_json::{Value, json};
use testkit::{INCARNATION, Reply, eventually};

use crate::erasure::service_token;
use crate::fixture::{Fixture, User};
use crate::outages::disk_is_full;

/// Waits until a user's task is refused.
async fn wait_for_refusal(app: &Fixture, user: &User, task: &Value) -> Reply {
    eventually("a refusal", async || {
        let reply = app.try_create(user, task.clone()).await;
        (reply.status != 200).then_some(reply)
    })
    .await
}

fn details(reply: &Reply) -> (u16, &str, &str, Option<u64>, Option<u64>) {
    let text = |name: &str| reply.json[name].as_str().unwrap_or_default();
    let number = |name: &str| reply.json[name].as_u64();
    (
        reply.status,
        text("code"),
        text("resource"),
        number("limit"),
        number("used"),
    )
}

#[tokio::test]
async fn a_user_has_a_stock_of_pending_tasks_and_each_decision_frees_one() {
    let mut app = Fixture::start_with(&[("QUOTA_USER_PENDING_TASKS", "3")]).await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let first = app.create(&me, json!({})).await;
    for _ in 0..2 {
        app.create(&me, json!({})).await;
    }
    let refused = app.try_create(&me, json!({})).await;
    let expected = (409, "quota-exceeded", "tasks", Some(3), Some(3));
    assert_eq!(details(&refused), expected);
    app.create(&other, json!({})).await;
    let _ = app.approve(&me, &first).await.expect(200);
    eventually("the count to fall", async || {
        let reply = app.try_create(&me, json!({})).await;
        (reply.status == 200).then_some(())
    })
    .await;
    // A process that has just started does not know it yet.
    app.restart_with(&[("QUOTA_USER_PENDING_TASKS", "3")]).await;
    let refused = wait_for_refusal(&app, &me, &json!({})).await;
    assert_eq!(details(&refused).2, "tasks");
}

#[tokio::test]
async fn a_user_has_a_stock_of_webhooks() {
    let app = Fixture::start_with(&[("QUOTA_USER_WEBHOOKS", "2")]).await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let task = app.create(&me, json!({})).await;
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    for _ in 0..2 {
        let _ = app.try_register(&me, &body).await.expect(200);
    }
    let refused = app.try_register(&me, &body).await;
    let expected = (409, "quota-exceeded", "webhooks", Some(2), Some(2));
    assert_eq!(details(&refused), expected);
    let others = app.create(&other, json!({})).await;
    app.register(&other, &others, "http://127.0.0.1:9/").await;
}

/// Waits until a user's webhook is refused with a code.
async fn wait_for_code(app: &Fixture, user: &User, webhook: &Value, code: &str) {
    eventually("the webhooks to be counted", async || {
        let reply = app.try_register(user, webhook).await;
        (reply.json["code"] == code).then_some(())
    })
    .await;
}

#[tokio::test]
async fn webhooks_for_tasks_of_others_use_up_no_stock() {
    let settings = [("QUOTA_USER_WEBHOOKS", "20")];
    let mut app = Fixture::start_with(&settings).await;
    let (creator, me) = (app.user("creator@example.com"), app.user("me@example.com"));
    let last = app.user("last@example.com");
    let to_me = json!({"requester": "me@example.com"});
    let tasks = [
        app.create(&creator, to_me.clone()).await,
        app.create(&creator, to_me).await,
    ];
    let of_last = app.create(&last, json!({})).await;
    let url = "http://127.0.0.1:9/";
    for _ in 0..10 {
        for task in &tasks {
            app.register(&me, task, url).await;
        }
        app.register(&creator, &tasks[0], url).await;
    }
    for _ in 0..20 {
        app.register(&last, &of_last, url).await;
    }
    app.restart_with(&settings).await;
    // A webhook too many for the task asks for a count and adds nothing.
    let body = json!({"taskId": tasks[0].id, "url": url});
    for user in [&creator, &me] {
        let refused = app.try_register(user, &body).await;
        refused.expect_problem(409, "too-many-webhooks");
    }
    // What another user has was counted twice, so what these have was counted, too.
    let too_many = json!({"taskId": of_last.id, "url": url});
    wait_for_code(&app, &last, &too_many, "quota-exceeded").await;
    let _ = app.approve(&last, &of_last).await.expect(200);
    wait_for_code(&app, &last, &too_many, "task-already-resolved").await;
    app.register(&creator, &tasks[1], url).await;
    let refused = app.try_register(&me, &body).await;
    refused.expect_problem(409, "too-many-webhooks");
}

#[tokio::test]
async fn a_user_whose_count_fails_does_not_keep_others_from_being_counted() {
    let app = Fixture::start_with(&[("QUOTA_USER_PENDING_TASKS", "1")]).await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let until_accepted = async || {
        let reply = eventually("a task to be accepted", async || {
            let reply = app.try_create(&me, json!({})).await;
            (reply.status == 200).then_some(reply)
        });
        format!("/people-task/tasks/{}/approve", reply.await.text_of("id"))
    };
    let approve = async |path: String| {
        let reply = app.http.put(&path).bearer(&me.token).send().await;
        let _ = reply.expect(200);
    };
    approve(until_accepted().await).await;
    // It was counted, so the other user's turn is before the next count.
    let path = until_accepted().await;
    let id = format!("decode('{}', 'hex')", other.id);
    app.execute(&format!("INSERT INTO stored_bytes VALUES ({id}, 0)"));
    app.execute(&format!(
        "CREATE POLICY readable ON stored_bytes USING (1 / (user_id <> {id})::integer = 1)"
    ));
    app.execute("ALTER TABLE stored_bytes ENABLE ROW LEVEL SECURITY");
    app.create(&other, json!({})).await;
    approve(path).await;
    until_accepted().await;
}

#[tokio::test]
async fn an_edit_of_another_user_does_not_tell_what_the_creator_has() {
    let app = Fixture::start_with(&[("QUOTA_USER_BYTES", "1000")]).await;
    let (creator, requester) = (app.user("creator@example.com"), app.user("me@example.com"));
    let task = json!({"title": "t", "description": "", "requester": "me@example.com"});
    let task = app.create(&creator, task).await;
    let longer = json!({"description": "x".repeat(2_000)});
    let refused = app.put(&requester, &task.path, &longer).await;
    let expected = (409, "quota-exceeded", "bytes", None, None);
    assert_eq!(details(&refused), expected);
    let detail = refused.text_of("detail");
    assert!(
        detail.starts_with("The task's creator has no room"),
        "{detail}"
    );
    let refused = app.put(&creator, &task.path, &longer).await;
    let expected = (409, "quota-exceeded", "bytes", Some(1_000), Some(1));
    assert_eq!(details(&refused), expected);
}

#[tokio::test]
async fn the_bytes_of_titles_and_descriptions_are_counted_with_edits_across_restarts_and_until_erasure()
 {
    let settings = [("QUOTA_USER_BYTES", "10000")];
    let mut app = Fixture::start_with(&settings).await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let text = |length: usize| json!({"title": "t", "description": "x".repeat(length)});
    let task = app.create(&me, text(5_999)).await;
    // Edits count by what they change.
    let longer = app.put(&me, &task.path, &text(6_999)).await;
    let _ = longer.expect(200);
    let refused = app.put(&me, &task.path, &text(12_000)).await;
    let expected = (409, "quota-exceeded", "bytes", Some(10_000), Some(7_000));
    assert_eq!(details(&refused), expected);
    let _ = app.put(&me, &task.path, &text(4_999)).await.expect(200);
    app.create(&other, json!({"title": "t", "requester": "me@example.com"}))
        .await;
    assert!(app.stop().await);
    assert_eq!(app.count("stored_bytes WHERE bytes = 5000"), 1);
    assert_eq!(app.count("stored_bytes WHERE bytes = 1"), 1);
    app.restart_with(&settings).await;
    let refused = wait_for_refusal(&app, &me, &text(4_000)).await;
    assert_eq!(details(&refused).2, "bytes");
    let request = app.http.post(&format!("/internal/users/{}/erase", me.id));
    let body = json!({"emails": ["me@example.com"], "incarnation": INCARNATION});
    let request = request.bearer(&service_token(&app)).json(&body);
    let _ = request.send().await.expect(200);
    assert!(app.stop().await);
    // The other user's task went with its requester.
    assert_eq!(app.count("stored_bytes WHERE bytes = 0"), 1);
    assert_eq!(app.count("stored_bytes"), 1);
}

#[tokio::test]
async fn the_bytes_of_an_edit_that_is_rolled_back_are_not_counted() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let text = |length: usize| json!({"title": "t", "description": "x".repeat(length)});
    let task = app.create(&me, text(4_999)).await;
    app.execute(
        "CREATE FUNCTION people_task.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
    );
    app.execute("CREATE TRIGGER refuse BEFORE UPDATE ON people_task.tasks EXECUTE FUNCTION people_task.refuse()");
    for length in [1_999, 6_999] {
        let _ = app.put(&me, &task.path, &text(length)).await.expect(500);
    }
    assert!(app.stop().await);
    assert_eq!(app.count("stored_bytes WHERE bytes = 5000"), 1);
}

#[tokio::test]
async fn a_task_that_could_not_be_stored_does_not_count() {
    let app = Fixture::start_with(&[("QUOTA_USER_TASKS_PER_MINUTE", "1")]).await;
    let me = app.user("me@example.com");
    let text = |title: &str| json!({"title": title, "description": ""});
    app.execute("ALTER TABLE tasks ADD CONSTRAINT refused CHECK (title <> 'refused')");
    disk_is_full(&app, "WHEN (NEW.title = 'full')");
    for (title, status) in [
        ("refused", 500),
        ("full", 503),
        ("refused", 500),
        ("full", 503),
    ] {
        let _ = app.try_create(&me, text(title)).await.expect(status);
    }
    let _ = app.try_create(&me, text("stored")).await.expect(200);
    let refused = app.try_create(&me, text("stored")).await;
    refused.expect_problem(429, "rate-limited");
    assert!(app.stop().await);
    assert_eq!(app.count("stored_bytes WHERE bytes = 6"), 1);
}

#[tokio::test]
async fn rates_are_429_with_the_time_to_wait() {
    let app = Fixture::start_with(&[
        ("QUOTA_USER_TASKS_PER_MINUTE", "2"),
        ("QUOTA_USER_WEBHOOKS_PER_MINUTE", "1"),
    ])
    .await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    let task = app.create(&me, json!({})).await;
    app.create(&me, json!({})).await;
    let refused = app.try_create(&me, json!({})).await;
    assert_eq!(
        details(&refused),
        (429, "rate-limited", "tasks", None, None)
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    app.register(&me, &task, "http://127.0.0.1:9/").await;
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let refused = app.try_register(&me, &body).await;
    assert_eq!(details(&refused).2, "webhooks");
    app.create(&other, json!({})).await;
}

#[tokio::test]
async fn all_users_together_have_limits_too_and_exempt_ones_none() {
    let mut app = Fixture::start().await;
    let exempt = app.user("engine@example.com");
    let id = exempt.id.to_string();
    let settings = [("QUOTA_TASKS_PER_MINUTE", "2"), ("QUOTA_EXEMPT_USERS", &id)];
    app.restart_with(&settings).await;
    let (me, other) = (app.user("me@example.com"), app.user("other@example.com"));
    // What is added before the first minute begins counts for none.
    app.create(&exempt, json!({})).await;
    app.create(&me, json!({})).await;
    app.create(&other, json!({})).await;
    let refused = app.try_create(&me, json!({})).await;
    assert_eq!(details(&refused).0, 429);
    app.create(&exempt, json!({})).await;
}
