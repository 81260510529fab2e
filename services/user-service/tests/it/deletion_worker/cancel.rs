//! Cancelling races with the step in progress, with completion, and with itself.

use std::time::Duration;

use demo_engine::Control;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Reply, eventually};
use values::{FromText as _, UserId};

use crate::deletion_worker::end_to_end::{System, text};

/// A user who is being deleted.
struct DeletedUser {
    id: String,
    /// The path of the user.
    user: String,
    /// The path of the ticket.
    ticket: String,
}

impl System {
    async fn deleted_user(&self, admin: &str, number: usize) -> DeletedUser {
        let body =
            json!({"email": format!("user{number}@example.com"), "password": "correct horse"});
        let reply = self.http.post("/user").json(&body).send().await.expect(200);
        let id = text(&reply.json, "/user/id");
        let user = format!("/users/{id}");
        let reply = self.http.delete(&user).bearer(admin).send().await;
        let ticket = reply.expect(200).text_of("ticket");
        DeletedUser {
            ticket: format!("{user}/delete-status/{ticket}"),
            id,
            user,
        }
    }

    async fn status(&self, admin: &str, deleted_user: &DeletedUser) -> Value {
        let request = self.http.get(&deleted_user.ticket).bearer(admin);
        request.send().await.expect(200).json
    }

    async fn cancel(&self, admin: &str, deleted_user: &DeletedUser) -> Reply {
        let reply = self
            .http
            .delete(&deleted_user.ticket)
            .bearer(admin)
            .send()
            .await;
        match reply.status {
            200 => assert_eq!(reply.text_of("status"), "cancelled"),
            _ => reply.expect_problem(409, "deletion-ended"),
        }
        reply
    }
}

#[actix_web::test]
async fn either_the_cancel_or_the_completion_wins() {
    let system = System::start(Control::default()).await;
    let admin = system.admin().await;
    let (mut cancelled, mut completed) = (0, 0);
    for number in 0..20 {
        let deleted_user = system.deleted_user(&admin, number).await;
        // From before the first step to after the last one, whose end the last round waits for.
        tokio::time::sleep(Duration::from_millis(2 * (number * number) as u64)).await;
        if number == 19 {
            system.ended(&admin, &deleted_user.ticket).await;
        }
        let cancel_status = system.cancel(&admin, &deleted_user).await.status;
        let status = system.status(&admin, &deleted_user).await;
        let account = system
            .http
            .get(&deleted_user.user)
            .bearer(&admin)
            .send()
            .await;
        if cancel_status == 200 {
            cancelled += 1;
            assert_eq!(status["status"], "cancelled");
            assert_eq!(account.expect(200).json["isActive"], false);
            assert!(status["stepsDone"].as_i64() < status["stepsTotal"].as_i64());
        } else {
            completed += 1;
            assert_eq!(status["status"], "completed");
            assert_eq!(status["stepsDone"], status["stepsTotal"]);
            account.expect_problem(404, "not-found");
        }
    }
    assert!(cancelled > 0 && completed > 0, "{cancelled} {completed}");
    system.stop().await;
}

#[actix_web::test]
async fn after_a_cancel_no_step_is_counted_or_started() {
    let system = System::start(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let admin = system.admin().await;
    // A cancel may also come between two steps; then the second one is not started.
    for attempt in 0..5 {
        if is_cancelled_during_a_step(&system, &admin, attempt).await {
            system.stop().await;
            return;
        }
    }
    panic!("no cancel came during a step");
}

/// Cancels a deletion when its first step is done; returns whether that was while the engine was called for another one.
async fn is_cancelled_during_a_step(system: &System, admin: &str, attempt: usize) -> bool {
    let deleted_user = system.deleted_user(admin, 2 * attempt).await;
    eventually("the second step", || async {
        let status = system.status(admin, &deleted_user).await;
        (status.get("stepsDone")?.as_u64()? >= 1).then_some(())
    })
    .await;
    let cancelled = system.cancel(admin, &deleted_user).await;
    if cancelled.status != 200 {
        return false;
    }
    let done = cancelled.json.get("stepsDone").and_then(Value::as_u64);
    let done = done.unwrap();
    // Another deletion runs all its steps in the meantime.
    let other = system.deleted_user(admin, 2 * attempt + 1).await;
    eventually("the end of the other deletion", || async {
        let status = system.status(admin, &other).await;
        (status.get("status")? == "completed").then_some(())
    })
    .await;
    let expected = json!({"status": "cancelled", "stepsDone": done, "stepsTotal": 8});
    assert_eq!(system.status(admin, &deleted_user).await, expected);
    let user = UserId::from_text(&deleted_user.id).unwrap();
    let calls = system.fixture.engine_calls(user).await.len() as u64;
    // The first five steps are the engine's.
    let done = done.min(5);
    assert!(calls == done || calls == done + 1, "{calls} {done}");
    calls > done
}

#[actix_web::test]
async fn only_one_of_concurrent_cancels_succeeds() {
    let system = System::start(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let admin = system.admin().await;
    let deleted_user = system.deleted_user(&admin, 0).await;
    let cancels = (0..8).map(|_| system.cancel(&admin, &deleted_user));
    let replies = join_all(cancels).await;
    let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    system.stop().await;
}
