//! What the gateway needs of the service so that callers can wait for the end of a task.

use std::collections::HashSet;

use serde_json::{Value, json};
use testkit::{Reply, eventually};

use crate::fixture::{Fixture, Task, User, WithSecret as _};

async fn get(app: &Fixture, by: &User, task: &Task, query: &str) -> Reply {
    app.get(by, &format!("{}?{query}", task.path)).await
}

/// What a listener is told until the service stops.
async fn feed(app: &Fixture, query: &str, act: impl AsyncFn()) -> Vec<Value> {
    let listening = tokio::spawn(
        app.http
            .get(&format!("/internal/tasks/ended{query}"))
            .send(),
    );
    // It begins before anything happens.
    eventually("the feed to begin", || async {
        let reads = "SELECT count(*)::text AS value FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE '%array_agg(subject_id)%' AND pid <> pg_backend_pid()";
        (app.value(reads)? != "0").then_some(())
    })
    .await;
    act().await;
    assert!(app.stop().await);
    let reply = listening.await.unwrap();
    let lines = reply
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[tokio::test]
async fn only_a_pending_task_is_waited_for() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (query, expected) in [
        ("wait=50", Some("50")),
        ("wait=1", Some("1")),
        ("wait=0", None),
        ("wait=", None),
        ("", None),
    ] {
        let reply = get(&app, &ada, &task, query).await.expect(200);
        assert_eq!(reply.header("x-may-wait"), expected, "{query}");
    }
    let _ = app.approve(&ada, &task).await.expect(200);
    let reply = get(&app, &ada, &task, "wait=50").await.expect(200);
    assert_eq!(reply.header("x-may-wait"), None);
}

#[tokio::test]
async fn other_times_are_an_invalid_field() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for wait in ["51", "-1", "1.5", "30s", "+"] {
        let reply = get(&app, &ada, &task, &format!("wait={wait}")).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["wait"], "{wait}");
    }
    let reply = get(&app, &ada, &task, "wait=51&include=x").await;
    assert_eq!(reply.bad_fields(), ["include", "wait"]);
}

#[tokio::test]
async fn the_feed_tells_each_task_that_ends_once_and_goes_on_at_a_cursor() {
    let mut app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(app.create(&ada, json!({})).await);
    }
    let told = |lines: &[Value]| -> Vec<String> {
        let told = lines
            .iter()
            .flat_map(|line| line["tasks"].as_array().unwrap());
        told.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let lines = feed(&app, "", async || {
        let _ = app.approve(&ada, &tasks[0]).await.expect(200);
        let reject = app.http.put(&format!("{}/reject", tasks[1].path));
        let _ = reject
            .secret(&tasks[1].approver_secret)
            .send()
            .await
            .expect(200);
        let edit = json!({"title": "Buy a chair"});
        let _ = app.put(&ada, &tasks[2].path, &edit).await.expect(200);
    })
    .await;
    let mut all = told(&lines);
    let ids: HashSet<_> = all.iter().collect();
    assert_eq!(ids.len(), all.len(), "a task was told twice");

    app.restart_with(&[]).await;
    let _ = app.approve(&ada, &tasks[3]).await.expect(200);
    let cursor = lines.last().unwrap()["cursor"].as_str().unwrap();
    all.extend(told(
        &feed(&app, &format!("?cursor={cursor}"), async || ()).await,
    ));
    let ended = |task: &Task| all.contains(&task.id);
    let ended: Vec<_> = tasks.iter().map(ended).collect();
    assert_eq!(ended, [true, true, false, true]);
}
