//! Deleting a user ends with nothing left but the ticket.

use std::sync::Mutex;

use serde_json::json;
use testkit::eventually;

use crate::harness::System;

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_user_leaves_nothing_but_the_ticket() {
    let system = System::start().await;
    let token = system.sign_up("leaver@example.com").await;
    let other = system.sign_up("stayer@example.com").await;
    let id = system.user_id("leaver@example.com").await;
    let own = system
        .create_task(&token, "leaver@example.com", "stayer@example.com")
        .await;
    let asked_of = system
        .create_task(&other, "stayer@example.com", "leaver@example.com")
        .await;
    system.register_webhook(&token, &own.id, "own").await;
    let _ = system
        .http
        .post("/user/forgot-password")
        .json(&json!({"email": "leaver@example.com"}))
        .send()
        .await
        .expect(200);

    let deleted = system
        .http
        .delete(&format!("/users/{id}"))
        .bearer(&system.admin)
        .send()
        .await
        .expect(200);
    assert_eq!(deleted.fields(), ["ticket"]);
    let ticket = deleted.text_of("ticket");
    let status_path = format!("/users/{id}/delete-status/{ticket}");
    assert_eq!(deleted.header("location"), Some(status_path.as_str()));

    let progress = Mutex::new((0, None));
    let last = eventually("the deletion to end", || async {
        let status = system
            .http
            .get(&status_path)
            .bearer(&system.admin)
            .send()
            .await
            .expect(200);
        let (done, total) = (&status.json["stepsDone"], &status.json["stepsTotal"]);
        let mut progress = progress.lock().unwrap();
        assert!(done.as_i64() >= Some(progress.0), "progress never falls");
        progress.0 = done.as_i64().unwrap();
        assert_eq!(progress.1.get_or_insert_with(|| total.clone()), total);
        (status.json["status"] != "in-progress").then_some(status)
    })
    .await;
    assert_eq!(last.json["status"], "completed", "{}", last.text);
    assert_eq!(last.json["stepsDone"], last.json["stepsTotal"]);
    assert_eq!(last.json["stepsTotal"], 8);

    for (schema, needle, allowed) in [
        ("users", id.as_str(), &["deletions: "][..]),
        ("users", "leaver@example.com", &[]),
        ("people_task", id.as_str(), &[]),
        ("people_task", "leaver@example.com", &["tasks: "]),
    ] {
        for row in system.database.rows_that_hold(schema, needle) {
            assert!(
                allowed.iter().any(|table| row.starts_with(table)),
                "{needle} in {row}"
            );
        }
    }
    system
        .http
        .get(&format!("/users/{id}"))
        .bearer(&system.admin)
        .send()
        .await
        .expect_problem(404, "not-found");
    system
        .http
        .get(&format!("/people-task/tasks/{}", own.id))
        .bearer(&other)
        .send()
        .await
        .expect_problem(404, "not-found");
    let kept = system
        .http
        .get(&format!("/people-task/tasks/{}", asked_of.id))
        .bearer(&other)
        .send()
        .await
        .expect(200);
    assert_eq!(kept.text_of("approver"), "leaver@example.com");
    system
        .http
        .get("/user")
        .bearer(&token)
        .send()
        .await
        .expect_problem(401, "token-revoked");
    system.stop().await;
}
