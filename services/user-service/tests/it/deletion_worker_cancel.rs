//! Cancelling races with the step in progress, with completion, and with itself.

use std::time::Duration;

use demo_engine::Control;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::eventually;
use values::{FromText as _, UserId};

use crate::deletion_worker_together::{House, text};

/// Somebody who is being deleted: id, path of the user, path of the ticket.
struct Leaver {
    id: String,
    user: String,
    ticket: String,
}

impl House {
    async fn leaver(&self, admin: &str, number: usize) -> Leaver {
        let body =
            json!({"email": format!("leaver{number}@example.com"), "password": "correct horse"});
        let reply = self.http.post("/user").json(&body).send().await.expect(200);
        let id = text(&reply.json, "/user/id");
        let user = format!("/users/{id}");
        let reply = self.http.delete(&user).bearer(admin).send().await;
        let ticket = reply.expect(200).text_of("ticket");
        Leaver {
            ticket: format!("{user}/delete-status/{ticket}"),
            id,
            user,
        }
    }

    async fn status(&self, admin: &str, leaver: &Leaver) -> Value {
        let request = self.http.get(&leaver.ticket).bearer(admin);
        request.send().await.expect(200).json
    }

    async fn cancel(&self, admin: &str, leaver: &Leaver) -> u16 {
        let reply = self.http.delete(&leaver.ticket).bearer(admin).send().await;
        match reply.status {
            200 => assert_eq!(reply.text_of("status"), "cancelled"),
            _ => reply.expect_problem(409, "deletion-ended"),
        }
        reply.status
    }
}

#[actix_web::test]
async fn of_a_cancel_and_a_completion_at_the_same_moment_one_wins_and_both_tell_so() {
    let house = House::start(Control::default()).await;
    let admin = house.admin().await;
    let (mut cancelled, mut completed) = (0, 0);
    for number in 0..30 {
        let leaver = house.leaver(&admin, number).await;
        // From before the first step to after the last one.
        tokio::time::sleep(Duration::from_millis(7 * number as u64)).await;
        let answer = house.cancel(&admin, &leaver).await;
        let status = house.status(&admin, &leaver).await;
        let account = house.http.get(&leaver.user).bearer(&admin).send().await;
        if answer == 200 {
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
    house.stop().await;
}

#[actix_web::test]
async fn a_step_in_progress_is_not_counted_after_a_cancel_and_the_next_one_never_begins() {
    let house = House::start(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let admin = house.admin().await;
    // A cancel may also come in the moment between two steps, and then the second one never begins.
    for attempt in 0..5 {
        if cancel_after_a_step(&house, &admin, attempt).await == 2 {
            house.stop().await;
            return;
        }
    }
    panic!("no cancel came during a step");
}

/// Cancels a deletion when its first step is done; how many steps the engine was asked for by then.
async fn cancel_after_a_step(house: &House, admin: &str, attempt: usize) -> usize {
    let leaver = house.leaver(admin, 2 * attempt).await;
    eventually("the second step", || async {
        let status = house.status(admin, &leaver).await;
        (status.get("stepsDone")? == 1).then_some(())
    })
    .await;
    assert_eq!(house.cancel(admin, &leaver).await, 200);
    // Another deletion goes through all of its steps in the time that the next ones would have had.
    let other = house.leaver(admin, 2 * attempt + 1).await;
    eventually("the end of the other deletion", || async {
        let status = house.status(admin, &other).await;
        (status.get("status")? == "completed").then_some(())
    })
    .await;
    let expected = json!({"status": "cancelled", "stepsDone": 1, "stepsTotal": 8});
    assert_eq!(house.status(admin, &leaver).await, expected);
    let user = UserId::from_text(&leaver.id).unwrap();
    let calls = house.stage.engine_calls(user).await.len();
    assert!(calls == 1 || calls == 2, "{calls}");
    calls
}

#[actix_web::test]
async fn of_many_cancels_one_is_the_one() {
    let house = House::start(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let admin = house.admin().await;
    let leaver = house.leaver(&admin, 0).await;
    let cancels = (0..8).map(|_| house.cancel(&admin, &leaver));
    let mut answers = join_all(cancels).await;
    answers.sort_unstable();
    assert_eq!(answers, [200, 409, 409, 409, 409, 409, 409, 409]);
    house.stop().await;
}
