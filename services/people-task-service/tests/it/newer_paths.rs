//! The original's newer paths, by which today's approval component calls.

use serde_json::json;

use crate::app::{App, SEVEN, next_page};

const PREFIX: &str = "/plugins/appmixer/utils/tasks";

fn with<'a>(fields: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut all = [fields, more].concat();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn the_component_works_unmodified() {
    let app = App::start().await;
    let ada = app.user("ada@example.com");
    let bearer = |request: testkit::Request| request.bearer(&ada.token);
    let body =
        json!({"title": "t", "requester": "ada@example.com", "approver": "grace@example.com"});
    let tasks = format!("{PREFIX}/tasks");
    let created = bearer(app.http.post(&tasks))
        .json(&body)
        .send()
        .await
        .expect(200);
    let more = ["taskId", "public", "approverSecret", "requesterSecret"];
    assert_eq!(created.fields(), with(&SEVEN, &more));
    assert_eq!(created.json["taskId"], created.json["id"]);
    let task = format!("{tasks}/{}", created.text_of("taskId"));

    let hook = json!({"taskId": created.json["taskId"], "url": "http://127.0.0.1:9/"});
    let webhooks = format!("{PREFIX}/webhooks");
    let webhook = bearer(app.http.post(&webhooks))
        .json(&hook)
        .send()
        .await
        .expect(200);
    assert_eq!(
        webhook.fields(),
        ["id", "status", "taskId", "url", "webhookId"]
    );
    assert_eq!(webhook.json["webhookId"], webhook.json["id"]);
    assert_eq!(app.count("webhooks WHERE with_task_id"), 1);

    let read = bearer(app.http.get(&task)).send().await.expect(200);
    assert_eq!(read.fields(), with(&SEVEN, &["taskId"]));
    let edited = bearer(app.http.put(&task))
        .json(&json!({"title": "u"}))
        .send()
        .await
        .expect(200);
    assert_eq!(edited.fields(), with(&SEVEN, &["taskId"]));
    let list = bearer(app.http.get(&tasks)).send().await.expect(200);
    assert_eq!(list.json[0]["taskId"], created.json["id"]);
    let count = bearer(app.http.get(&format!("{PREFIX}/tasks-count")))
        .send()
        .await
        .expect(200);
    assert_eq!(count.json, json!({"count": 1}));

    let secret = json!({"secret": created.json["approverSecret"]});
    let approved = app
        .http
        .put(&format!("{task}/approve"))
        .json(&secret)
        .send()
        .await
        .expect(200);
    assert_eq!(approved.json["status"], "approved");
    assert_eq!(approved.fields(), with(&SEVEN, &["taskId"]));
    let again = bearer(app.http.put(&format!("{task}/reject"))).send().await;
    again.expect_problem(409, "task-already-resolved");

    let path = format!("{webhooks}/{}", webhook.text_of("id"));
    let deleted = bearer(app.http.delete(&path)).send().await.expect(200);
    assert_eq!(deleted.text, "{}");
}

#[tokio::test]
async fn nothing_else_exists_under_the_prefix() {
    let app = App::start().await;
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
    let app = App::start().await;
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
async fn the_dashboard_is_where_the_operator_says() {
    let url = "https://countersign.example.com/tasks";
    let app = App::start_with(&[("PEOPLE_TASKS_DASHBOARD_URL", url)]).await;
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
