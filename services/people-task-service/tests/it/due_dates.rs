//! The event `due`: what webhooks are told when a due date passes while the task is pending.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use people_task_service::run_webhook_worker;
use serde_json::{Value, json};
use server::Running;
use testkit::{Reply, ed25519_pem, eventually};

use crate::erasure::service_token;
use crate::fixture::{Fixture, Task, User, merge};
use crate::webhook_worker::fixture::{
    Call, CannedResponse, Receiver, STOP_TIMEOUT, worker_settings,
};

pub(crate) const PLUGIN: &str = "/plugins/appmixer/utils/tasks/webhooks";
const PATH: &str = "/people-task/webhooks";

/// A worker that delivers for the service.
pub(crate) async fn worker(app: &Fixture) -> Running {
    worker_with(app, &[]).await
}

/// The same with some settings replaced.
pub(crate) async fn worker_with(app: &Fixture, overrides: &[(&str, &str)]) -> Running {
    let settings = worker_settings(&app.database, app.broker(), &ed25519_pem(), overrides);
    run_webhook_worker(settings).await.unwrap()
}

pub(crate) fn accepting() -> Receiver {
    Receiver::start(|_| CannedResponse::status(200))
}

/// A due date in a number of seconds, in the form of requests. It is a whole second.
pub(crate) fn after(seconds: i64) -> String {
    let moment: DateTime<Utc> = Utc::now().trunc_subsecs(0) + TimeDelta::seconds(seconds);
    moment.format("%Y-%m-%d %H:%M:%S").to_string()
}

pub(crate) async fn register(
    app: &Fixture,
    by: &User,
    path: &str,
    task: &Task,
    more: Value,
) -> Reply {
    let mut body = json!({"taskId": task.id});
    merge(&mut body, more);
    app.http
        .post(path)
        .bearer(&by.token)
        .json(&body)
        .send()
        .await
}

/// The statuses in the bodies of calls.
pub(crate) fn statuses(calls: &[Call]) -> Vec<String> {
    let status = |call: &Call| call.json()["status"].as_str().unwrap().to_owned();
    calls.iter().map(status).collect()
}

/// How many webhooks wait for a due date.
pub(crate) fn waiting(app: &Fixture) -> i64 {
    app.count("due_dates")
}

/// Waits until a number of webhooks wait for a due date.
async fn wait_for_waiting(app: &Fixture, number: i64) {
    eventually("due dates to be handled", async || {
        (waiting(app) == number).then_some(())
    })
    .await;
}

/// The statuses of the webhook and of each delivery of its task, when none of them is pending.
pub(crate) async fn settled(
    app: &Fixture,
    by: &User,
    task: &Task,
    deliveries: usize,
) -> Vec<String> {
    eventually("the deliveries to end", async || {
        let list = app.get(by, &format!("{}/deliveries", task.path)).await;
        let list = list.expect(200).json;
        let mut list = list.as_array().unwrap().clone();
        // Identifiers of the same second have no order.
        list.sort_by_key(|delivery| delivery["created"].to_string());
        let ended = list
            .iter()
            .filter(|delivery| delivery["status"] != "pending");
        if ended.count() < deliveries {
            return None;
        }
        let webhooks = app.get(by, &format!("{}/webhooks", task.path)).await.json;
        let mut shown = vec![webhooks[0]["status"].as_str()?.to_owned()];
        shown.extend(list.iter().map(|delivery| {
            let (of, status) = (&delivery["taskStatus"], &delivery["status"]);
            format!("{} {}", of.as_str().unwrap(), status.as_str().unwrap())
        }));
        Some(shown)
    })
    .await
}

#[tokio::test]
async fn a_webhook_is_told_once_when_the_due_date_passes_and_later_of_the_decision() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let due = after(2);
    let task = app.create(&ada, json!({"decisionBy": due})).await;
    let url = json!({"url": receiver.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, url).await.expect(200);
    let _worker = worker(&app).await;
    let calls = receiver.wait_for_calls(1).await;
    assert!(Utc::now().format("%Y-%m-%d %H:%M:%S").to_string() >= due);
    let body = calls[0].json();
    assert_eq!(body["status"], "due");
    assert_eq!(body["decisionBy"], due);
    assert_eq!(body["taskId"], task.id);
    assert_eq!(body["decisionMade"], Value::Null);
    assert!(body["created"].is_string() && body["mtime"].is_string());
    assert_eq!(body.as_object().unwrap().len(), 11);
    assert_eq!(settled(&app, &ada, &task, 1).await, ["sent", "due sent"]);
    assert_eq!(app.get(&ada, &task.path).await.json["status"], "pending");
    assert_eq!(waiting(&app), 0);

    let reject = format!("{}/reject", task.path);
    let comment = json!({"comment": "Too late."});
    let _ = app.put(&ada, &reject, &comment).await.expect(200);
    let shown = settled(&app, &ada, &task, 2).await;
    assert_eq!(shown, ["sent", "due sent", "rejected sent"]);
    let calls = receiver.calls();
    assert_eq!(statuses(&calls), ["due", "rejected"]);
    assert_ne!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    let body = calls[1].json();
    assert_eq!(body["comment"], "Too late.");
    assert!(body["decisionMade"].is_string());
}

#[tokio::test]
async fn a_webhook_is_called_for_its_events_only() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let receiver = accepting();
    let task = app.create(&ada, json!({"decisionBy": after(2)})).await;
    for (path, name, events) in [
        (PATH, "default", Value::Null),
        (PATH, "due", json!(["due", "due"])),
        (PATH, "approved", json!(["approved"])),
        (PATH, "rejected-or-due", json!(["rejected", "due"])),
        (PLUGIN, "plugin", Value::Null),
        (PLUGIN, "plugin-approved", json!(["approved"])),
    ] {
        let url = receiver.url(&format!("/{name}"));
        let more = json!({"url": url, "events": events});
        let _ = register(&app, &ada, path, &task, more).await.expect(200);
    }
    assert_eq!(waiting(&app), 3);
    let _worker = worker(&app).await;
    let _ = receiver.wait_for_calls(3).await;
    let _ = app.approve(&ada, &task).await.expect(200);
    let _ = settled(&app, &ada, &task, 7).await;
    let calls = receiver.calls();
    let made = calls.iter().zip(statuses(&calls));
    let made: HashSet<_> = made
        .map(|(call, status)| format!("{status} {}", call.path))
        .collect();
    let expected = [
        "due /due",
        "due /rejected-or-due",
        "due /plugin",
        "approved /default",
        "approved /approved",
        "approved /plugin",
        "approved /plugin-approved",
    ];
    assert_eq!(made, expected.map(str::to_owned).into());
    assert_eq!(calls.len(), expected.len());
}

#[tokio::test]
async fn events_are_a_list_of_known_names() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (events, code) in [
        (json!([]), "too-short"),
        (json!(["due", "edited"]), "unknown-value"),
        (json!("due"), "invalid-type"),
        (json!([1]), "invalid-type"),
    ] {
        let more = json!({"url": "http://127.0.0.1:9/", "events": events});
        let reply = register(&app, &ada, PATH, &task, more).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["events"]);
        assert_eq!(reply.json["errors"][0]["code"], code, "{events}");
    }
    assert_eq!(app.count("webhooks"), 0);
}

#[tokio::test]
async fn nothing_is_due_that_is_decided_deleted_or_has_no_date() {
    let (app, receiver) = (Fixture::start().await, accepting());
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let url = json!({"url": receiver.url("/")});
    let create = async |date: Value| {
        let task = app.create(&ada, json!({"decisionBy": date})).await;
        let webhook = register(&app, &ada, PLUGIN, &task, url.clone()).await;
        (task, webhook.expect(200).text_of("id"))
    };
    let _without = create(Value::Null).await;
    assert_eq!(waiting(&app), 0);
    let (decided, _) = create(json!(after(600))).await;
    let (_, deleted) = create(json!(after(600))).await;
    let theirs = json!({"decisionBy": after(600), "requester": "eve@example.com"});
    let theirs = app.create(&eve, theirs).await;
    let _ = register(&app, &eve, PLUGIN, &theirs, url.clone())
        .await
        .expect(200);
    assert_eq!(waiting(&app), 3);
    let _ = app.approve(&ada, &decided).await.expect(200);
    assert_eq!(waiting(&app), 2);
    let path = format!("{PATH}/{deleted}");
    let _ = app
        .http
        .delete(&path)
        .bearer(&ada.token)
        .send()
        .await
        .expect(200);
    assert_eq!(waiting(&app), 1);
    let erase = app.http.post(&format!("/internal/users/{}/erase", eve.id));
    let erase = erase.bearer(&service_token(&app));
    let _ = erase
        .json(&json!({"emails": ["eve@example.com"], "incarnation": testkit::INCARNATION}))
        .send()
        .await
        .expect(200);
    assert_eq!(waiting(&app), 0);
}

#[tokio::test]
async fn an_edited_due_date_is_the_one_that_counts() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let url = json!({"url": receiver.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, url).await.expect(200);
    let edit = async |date: Value| {
        let edit = json!({"decisionBy": date});
        let _ = app.put(&ada, &task.path, &edit).await.expect(200);
        app.value("SELECT string_agg(to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), ' ') AS value FROM due_dates")
    };
    let (later, latest) = (after(600), after(1_200));
    assert_eq!(edit(json!(later)).await, Some(later));
    assert_eq!(edit(json!(latest)).await, Some(latest.clone()));
    assert_eq!(edit(Value::Null).await, None);
    assert_eq!(edit(json!(latest)).await, Some(latest.clone()));
    // An edit of something else changes nothing.
    let _ = app
        .put(&ada, &task.path, &json!({"title": "Another"}))
        .await
        .expect(200);
    assert_eq!(waiting(&app), 1);

    let passed = after(-60);
    assert_eq!(edit(json!(passed)).await, Some(passed));
    // From now on, what is due is gone soon.
    let _worker = worker(&app).await;
    assert_eq!(statuses(&receiver.wait_for_calls(1).await), ["due"]);
    wait_for_waiting(&app, 0).await;
    // It was told of a later date.
    assert_eq!(edit(json!(after(-120))).await, None);
    let new = after(6);
    assert_eq!(edit(json!(new)).await, Some(new.clone()));
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!(calls[1].json()["decisionBy"], new);
    assert_ne!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    let shown = settled(&app, &ada, &task, 2).await;
    assert_eq!(shown, ["sent", "due sent", "due sent"]);
}

#[tokio::test]
async fn a_webhook_that_is_registered_after_the_date_is_told_at_once() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let (late, plugin) = (accepting(), accepting());
    let date = json!({"decisionBy": "2001-01-01 00:00:00"});
    let task = app.create(&ada, date).await;
    let _worker = worker(&app).await;
    let more = json!({"url": late.url("/"), "events": ["due"]});
    let _ = register(&app, &ada, PATH, &task, more).await.expect(200);
    let more = json!({"url": plugin.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, more).await.expect(200);
    assert_eq!(statuses(&plugin.wait_for_calls(1).await), ["due"]);
    assert_eq!(statuses(&late.wait_for_calls(1).await), ["due"]);
    wait_for_waiting(&app, 0).await;
    assert_eq!(app.count("all_deliveries"), 2);
    // After the decision there is nothing but the decision.
    let _ = app.approve(&ada, &task).await.expect(200);
    let more = json!({"url": plugin.url("/"), "events": ["due", "rejected"]});
    let _ = register(&app, &ada, PLUGIN, &task, more).await.expect(200);
    assert_eq!(waiting(&app), 0);
    assert_eq!(
        statuses(&plugin.wait_for_calls(2).await),
        ["due", "approved"]
    );
    assert_eq!(app.count("all_deliveries"), 3);
}

#[tokio::test]
async fn several_workers_add_each_delivery_once() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let date = json!({"decisionBy": after(-1)});
    let tasks = join_all((0..150).map(|_| app.create(&ada, date.clone()))).await;
    let webhooks = tasks.iter().flat_map(|task| {
        let url = json!({"url": receiver.url(&format!("/{}", task.id))});
        (0..2).map(move |_| (task, url.clone()))
    });
    let registered = webhooks.map(|(task, url)| register(&app, &ada, PLUGIN, task, url));
    let registered = join_all(registered).await;
    assert!(registered.iter().all(|reply| reply.status == 200));
    assert_eq!(waiting(&app), 300);
    // They became due while no worker ran.
    let workers = join_all((0..3).map(|_| worker(&app))).await;
    let _ = receiver.wait_for_calls(300).await;
    wait_for_waiting(&app, 0).await;
    assert_eq!(app.count("all_deliveries WHERE due_at IS NOT NULL"), 300);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
    let calls = receiver.calls();
    let ids: HashSet<_> = calls
        .iter()
        .map(|call| call.header("webhook-id").to_owned())
        .collect();
    assert_eq!((calls.len(), ids.len()), (300, 300));
}

#[tokio::test]
async fn a_task_is_due_before_it_is_decided_or_not_at_all() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let _workers = [worker(&app).await, worker(&app).await];
    let tasks = join_all((0..60).map(|_| app.create(&ada, json!({})))).await;
    let decided = tasks.iter().enumerate().map(async |(number, task)| {
        let url = json!({"url": receiver.url("/")});
        let _ = register(&app, &ada, PLUGIN, task, url).await.expect(200);
        let edit = json!({"decisionBy": after(-1)});
        let _ = app.put(&ada, &task.path, &edit).await.expect(200);
        // Around the moment at which a worker looks.
        tokio::time::sleep(Duration::from_millis(number as u64 * 25)).await;
        let _ = app.approve(&ada, task).await.expect(200);
    });
    let _ = join_all(decided).await;
    wait_for_waiting(&app, 0).await;
    let decisions = "all_deliveries WHERE due_at IS NULL";
    assert_eq!(app.count(decisions), 60);
    let due = app.count("all_deliveries WHERE due_at IS NOT NULL");
    let late = "all_deliveries JOIN people_task.task_states USING (task_id)
        WHERE due_at IS NOT NULL AND all_deliveries.created > decision_made";
    assert_eq!(app.count(late), 0);
    eventually("all calls", async || {
        (app.count("deliveries") == 0).then_some(())
    })
    .await;
    assert_eq!(app.count("webhooks WHERE status = 'sent'"), 60);
    assert_eq!(receiver.calls().len() as i64, 60 + due);
}

#[tokio::test]
async fn a_task_that_another_transaction_holds_is_due_afterwards() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let date = json!({"decisionBy": after(-1)});
    let [held, free] = [
        app.create(&ada, date.clone()).await,
        app.create(&ada, date).await,
    ];
    for task in [&held, &free] {
        let url = json!({"url": receiver.url(&format!("/{}", task.id))});
        let _ = register(&app, &ada, PLUGIN, task, url).await.expect(200);
    }
    let mut holder = app.database.admin();
    let hold = format!(
        "BEGIN; SELECT FROM people_task.task_states WHERE task_id = '\\x{}' FOR UPDATE",
        held.id
    );
    holder.batch_execute(&hold).unwrap();
    let _worker = worker(&app).await;
    let calls = receiver.wait_for_calls(1).await;
    assert_eq!(calls[0].path, format!("/{}", free.id));
    assert_eq!(waiting(&app), 1);
    holder.batch_execute("COMMIT").unwrap();
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!(calls[1].path, format!("/{}", held.id));
}

#[tokio::test]
async fn the_status_of_a_webhook_is_about_its_newest_event() {
    let app = Fixture::start_with_broker(&[]).await;
    let receiver = Receiver::start(|before| {
        // The third call is the last attempt of its delivery.
        CannedResponse::status(if before < 2 { 200 } else { 410 })
    });
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let date = json!({"decisionBy": after(-1)});
    let task = app.create(&ada, date).await;
    let url = json!({"url": receiver.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, url).await.expect(200);
    let first = worker(&app).await;
    assert_eq!(settled(&app, &ada, &task, 1).await, ["sent", "due sent"]);
    assert!(first.stop(STOP_TIMEOUT).await);
    let status = async || {
        let webhooks = app.get(&ada, &format!("{}/webhooks", task.path)).await;
        webhooks.json[0]["status"].clone()
    };
    let _ = app.approve(&ada, &task).await.expect(200);
    assert_eq!(status().await, "pending");
    let second = worker(&app).await;
    let shown = settled(&app, &ada, &task, 2).await;
    assert_eq!(shown, ["sent", "due sent", "approved sent"]);
    // What is sent again stays what it was.
    let deliveries = app.get(&ada, &format!("{}/deliveries", task.path)).await;
    let deliveries = deliveries.json.as_array().unwrap();
    let due = deliveries
        .iter()
        .find(|delivery| delivery["taskStatus"] == "due");
    let id = due.unwrap()["id"].as_str().unwrap();
    let post = async |action: &str| {
        let request = app
            .http
            .post(&format!("/people-task/deliveries/{id}/{action}"));
        request.bearer(&root.token).send().await.expect(200)
    };
    assert_eq!(post("redeliver").await.json["taskStatus"], "due");
    assert_eq!(status().await, "sent");
    let calls = receiver.wait_for_calls(3).await;
    assert_eq!(statuses(&calls), ["due", "approved", "due"]);
    assert_eq!(calls[2].json()["decisionMade"], Value::Null);
    assert_eq!(calls[0].header("webhook-id"), calls[2].header("webhook-id"));
    let shown = settled(&app, &ada, &task, 2).await;
    assert_eq!(shown, ["sent", "due fail", "approved sent"]);
    assert!(second.stop(STOP_TIMEOUT).await);
    let _ = post("redeliver").await;
    assert_eq!(post("cancel").await.json["status"], "fail");
    assert_eq!(status().await, "sent");
}
