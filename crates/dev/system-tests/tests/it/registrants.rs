//! What the people-task service learns of changes of users.

use serde_json::json;
use testkit::eventually;

use crate::harness::System;

const ADA: &str = "ada@example.com";
const GRACE: &str = "grace@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn the_webhooks_of_a_deactivated_user_wait_until_the_account_is_active_again() {
    let mut system = System::start().await;
    let (ada, grace) = (system.sign_up(ADA).await, system.sign_up(GRACE).await);
    let id = system.user_id(ADA).await;
    let task = system.create_task(&ada, ADA, GRACE).await;
    system.register_webhook(&ada, &task.id, "waits").await;

    // The report is made although the worker that makes it was down.
    system.stop_workers().await;
    set_active(&system, &id, false).await;
    system.start_workers().await;
    eventually("the change to be reported", async || {
        let rows = system.database.rows_that_hold("people_task", &id);
        let mut rows = rows.iter();
        rows.any(|row| row.starts_with("changed_users: "))
            .then_some(())
    })
    .await;
    let path = format!("/people-task/tasks/{}/approve", task.id);
    let _ = system.put(&path, &grace, &json!({})).await;
    let path = format!("/people-task/tasks/{}/deliveries", task.id);
    eventually("the delivery to wait", async || {
        let deliveries = system.get(&path, &system.admin).await;
        (deliveries.json[0]["suspended"] == true).then_some(())
    })
    .await;

    set_active(&system, &id, true).await;
    let call = system.wait_for_webhook("waits").await;
    assert_eq!(call["body"]["status"], "approved");
    system.stop().await;
}

async fn set_active(system: &System, id: &str, active: bool) {
    let path = format!("/users/{id}");
    let body = json!({ "isActive": active });
    let _ = system.put(&path, &system.admin, &body).await;
}
