//! Withdrawing tasks.

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Reply, eventually};

use crate::decide::wait_for_lock;
use crate::due_dates::{PLUGIN, accepting, after, register, settled, statuses, waiting, worker};
use crate::fixture::{Fixture, Task, User, WithSecret as _};
use crate::mails::{KEY, claim, claim_all, create};
use crate::webhook_calls::OF_EARLIER_WORKERS;
use crate::webhook_worker::fixture::STOP_TIMEOUT;

async fn cancel(app: &Fixture, by: &User, task: &Task, body: Value) -> Reply {
    let request = app.http.post(&format!("{}/cancel", task.path));
    request.bearer(&by.token).json(&body).send().await
}

async fn claim_cancelled(app: &Fixture) -> Vec<Value> {
    let claimed = claim_all(app).await;
    claimed["cancelled"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn the_creator_withdraws_a_task_with_a_reason_and_it_is_final() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    let body = json!({"reason": "  No longer needed. "});
    let reply = cancel(&app, &creator, &task, body).await.expect(200);
    assert_eq!(reply.json["status"], "cancelled");
    assert_eq!(reply.fields(), crate::fixture::DEFAULT_FIELDS);
    let include = format!("{}?include=comment,decidedBy,decisionMade", task.path);
    let shown = app.get(&creator, &include).await.expect(200);
    assert_eq!(shown.json["status"], "cancelled");
    assert_eq!(shown.json["comment"], "No longer needed.");
    assert_eq!(shown.json["decidedBy"], "flow@example.com");
    assert!(shown.json["decisionMade"].is_string());
    let grace = app.user("grace@example.com");
    for late in [
        app.approve(&grace, &task).await,
        app.put(&grace, &format!("{}/reject", task.path), &json!({}))
            .await,
        app.put(&creator, &task.path, &json!({"title": "Other"}))
            .await,
        cancel(&app, &creator, &task, json!({})).await,
        app.try_register(
            &creator,
            &json!({"taskId": task.id, "url": "http://127.0.0.1:9/"}),
        )
        .await,
    ] {
        late.expect_problem(409, "task-already-resolved");
        assert_eq!(late.json["taskStatus"], "cancelled");
    }
    assert_eq!(app.count("audit_log WHERE action = 'task-cancelled'"), 1);
    let detail = "SELECT detail->>'fields' AS value FROM audit_log WHERE action = 'task-cancelled'";
    assert_eq!(app.value(detail).as_deref(), Some("[\"reason\"]"));
}

#[tokio::test]
async fn creator_requester_and_administrators_may_and_nobody_else() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let admin = app.admin();
    let public = json!({"public": true});
    for allowed in [&creator, &admin, &app.user("ada@example.com")] {
        let task = app.create(&creator, public.clone()).await;
        let _ = cancel(&app, allowed, &task, json!({})).await.expect(200);
    }
    let task = app.create(&creator, public).await;
    for refused in ["grace@example.com", "eve@example.com"] {
        let reply = cancel(&app, &app.user(refused), &task, json!({})).await;
        reply.expect_problem(403, "forbidden");
    }
    let hidden = app.create(&creator, json!({})).await;
    let eve = app.user("eve@example.com");
    let reply = cancel(&app, &eve, &hidden, json!({})).await;
    reply.expect_problem(404, "not-found");
    let path = format!("{}/cancel", hidden.path);
    app.http
        .post(&path)
        .send()
        .await
        .expect_problem(401, "token-missing");
    let by_approver = app
        .http
        .post(&path)
        .secret(&hidden.approver_secret)
        .send()
        .await;
    by_approver.expect_problem(403, "forbidden");
    let body = json!({"secret": hidden.requester_secret});
    let _ = app.http.post(&path).json(&body).send().await.expect(200);
    let entry = "audit_log WHERE action = 'task-cancelled' AND actor_kind = 'requester-secret' AND proof = 'task-secret'";
    assert_eq!(app.count(entry), 1);
    let shown = app
        .get(&creator, &format!("{}?include=decidedBy", hidden.path))
        .await;
    assert_eq!(shown.json["decidedBy"], "ada@example.com");
}

#[tokio::test]
async fn a_bad_reason_and_another_version_are_refused() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    for (body, field) in [
        (json!({"reason": "x".repeat(2_001)}), "reason"),
        (json!({"reason": 1}), "reason"),
        (json!({"version": "1"}), "version"),
    ] {
        let reply = cancel(&app, &creator, &task, body).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field]);
    }
    let _ = app
        .put(&creator, &task.path, &json!({"title": "Other"}))
        .await
        .expect(200);
    let reply = cancel(&app, &creator, &task, json!({"version": 1})).await;
    reply.expect_problem(409, "task-changed");
    let body = json!({"version": 2, "reason": "x".repeat(2_000)});
    let _ = cancel(&app, &creator, &task, body).await.expect(200);
}

#[tokio::test]
async fn only_webhooks_that_name_the_event_hear_of_it() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    let path = "/people-task/webhooks";
    for (path, events) in [
        (path, json!(null)),
        (PLUGIN, json!(null)),
        (path, json!(["approved", "rejected", "due"])),
        (path, json!(["cancelled"])),
        (path, json!(["approved", "cancelled"])),
    ] {
        let more = json!({"url": receiver.url("/"), "events": events});
        let _ = register(&app, &creator, path, &task, more)
            .await
            .expect(200);
    }
    let preview = app
        .get(&creator, &format!("{}/cancel", task.path))
        .await
        .expect(200);
    assert_eq!(
        preview.json,
        json!({"webhooksTold": 2, "webhooksNotTold": 3})
    );
    let _worker = worker(&app).await;
    let _ = cancel(&app, &creator, &task, json!({"reason": "Too late."}))
        .await
        .expect(200);
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!(statuses(&calls), ["cancelled", "cancelled"]);
    assert_eq!(calls[0].json()["comment"], "Too late.");
    assert_eq!(calls[0].json()["id"], task.id);
    assert_eq!(app.count("all_deliveries"), 2);
    let deliveries = app
        .get(&creator, &format!("{}/deliveries", task.path))
        .await
        .expect(200);
    assert_eq!(deliveries.json[0]["taskStatus"], "cancelled");
    let late = app.get(&creator, &format!("{}/cancel", task.path)).await;
    late.expect_problem(409, "task-already-resolved");
    let preview = app
        .get(
            &app.user("grace@example.com"),
            &format!("{}/cancel", task.path),
        )
        .await;
    preview.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn due_dates_stop_and_deliveries_of_them_that_wait_are_not_sent() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let creator = app.user("flow@example.com");
    let due = json!({"url": receiver.url("/"), "events": ["due", "cancelled"]});
    // One has passed and is not sent yet, because the worker stops; one is still to come.
    let passed = app.create(&creator, json!({"decisionBy": after(-5)})).await;
    let _ = register(&app, &creator, PLUGIN, &passed, due.clone())
        .await
        .expect(200);
    let later = app
        .create(&creator, json!({"decisionBy": after(3_600)}))
        .await;
    let _ = register(&app, &creator, PLUGIN, &later, due)
        .await
        .expect(200);
    app.execute("INSERT INTO paused_hosts (host) VALUES ('127.0.0.1')");
    let worker = worker(&app).await;
    eventually("the due date to be handled", async || {
        (app.count("deliveries WHERE due_at IS NOT NULL") == 1).then_some(())
    })
    .await;
    for task in [&passed, &later] {
        let _ = cancel(&app, &creator, task, json!({})).await.expect(200);
    }
    assert_eq!(app.count("deliveries WHERE due_at IS NOT NULL"), 0);
    assert_eq!(waiting(&app), 0);
    app.execute("DELETE FROM paused_hosts");
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!(statuses(&calls), ["cancelled", "cancelled"]);
    assert_eq!(
        settled(&app, &creator, &passed, 1).await,
        ["sent", "cancelled sent"]
    );
    drop(worker);
}

#[tokio::test]
async fn a_due_date_whose_failed_attempt_is_being_recorded_is_not_sent_after_the_withdrawal() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({"decisionBy": after(-5)})).await;
    let due = json!({"url": "http://127.0.0.1:9/"});
    let _ = register(&app, &creator, PLUGIN, &task, due)
        .await
        .expect(200);
    app.execute(
        "INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent, due_at)
        SELECT new_id(), id, task_id, host, 'r', 't', now() FROM webhooks",
    );
    let mut recorder = app.database.admin();
    let record = "BEGIN; UPDATE people_task.deliveries SET lease = lease + 1, attempts = 1";
    recorder.batch_execute(record).unwrap();
    let recording = async {
        wait_for_lock(&app).await;
        recorder.batch_execute("COMMIT").unwrap();
    };
    let cancelling = cancel(&app, &creator, &task, json!({}));
    let (cancelled, ()) = tokio::join!(cancelling, recording);
    let _ = cancelled.expect(200);
    assert_eq!(app.count("deliveries WHERE due_at IS NOT NULL"), 0);
}

#[tokio::test]
async fn lists_counts_and_orders_know_cancelled_tasks() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    for (title, how) in [
        ("p", ""),
        ("a", "approve"),
        ("r", "reject"),
        ("c", "cancel"),
    ] {
        let task = app.create(&creator, json!({"title": title})).await;
        match how {
            "" => continue,
            "cancel" => drop(cancel(&app, &creator, &task, json!({})).await.expect(200)),
            _ => drop(
                app.put(&creator, &format!("{}/{how}", task.path), &json!({}))
                    .await
                    .expect(200),
            ),
        }
    }
    for (filter, expected) in [
        ("pending", vec!["p"]),
        ("approved", vec!["a"]),
        ("rejected", vec!["r"]),
        ("cancelled", vec!["c"]),
    ] {
        assert_eq!(
            app.titles(&creator, &format!("filter=status:{filter}"))
                .await,
            expected
        );
        let count = format!("/people-task/tasks-count?filter=status:{filter}&role=creator");
        assert_eq!(app.get(&creator, &count).await.json["count"], 1, "{filter}");
    }
    assert_eq!(
        app.titles(&creator, "sort=status:1").await,
        ["a", "c", "p", "r"]
    );
    assert_eq!(
        app.titles(&creator, "sort=status:-1&limit=2&offset=1")
            .await,
        ["p", "c"]
    );
    let admin = app.admin();
    assert_eq!(
        app.titles(&admin, "role=any&filter=status:cancelled").await,
        ["c"]
    );
    let unknown = app
        .get(&creator, "/people-task/tasks?filter=status:withdrawn")
        .await;
    unknown.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn an_approver_who_was_asked_gets_a_mail_and_no_reminders() {
    let app = Fixture::start_with(&[("TASK_MAIL_KEY", KEY)]).await;
    let creator = app.user("flow@example.com");
    let asked = create(&app, &creator, json!({"decisionBy": after(48 * 3_600)})).await;
    assert_eq!(claim(&app).await.len(), 1);
    let not_asked = create(&app, &creator, json!({"decisionBy": after(48 * 3_600)})).await;
    for task in [&asked, &not_asked] {
        let _ = cancel(&app, &creator, task, json!({"reason": "Too late."}))
            .await
            .expect(200);
    }
    assert_eq!(app.count("task_mails"), 1);
    let mails = claim_cancelled(&app).await;
    let [mail] = mails.as_slice() else {
        panic!("{mails:?}");
    };
    for (field, value) in [
        ("kind", json!("cancelled")),
        ("taskId", json!(asked.id)),
        ("to", json!("grace@example.com")),
        ("status", json!("cancelled")),
        ("decidedBy", json!("flow@example.com")),
        ("comment", json!("Too late.")),
        ("approveLink", Value::Null),
        ("unsubscribeLink", Value::Null),
    ] {
        assert_eq!(mail[field], value, "{field}");
    }
    assert!(
        mail["taskLink"]
            .as_str()
            .unwrap()
            .contains(&asked.approver_secret)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_simultaneous_decisions_and_withdrawals_one_wins() {
    let app = Fixture::start().await;
    let (creator, grace) = (app.user("flow@example.com"), app.user("grace@example.com"));
    for _ in 0..20 {
        let task = app.create(&creator, json!({})).await;
        let (cancelled, approved) = tokio::join!(
            join_all((0..3).map(|_| cancel(&app, &creator, &task, json!({})))),
            join_all((0..3).map(|_| app.approve(&grace, &task))),
        );
        let replies: Vec<_> = cancelled.into_iter().chain(approved).collect();
        let won: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(won.len(), 1);
        let now = app.get(&creator, &task.path).await.json["status"].clone();
        assert_eq!(now, won[0].json["status"]);
        for lost in replies.iter().filter(|reply| reply.status != 200) {
            lost.expect_problem(409, "task-already-resolved");
            assert_eq!(lost.json["taskStatus"], now);
        }
    }
}

#[tokio::test]
async fn a_plugin_webhook_that_comes_after_it_is_called_only_if_it_wants_to_hear_of_it() {
    let (app, receiver) = (Fixture::start().await, accepting());
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    let path = format!("/plugins/appmixer/utils/tasks/tasks/{}/cancel", task.id);
    let reply = app
        .http
        .post(&path)
        .bearer(&creator.token)
        .send()
        .await
        .expect(200);
    assert_eq!(reply.json["taskId"], task.id);
    let more = json!({"url": receiver.url("/")});
    let _ = register(&app, &creator, PLUGIN, &task, more)
        .await
        .expect(200);
    assert_eq!(app.count("deliveries"), 0);
    let more = json!({"url": receiver.url("/"), "events": ["cancelled"]});
    let _ = register(&app, &creator, PLUGIN, &task, more)
        .await
        .expect(200);
    assert_eq!(app.count("deliveries"), 1);
}

#[tokio::test]
async fn the_version_before_reads_a_cancelled_task_as_rejected() {
    let app = Fixture::start().await;
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    let _ = cancel(&app, &creator, &task, json!({})).await.expect(200);
    let known = "task_states WHERE status IN ('pending', 'approved', 'rejected') AND decision_made IS NOT NULL";
    assert_eq!(app.count(known), 1);
}

#[tokio::test]
async fn a_withdrawal_that_is_sent_again_is_hidden_from_workers_of_the_version_before() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let creator = app.user("flow@example.com");
    let task = app.create(&creator, json!({})).await;
    let more = json!({"url": receiver.url("/"), "events": ["cancelled"]});
    let path = "/people-task/webhooks";
    let _ = register(&app, &creator, path, &task, more)
        .await
        .expect(200);
    let worker = worker(&app).await;
    let _ = cancel(&app, &creator, &task, json!({})).await.expect(200);
    assert_eq!(settled(&app, &creator, &task, 1).await.len(), 2);
    assert!(worker.stop(STOP_TIMEOUT).await);
    let list = app
        .get(&creator, &format!("{}/deliveries", task.path))
        .await;
    let id = list.json[0]["id"].as_str().unwrap();
    let again = format!("/people-task/deliveries/{id}/redeliver");
    let request = app.http.post(&again).bearer(&creator.token);
    let _ = request.send().await.expect(200);
    assert_eq!(
        (app.count("deliveries"), app.count(OF_EARLIER_WORKERS)),
        (1, 0)
    );
}
