use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Reply, eventually};

use crate::due_dates::{accepting, after, register, worker};
use crate::fixture::{DEFAULT_FIELDS, Fixture, Task, User};
use crate::mails;

#[tokio::test]
async fn a_decision_returns_the_task_with_its_new_status() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    for (decision, status) in [("approve", "approved"), ("reject", "rejected")] {
        let task = app
            .create(&ada, json!({"decisionBy": "2001-01-01 00:00:00"}))
            .await;
        let path = format!("{}/{decision}", task.path);
        let reply = app
            .http
            .put(&path)
            .bearer(&grace.token)
            .send()
            .await
            .expect(200);
        assert_eq!(reply.fields(), DEFAULT_FIELDS);
        assert_eq!(reply.json["status"], status);
        let include = format!("{}?include=decisionMade,created,mtime", task.path);
        let reply = app.get(&ada, &include).await.expect(200);
        assert_eq!(reply.json["status"], status);
        assert!(reply.text_of("decisionMade") > reply.text_of("created"));
        assert_eq!(reply.json["decisionMade"], reply.json["mtime"]);
    }
}

#[tokio::test]
async fn a_decision_is_final() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let _ = app.approve(&grace, &task).await.expect(200);
    for decision in ["approve", "reject"] {
        let reply = app
            .put(&grace, &format!("{}/{decision}", task.path), &json!({}))
            .await;
        reply.expect_problem(409, "task-already-resolved");
        assert_eq!(reply.json["taskStatus"], "approved");
    }
    assert_eq!(app.count("deliveries"), 1);
    assert_eq!(app.get(&ada, &task.path).await.json["status"], "approved");
}

#[tokio::test]
async fn one_of_several_concurrent_decisions_succeeds_and_each_webhook_gets_one_delivery() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    for _ in 0..5 {
        let task = app.create(&ada, json!({})).await;
        for port in 1..=3 {
            let _ = app
                .register(&ada, &task, &format!("http://127.0.0.1:{port}/"))
                .await;
        }
        let decisions = (0..16).map(|n| {
            let decision = if n % 2 == 0 { "approve" } else { "reject" };
            let path = format!("{}/{decision}", task.path);
            app.http.put(&path).bearer(&grace.token).send()
        });
        let replies = join_all(decisions).await;
        let won: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(won.len(), 1);
        let status = won[0].text_of("status");
        for lost in replies.iter().filter(|reply| reply.status != 200) {
            lost.expect_problem(409, "task-already-resolved");
            assert_eq!(lost.json["taskStatus"], status.as_str());
        }
        assert_eq!(app.get(&ada, &task.path).await.text_of("status"), status);
        let of_task = format!("deliveries WHERE encode(task_id, 'hex') = '{}'", task.id);
        assert_eq!(app.count(&of_task), 3);
    }
}

/// Waits until a statement waits for a lock.
pub(crate) async fn wait_for_lock(app: &Fixture) {
    eventually("a statement to wait", async || {
        let waiting = "SELECT count(*)::text AS value FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        (app.value(waiting)? == "1").then_some(())
    })
    .await;
}

/// When another transaction changes the task that is decided.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// It holds the task while the decision begins.
    UnderWay,
    /// It begins and ends after the decision's statement has its snapshot, and before that has locked the task.
    AfterSnapshot,
}

const CHANGES: [Change; 2] = [Change::UnderWay, Change::AfterSnapshot];

/// Decides the task and changes it meanwhile.
async fn decided_during(
    app: &Fixture,
    by: &User,
    task: &Task,
    when: Change,
    change: &str,
) -> Reply {
    let (mut holder, mut other) = (app.database.admin(), app.database.admin());
    let change = change.replace("{task}", &format!("'\\x{}'", task.id));
    let change = format!("SET search_path = people_task; {change};");
    let hold = match when {
        Change::UnderWay => format!("BEGIN; {change}"),
        // The statement asks for this lock when it knows the task.
        Change::AfterSnapshot => format!(
            "BEGIN; SELECT pg_advisory_xact_lock(people_task.erasure_lock('\\x{}'))",
            by.id
        ),
    };
    holder.batch_execute(&hold).unwrap();
    let deciding = app.approve(by, task);
    let changing = async {
        wait_for_lock(app).await;
        if let Change::AfterSnapshot = when {
            other.batch_execute(&change).unwrap();
        }
        holder.batch_execute("COMMIT").unwrap();
    };
    tokio::join!(deciding, changing).0
}

#[tokio::test]
async fn a_webhook_registered_during_a_decision_gets_a_delivery() {
    for when in CHANGES {
        let app = Fixture::start().await;
        let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
        let task = app.create(&ada, json!({})).await;
        let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
        let register = "UPDATE task_states SET version = version + 1 WHERE task_id = {task};
            INSERT INTO webhooks (id, task_id, registered_by, url, host)
            VALUES ('\\x0123456789abcdef01234567', {task}, '\\x0123456789abcdef01234567', 'http://127.0.0.1:8/',
                '127.0.0.1')";
        let reply = decided_during(&app, &grace, &task, when, register).await;
        assert_eq!(reply.expect(200).json["status"], "approved");
        assert_eq!(app.count("deliveries"), 2, "{when:?}");
        assert_eq!(app.count("audit_log WHERE action = 'task-approved'"), 1);
    }
}

#[tokio::test]
async fn a_webhook_deleted_during_a_decision_gets_no_delivery() {
    for when in CHANGES {
        let app = Fixture::start().await;
        let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
        let task = app.create(&ada, json!({})).await;
        let _ = app.register(&ada, &task, "http://127.0.0.8/").await;
        let _ = app.register(&ada, &task, "http://127.0.0.9/").await;
        let delete = "DELETE FROM webhooks WHERE url = 'http://127.0.0.8/'";
        let reply = decided_during(&app, &grace, &task, when, delete).await;
        assert_eq!(reply.expect(200).json["status"], "approved");
        let left = app.value("SELECT string_agg(host, ' ') AS value FROM deliveries");
        assert_eq!(left.as_deref(), Some("127.0.0.9"), "{when:?}");
    }
}

#[tokio::test]
async fn an_approver_who_is_being_replaced_decides_before_that_or_not_at_all() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let tasks = join_all((0..100).map(|_| app.create(&ada, json!({})))).await;
    let races = tasks.iter().map(async |task| {
        let hand_over = json!({"approver": "eve@example.com"});
        let handed_over = app.put(&ada, &task.path, &hand_over);
        let (decided, handed_over) = tokio::join!(app.approve(&grace, task), handed_over);
        assert!([200, 409].contains(&handed_over.status));
        decided.status
    });
    let statuses: HashSet<_> = join_all(races).await.into_iter().collect();
    assert!(
        statuses.is_subset(&HashSet::from([200, 404])),
        "{statuses:?}"
    );
    // Both entries are numbered under the lock of the task.
    let late = "audit_log AS edited JOIN people_task.audit_log AS decided USING (subject_id)
        WHERE edited.action = 'task-edited' AND decided.action = 'task-approved' AND decided.id > edited.id";
    assert_eq!(app.count(late), 0);
}

#[tokio::test]
async fn a_task_that_another_transaction_holds_delays_no_other_decision() {
    let app = Fixture::start().await;
    let grace = app.user("grace@example.com");
    let tasks = join_all((0..10).map(|_| app.create(&grace, json!({})))).await;
    let (held, others) = tasks.split_first().unwrap();
    let mut holder = app.database.admin();
    let hold = format!(
        "BEGIN; UPDATE people_task.task_states SET version = version + 1 WHERE task_id = '\\x{}'",
        held.id
    );
    holder.batch_execute(&hold).unwrap();
    let deciding_others = async {
        for reply in join_all(others.iter().map(|task| app.approve(&grace, task))).await {
            let _ = reply.expect(200);
        }
        wait_for_lock(&app).await;
        holder.batch_execute("COMMIT").unwrap();
    };
    let (reply, ()) = tokio::join!(app.approve(&grace, held), deciding_others);
    let _ = reply.expect(200);
}

#[tokio::test]
async fn mails_and_due_dates_that_another_transaction_holds_delay_no_decision() {
    let app = Fixture::start_with_broker(&[("TASK_MAIL_KEY", mails::KEY)]).await;
    let (ada, receiver) = (app.user("ada@example.com"), accepting());
    let fields = json!({"decisionBy": after(-1), "requester": ada.email});
    let approved = mails::create(&app, &ada, fields.clone()).await;
    let withdrawn = mails::create(&app, &ada, fields).await;
    for task in [&approved, &withdrawn] {
        let hook = json!({"url": receiver.url("/"), "events": ["due"]});
        let path = "/people-task/webhooks";
        let _ = register(&app, &ada, path, task, hook).await.expect(200);
    }
    let mut holder = app.database.admin();
    let hold = "BEGIN; SELECT FROM people_task.task_mails FOR UPDATE; SELECT FROM people_task.due_dates FOR UPDATE";
    holder.batch_execute(hold).unwrap();
    let _ = app.approve(&ada, &approved).await.expect(200);
    let cancel = app.http.post(&format!("{}/cancel", withdrawn.path));
    let _ = cancel.bearer(&ada.token).send().await.expect(200);
    assert_eq!(app.count("due_dates"), 2);
    assert_eq!(app.count("task_mails"), 4);
    holder.batch_execute("ROLLBACK").unwrap();

    // What was left has no effect.
    let reply = mails::claim_all(&app).await;
    let kinds = [&reply["mails"], &reply["cancelled"]].map(|mails| &mails[0]["kind"]);
    assert_eq!(kinds, ["decided", "cancelled"]);
    assert_eq!(app.count("task_mails"), 2);
    let _worker = worker(&app).await;
    eventually("due dates to be handled", async || {
        (app.count("due_dates") == 0).then_some(())
    })
    .await;
    assert_eq!(app.count("all_deliveries"), 0);
}

#[tokio::test]
async fn edits_in_a_loop_keep_nobody_from_deciding() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let edit_until_decided = async |editor: usize| {
        for number in 0.. {
            let edit = json!({"title": format!("{editor} {number}")});
            if app.put(&ada, &task.path, &edit).await.status == 409 {
                return;
            }
        }
    };
    let editing = join_all((0..4).map(edit_until_decided));
    let (reply, _) = tokio::join!(app.approve(&grace, &task), editing);
    let _ = reply.expect(200);
}

#[tokio::test]
async fn a_webhook_deleted_while_a_decision_adds_its_delivery_leaves_none() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let _ = app.register(&ada, &task, "http://127.0.0.8/").await;
    let (mut deciding, mut deleting) = (app.database.admin(), app.database.admin());
    let decide = "BEGIN; SET search_path = people_task;
        UPDATE task_states SET version = version + 1;
        INSERT INTO deliveries (id, webhook_id, task_id, host, request_id, traceparent)
        SELECT new_id(), id, task_id, host, 'r', 't' FROM webhooks";
    deciding.batch_execute(decide).unwrap();
    let delete = "DELETE FROM people_task.webhooks";
    let deleted = tokio::task::spawn_blocking(move || deleting.batch_execute(delete));
    wait_for_lock(&app).await;
    deciding.batch_execute("COMMIT").unwrap();
    deleted.await.unwrap().unwrap();
    assert_eq!(app.count("deliveries"), 0);
}

#[tokio::test]
async fn an_approver_replaced_during_a_decision_cannot_decide() {
    for when in CHANGES {
        let app = Fixture::start().await;
        let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
        let task = app.create(&ada, json!({})).await;
        let hand_over = "UPDATE task_states SET version = version + 1 WHERE task_id = {task};
            UPDATE tasks SET approver = 'eve@example.com', approver_key = 'eve@example.com',
            approver_secret = sha256('another') WHERE id = {task}";
        let reply = decided_during(&app, &grace, &task, when, hand_over).await;
        reply.expect_problem(404, "not-found");
        let remove = "DELETE FROM tasks WHERE id = {task}";
        let reply = decided_during(&app, &ada, &task, when, remove).await;
        reply.expect_problem(404, "not-found");
        assert_eq!(app.count("audit_log WHERE action = 'task-approved'"), 0);
    }
}

#[tokio::test]
async fn a_new_delivery_is_due_and_has_the_request_id() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let url = "http://127.0.0.1:8090/hook?correlationId=1";
    let _ = app.register(&ada, &task, url).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = app
        .http
        .put(&format!("{}/approve", task.path))
        .bearer(&ada.token);
    let request = request.header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    let reply = request
        .header("X-Request-Id", "req-42")
        .send()
        .await
        .expect(200);
    assert_eq!(reply.header("x-request-id"), Some("req-42"));
    let row = app.value(
        "SELECT concat_ws(' ', host, attempts, request_id, next_attempt <= now(),
            traceparent) AS value FROM deliveries",
    );
    let row = row.unwrap();
    let expected = "127.0.0.1 0 req-42 t 00-";
    assert!(row.starts_with(&format!("{expected}{trace}-")), "{row}");
}

#[tokio::test]
async fn a_decision_is_published_after_the_commit() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let mut expected = HashSet::new();
    for _ in 0..2 {
        let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    }
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let settings = messaging::BrokerSettings {
        url: app.broker().url(),
    };
    let queue = people_task_service::deliveries::QUEUE;
    let shutdown = tokio_util::sync::CancellationToken::new();
    let consumption = messaging::ConsumerConfig::new(settings, queue, 10);
    let connected = consumption.connected.clone();
    let consuming = messaging::consume(consumption, shutdown.clone(), move |message| {
        let _ = sender.send(message.body);
        std::future::ready(messaging::Disposition::Done)
    });
    let consuming = tokio::spawn(consuming);
    eventually("the consumer to be connected", async || {
        connected.load(Ordering::Acquire).then_some(())
    })
    .await;
    let _ = app.approve(&ada, &task).await.expect(200);
    let deliveries = app.get(&ada, &format!("{}/deliveries", task.path)).await;
    for delivery in deliveries.json.as_array().unwrap() {
        expected.insert(delivery["id"].as_str().unwrap().to_owned());
    }
    let mut received = HashSet::new();
    let message = tokio::time::timeout(Duration::from_secs(10), receiver.recv()).await;
    let message = message.unwrap().unwrap();
    let lane = app.value("SELECT DISTINCT lane AS value FROM deliveries");
    let lane = lane.unwrap();
    assert!(lane.starts_with("http://127.0.0.1:9 "), "{lane}");
    let ids = message.strip_prefix(&format!("{lane} ")).unwrap();
    received.extend(ids.split(' ').map(str::to_owned));
    assert_eq!(received, expected);
    shutdown.cancel();
    consuming.await.unwrap();
}

#[tokio::test]
async fn a_decision_accepts_any_json_object_but_no_other_body() {
    let app = Fixture::start().await;
    let grace = app.user("grace@example.com");
    let task = app.create(&grace, json!({})).await;
    let path = format!("{}/approve", task.path);
    let put = || app.http.put(&path).bearer(&grace.token);
    put()
        .body("x")
        .send()
        .await
        .expect_problem(415, "unsupported-media-type");
    let reply = put().json(&json!({"secret": 5})).send().await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["secret"]);
    put()
        .json(&json!([]))
        .send()
        .await
        .expect_problem(400, "validation-failed");
    // Clients may send the whole task.
    let whole = app.get(&grace, &task.path).await.json;
    let reply = put().json(&whole).send().await.expect(200);
    assert_eq!(reply.json["status"], "approved");
    let reply = app.get(&grace, &task.path).await;
    assert_ne!(reply.json["status"], Value::Null);
}

#[tokio::test]
async fn a_decision_needs_no_body() {
    let app = Fixture::start().await;
    let grace = app.user("grace@example.com");
    for (content_type, body) in [
        ("application/x-www-form-urlencoded", ""),
        ("application/json", ""),
        ("application/json", "null"),
    ] {
        let task = app.create(&grace, json!({})).await;
        let path = format!("{}/approve", task.path);
        let put = app.http.put(&path).bearer(&grace.token);
        let put = put.header("Content-Type", content_type).body(body);
        let reply = put.send().await.expect(200);
        assert_eq!(reply.json["status"], "approved", "{content_type} {body:?}");
    }
}

#[tokio::test]
async fn an_edit_and_the_decision_on_another_task_call_no_webhook() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let other = app.create(&ada, json!({})).await;
    for task in [&task, &other] {
        let _ = app.register(&ada, task, "http://127.0.0.1:9/").await;
    }
    let edit = json!({"title": "Another title", "approver": "linus@example.com"});
    let _ = app.put(&ada, &other.path, &edit).await.expect(200);
    assert_eq!(app.count("all_deliveries"), 0);
    let _ = app.approve(&ada, &task).await.expect(200);
    assert_eq!(app.count("all_deliveries"), 1);
    let of_task = format!(
        "all_deliveries WHERE encode(task_id, 'hex') = '{}'",
        task.id
    );
    assert_eq!(app.count(&of_task), 1);
}
