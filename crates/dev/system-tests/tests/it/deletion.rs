//! A deleted user leaves nothing behind but the ticket.

use serde_json::json;
use testkit::{Reply, eventually, lines};

use crate::harness::System;

const LEAVER: &str = "leaver@example.com";
const OTHER: &str = "other@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_user_leaves_nothing_but_the_ticket() {
    let system = System::start().await;
    let token = system.sign_up(LEAVER).await;
    let other = system.sign_up(OTHER).await;
    let id = system.user_id(LEAVER).await;
    let created = system.create_task(&token, LEAVER, OTHER).await;
    let assigned = system.create_task(&other, OTHER, LEAVER).await;
    system.register_webhook(&token, &created.id, "own").await;
    let email = json!({"email": LEAVER});
    let _ = system
        .post_anonymously("/user/forgot-password", &email)
        .await;

    let last = delete_and_wait(&system, &id).await;
    assert_eq!(last.json["status"], "completed", "{}", last.text);
    assert_eq!(last.json["stepsDone"], last.json["stepsTotal"]);
    assert_eq!(last.json["stepsTotal"], 8);

    assert_nothing_left(&system, &id);
    for (path, token, status, code) in [
        (format!("/users/{id}"), &system.admin, 404, "not-found"),
        (
            format!("/people-task/tasks/{}", created.id),
            &other,
            404,
            "not-found",
        ),
        ("/user".to_owned(), &token, 401, "token-revoked"),
    ] {
        let reply = system.http.get(&path).bearer(token).send().await;
        reply.expect_problem(status, code);
    }
    let path = format!("/people-task/tasks/{}", assigned.id);
    let kept = system.get(&path, &other).await;
    assert_eq!(kept.text_of("approver"), LEAVER);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_whose_deletion_was_cancelled_while_tasks_were_deleted_creates_tasks_again() {
    let system = System::start().await;
    let token = system.sign_up(LEAVER).await;
    let id = system.user_id(LEAVER).await;
    let task = system.create_task(&token, LEAVER, OTHER).await;
    // While the task's row is locked, the deletion waits at this step.
    let mut holder = system.database.admin();
    let _ = lines(&mut holder, "BEGIN");
    let hold = "SELECT encode(task_id, 'hex') AS line FROM people_task.task_states FOR UPDATE";
    assert_eq!(lines(&mut holder, hold), [task.id.as_str()]);
    let request = system.http.delete(&format!("/users/{id}"));
    let deleted = request.bearer(&system.admin).send().await.expect(200);
    let ticket = deleted.header("location").unwrap().to_owned();
    eventually("the erasure to begin", || async {
        let erased = system.database.rows_that_hold("people_task", "");
        let mut erased = erased.iter();
        erased
            .any(|row| row.starts_with("erased_users: "))
            .then_some(())
    })
    .await;

    let request = system.http.delete(&ticket).bearer(&system.admin);
    let _ = request.send().await.expect(200);
    drop(holder);
    let path = format!("/users/{id}");
    let active = json!({"isActive": true});
    let _ = system.put(&path, &system.admin, &active).await;
    let reply = system.sign_in(LEAVER, System::PASSWORD).await;
    let token = reply.expect(200).text_of("token");
    let body = json!({"title": "again", "requester": LEAVER, "approver": OTHER});
    eventually("the user to be known as active", || async {
        let request = system.http.post("/people-task/tasks").bearer(&token);
        let reply = request.json(&body).send().await;
        (reply.status == 200).then_some(())
    })
    .await;
    let _ = system
        .get(&format!("/people-task/tasks/{}", task.id), &token)
        .await;
    system.stop().await;
}

/// Deletes a user and returns the last status of the deletion. Fails if the progress decreases.
async fn delete_and_wait(system: &System, id: &str) -> Reply {
    let request = system.http.delete(&format!("/users/{id}"));
    let deleted = request.bearer(&system.admin).send().await.expect(200);
    assert_eq!(deleted.fields(), ["ticket"]);
    let path = format!("/users/{id}/delete-status/{}", deleted.text_of("ticket"));
    assert_eq!(deleted.header("location"), Some(path.as_str()));

    let progress = std::sync::Mutex::new((0, None));
    eventually("the deletion to end", || async {
        let status = system.get(&path, &system.admin).await;
        let (done, total) = (&status.json["stepsDone"], &status.json["stepsTotal"]);
        let mut progress = progress.lock().unwrap();
        assert!(done.as_i64() >= Some(progress.0), "the progress decreased");
        progress.0 = done.as_i64().unwrap();
        assert_eq!(progress.1.get_or_insert_with(|| total.clone()), total);
        (status.json["status"] != "in-progress").then_some(status)
    })
    .await
}

/// Searches every table for the id and the address of the deleted user.
fn assert_nothing_left(system: &System, id: &str) {
    for (schema, text, allowed) in [
        ("users", id, &["deletions: ", "deleted_users: "][..]),
        ("users", LEAVER, &[]),
        ("people_task", id, &[]),
        ("people_task", LEAVER, &["tasks: ", "task_states: "]),
    ] {
        for row in system.database.rows_that_hold(schema, text) {
            let is_allowed = allowed.iter().any(|table| row.starts_with(table));
            assert!(is_allowed, "{text} in {row}");
        }
    }
}
