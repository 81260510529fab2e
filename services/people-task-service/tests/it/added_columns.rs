//! A later version may add columns while this one runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use testkit::eventually;

use crate::fixture::{Fixture, Task, User};

/// Uses the tables through the service.
async fn work(fixture: &Fixture, user: &User) {
    let task: Task = fixture.create(user, json!({"approver": user.email})).await;
    let webhook = fixture.register(user, &task, "http://127.0.0.1:9/").await;
    assert_eq!(fixture.get(user, &task.path).await.status, 200);
    let edit = json!({"title": "Edited"});
    assert_eq!(fixture.put(user, &task.path, &edit).await.status, 200);
    assert_eq!(fixture.approve(user, &task).await.status, 200);
    for path in [
        "/people-task/tasks?limit=1",
        "/people-task/tasks-count",
        &format!("{}/webhooks", task.path),
        &format!("{}/deliveries", task.path),
        &format!("/people-task/webhooks/{webhook}"),
    ] {
        assert_eq!(fixture.get(user, path).await.status, 200, "{path}");
    }
}

/// Adds a column to each table.
fn add_columns(fixture: &Fixture) {
    for table in [
        "tasks",
        "webhooks",
        "deliveries",
        "task_states",
        "finished_deliveries",
        "audit_log",
    ] {
        fixture.execute(&format!("ALTER TABLE {table} ADD COLUMN later integer"));
    }
}

#[tokio::test]
async fn connections_with_prepared_statements_go_on_when_columns_are_added() {
    // One connection for lists and one for everything else, so that both have prepared every statement.
    let fixture = Fixture::start_with(&[("DATABASE_POOL_SIZE", "2")]).await;
    let user = fixture.user("ada@example.com");
    for _ in 0..3 {
        work(&fixture, &user).await;
    }
    add_columns(&fixture);
    work(&fixture, &user).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_columns_are_added_under_load() {
    let fixture = Arc::new(Fixture::start().await);
    let user = fixture.user("ada@example.com");
    let added = AtomicBool::new(false);
    let client = async || {
        while !added.load(Ordering::Relaxed) {
            work(&fixture, &user).await;
        }
        work(&fixture, &user).await;
    };
    let adding = async {
        // Each client has used every statement.
        eventually("the clients to be at work", async || {
            (fixture.count("audit_log WHERE action = 'task-approved'") >= 20).then_some(())
        })
        .await;
        let migrated = Arc::clone(&fixture);
        tokio::task::spawn_blocking(move || add_columns(&migrated))
            .await
            .unwrap();
        added.store(true, Ordering::Relaxed);
    };
    tokio::join!(client(), client(), client(), client(), adding);
}
