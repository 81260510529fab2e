//! The Appmixer plugin paths, which the current approval component calls.

use futures_util::future::join_all;
use serde_json::json;
use testkit::Reply;

use crate::fixture::{DEFAULT_FIELDS, Fixture, Task, User, next_page};

const PREFIX: &str = "/plugins/appmixer/utils/tasks";

fn with<'a>(fields: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut all = [fields, more].concat();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn task_responses_also_have_task_id() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let tasks = format!("{PREFIX}/tasks");
    let body =
        json!({"title": "t", "requester": "ada@example.com", "approver": "grace@example.com"});
    let request = app.http.post(&tasks).bearer(&ada.token);
    let created = request.json(&body).send().await.expect(200);
    let more = ["taskId", "public", "approverSecret", "requesterSecret"];
    assert_eq!(created.fields(), with(&DEFAULT_FIELDS, &more));
    assert_eq!(created.json["taskId"], created.json["id"]);

    let task = format!("{tasks}/{}", created.text_of("taskId"));
    let read = app.get(&ada, &task).await.expect(200);
    assert_eq!(read.fields(), with(&DEFAULT_FIELDS, &["taskId"]));
    let edited = app.put(&ada, &task, &json!({"title": "u"})).await;
    assert_eq!(
        edited.expect(200).fields(),
        with(&DEFAULT_FIELDS, &["taskId"])
    );
    let list = app.get(&ada, &tasks).await.expect(200);
    assert_eq!(list.json[0]["taskId"], created.json["id"]);
    let count = app.get(&ada, &format!("{PREFIX}/tasks-count")).await;
    assert_eq!(count.expect(200).json, json!({"count": 1}));
}

#[tokio::test]
async fn a_webhook_is_registered_and_deleted_under_the_prefix() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let webhooks = format!("{PREFIX}/webhooks");
    let request = app.http.post(&webhooks).bearer(&ada.token);
    let webhook = request.json(&body).send().await.expect(200);
    let fields = ["id", "status", "taskId", "url", "webhookId"];
    assert_eq!(webhook.fields(), fields);
    assert_eq!(webhook.json["webhookId"], webhook.json["id"]);
    assert_eq!(app.count("webhooks WHERE with_task_id"), 1);

    let path = format!("{webhooks}/{}", webhook.text_of("id"));
    let request = app.http.delete(&path).bearer(&ada.token);
    assert_eq!(request.send().await.expect(200).text, "{}");
}

async fn register(app: &Fixture, by: &User, task: &Task) -> Reply {
    let path = format!("{PREFIX}/webhooks");
    let body = json!({"taskId": task.id, "url": "http://127.0.0.1:9/"});
    let request = app.http.post(&path).bearer(&by.token);
    request.json(&body).send().await
}

#[tokio::test]
async fn a_webhook_for_a_decided_task_gets_the_decision_at_once() {
    let app = Fixture::start().await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let task = app.create(&ada, json!({})).await;
    let _ = app.approve(&ada, &task).await.expect(200);
    let webhook = register(&app, &ada, &task).await.expect(200);
    assert_eq!(webhook.json["status"], "pending");
    let deliveries = app.get(&ada, &format!("{}/deliveries", task.path)).await;
    let deliveries = deliveries.expect(200).json;
    assert_eq!(deliveries.as_array().map(Vec::len), Some(1));
    assert_eq!(deliveries[0]["webhookId"], webhook.json["id"]);
    assert_eq!(deliveries[0]["taskStatus"], "approved");
    assert_eq!(deliveries[0]["status"], "pending");
    assert_eq!(app.count("deliveries WHERE host = '127.0.0.1'"), 1);

    register(&app, &eve, &task)
        .await
        .expect_problem(404, "not-found");
    for _ in 1..20 {
        let _ = register(&app, &ada, &task).await.expect(200);
    }
    let reply = register(&app, &ada, &task).await;
    reply.expect_problem(409, "too-many-webhooks");
    assert_eq!(app.count("deliveries"), 20);
}

#[tokio::test]
async fn every_webhook_that_is_registered_during_the_decision_has_one_delivery() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for _ in 0..10 {
        let task = app.create(&ada, json!({})).await;
        let registering = join_all((0..6).map(|_| register(&app, &ada, &task)));
        let (registered, decided) = tokio::join!(registering, app.approve(&ada, &task));
        let _ = decided.expect(200);
        for reply in registered {
            let _ = reply.expect(200);
        }
    }
    assert_eq!(app.count("webhooks"), 60);
    assert_eq!(app.count("deliveries"), 60);
}

#[tokio::test]
async fn a_secret_in_the_body_decides_under_the_prefix() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let path = format!("{PREFIX}/tasks/{}", task.id);
    let secret = json!({"secret": task.approver_secret});
    let request = app.http.put(&format!("{path}/approve")).json(&secret);
    let approved = request.send().await.expect(200);
    assert_eq!(approved.json["status"], "approved");
    assert_eq!(approved.fields(), with(&DEFAULT_FIELDS, &["taskId"]));
    let reject = app.http.put(&format!("{path}/reject")).bearer(&ada.token);
    let reply = reject.send().await;
    reply.expect_problem(409, "task-already-resolved");
}

#[tokio::test]
async fn other_paths_under_the_prefix_are_not_found() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let id = &task.id;
    for path in ["", "/", "/tasks/", "/x"].map(|rest| format!("{PREFIX}{rest}")) {
        app.get(&ada, &path).await.expect_problem(404, "not-found");
    }
    for path in [
        format!("tasks/{id}/webhooks"),
        format!("tasks/{id}/deliveries"),
    ] {
        let reply = app.get(&ada, &format!("{PREFIX}/{path}")).await;
        reply.expect_problem(404, "not-found");
    }
    // A webhook is deleted by DELETE only.
    let reply = app.get(&ada, &format!("{PREFIX}/webhooks/{id}")).await;
    reply.expect_problem(405, "method-not-allowed");
    assert_eq!(reply.header("allow"), Some("DELETE"));
    let reply = app
        .http
        .delete(&format!("{PREFIX}/tasks"))
        .bearer(&ada.token)
        .send()
        .await;
    reply.expect_problem(405, "method-not-allowed");
    assert_eq!(reply.header("allow"), Some("GET, POST"));
}

#[tokio::test]
async fn links_and_parameters_stay_under_the_prefix() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for title in ["a", "b", "c"] {
        let _ = app.create(&ada, json!({"title": title})).await;
    }
    let mut path = Some(format!(
        "{PREFIX}/tasks?limit=2&sort=title:1&projection=-title"
    ));
    let mut seen = 0;
    while let Some(page) = path {
        assert!(page.starts_with(PREFIX), "{page}");
        let reply = app.get(&ada, &page).await.expect(200);
        for task in reply.json.as_array().unwrap() {
            assert!(task.get("title").is_none());
            assert_eq!(task["id"], task["taskId"]);
            seen += 1;
        }
        path = next_page(&reply);
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn the_dashboard_url_is_a_setting() {
    let url = "https://countersign.example.com/tasks";
    let app = Fixture::start_with(&[("PEOPLE_TASKS_DASHBOARD_URL", url)]).await;
    let ada = app.user("ada@example.com");
    let path = format!("{PREFIX}/dashboard-url");
    let reply = app.get(&ada, &path).await.expect(200);
    assert_eq!(reply.json, json!({"dashboardUrl": url}));
    app.http
        .get(&path)
        .send()
        .await
        .expect_problem(401, "token-missing");
    app.get(&ada, "/people-task/dashboard-url")
        .await
        .expect_problem(404, "not-found");
}
