//! What the deletion worker promises: section 4 of the decisions.

use std::time::Duration;

use auth::SigningKey;
use demo_engine::{Control, ControlChange};
use serde_json::json;
use testkit::eventually;
use user_service::deletions::Step;

use crate::deletion_worker_stage::{REQUEST_ID, Stage};

const EMAIL: &str = "Ada.Lovelace@Example.com";
const GRACE: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn every_step_is_done_in_order_and_counted_and_nothing_of_the_user_stays() {
    let stage = Stage::new().await;
    let (ada, bob) = (stage.user(EMAIL), stage.user("bob@example.com"));
    let worker = stage.worker(&[]).await;
    let job = stage.delete(ada);

    let ended = stage.ended(job).await;
    assert_eq!(ended.status, "completed");
    assert_eq!((ended.steps_done, ended.steps_total), (8, 8));
    assert_eq!(ended.failed_attempts, 0);
    assert!(
        ended.epoch_transaction.is_some(),
        "the feed must tell that the tokens are revoked"
    );
    let calls = stage.engine_calls(ada).await;
    let steps: Vec<_> = calls.iter().map(|(step, _)| step.as_str()).collect();
    assert_eq!(steps, ["stop-flows", "flows", "logs", "accounts", "tokens"]);
    let erasures = stage.people_tasks.calls();
    assert_eq!(erasures.len(), 1);
    assert_eq!(erasures[0].user, ada.to_string());
    assert_eq!(erasures[0].emails, json!([EMAIL.to_lowercase()]));

    let left = stage.rows_of(&ada.to_string());
    assert_eq!(left.len(), 1, "only the job itself knows the id: {left:?}");
    assert!(left[0].starts_with("deletions:"));
    assert_eq!(
        stage.database.rows_that_hold("users", "lovelace"),
        Vec::<String>::new()
    );
    let account = SigningAccount::of(EMAIL);
    assert_eq!(
        stage.database.rows_that_hold("users", &account.0),
        Vec::<String>::new()
    );
    assert_eq!(
        stage
            .database
            .rows_that_hold("users", &SigningAccount::of("bob@example.com").0)
            .len(),
        4
    );
    assert!(
        !stage
            .database
            .rows_that_hold("users", &bob.to_string())
            .is_empty()
    );
    assert!(worker.stop(GRACE).await);
}

#[actix_web::test]
async fn tasks_that_name_the_username_or_an_address_that_is_not_confirmed_are_not_the_users() {
    let stage = Stage::new().await;
    let (ada, eve) = (stage.user("ada@example.com"), stage.user("eve@example.com"));
    stage.sql(&format!(
        "UPDATE users.users SET username = 'victim@example.com', username_key = 'victim@example.com'
         WHERE id = decode('{ada}', 'hex');
         UPDATE users.users SET email_verified = false WHERE id = decode('{eve}', 'hex');"
    ));
    let worker = stage.worker(&[]).await;
    for (user, emails) in [(ada, json!(["ada@example.com"])), (eve, json!([]))] {
        let ended = stage.ended(stage.delete(user)).await;
        assert_eq!(ended.status, "completed");
        let calls = stage.people_tasks.calls();
        let call = calls.iter().find(|call| call.user == user.to_string());
        assert_eq!(call.unwrap().emails, emails);
        assert_eq!(stage.rows_of(&user.to_string()).len(), 1);
    }
    for name in ["victim@example.com", "ada@example.com", "eve@example.com"] {
        assert!(stage.database.rows_that_hold("users", name).is_empty());
    }
    assert!(worker.stop(GRACE).await);
}

/// The hash by which failed sign-ins name an account.
struct SigningAccount(String);

impl SigningAccount {
    fn of(email: &str) -> Self {
        use sha2::{Digest as _, Sha256};
        Self(hex::encode(Sha256::digest(email.to_lowercase())))
    }
}

#[actix_web::test]
async fn the_calls_carry_the_request_that_caused_them() {
    let stage = Stage::new().await;
    let job = stage.delete(stage.user(EMAIL));
    let worker = stage.worker(&[]).await;
    stage.ended(job).await;
    let (request_id, traceparent) = stage.people_tasks.context().unwrap();
    assert_eq!(request_id, REQUEST_ID);
    assert!(
        traceparent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{traceparent}"
    );
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn progress_is_shown_while_the_engine_takes_its_time_and_no_attempt_is_counted() {
    let stage = Stage::with_engine(Control {
        accepted: Duration::from_millis(1_200),
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let worker = stage.worker(&[("DELETE_MAX_ATTEMPTS", "1")]).await;
    let job = stage.delete_by(ada, &[Step::StopFlows, Step::DeleteFlows, Step::DeleteUser]);

    let mut seen = Vec::new();
    eventually("the end of the job", || {
        let job = stage.job(job);
        if seen.last() != Some(&job.steps_done) {
            seen.push(job.steps_done);
        }
        async move { (job.status == "completed").then_some(()) }
    })
    .await;
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(
        seen.contains(&0) && seen.contains(&1),
        "each step took its time: {seen:?}"
    );
    assert_eq!(stage.job(job).failed_attempts, 0);
    let waited = stage
        .engine_calls(ada)
        .await
        .iter()
        .filter(|(_, status)| *status == 202)
        .count();
    assert!(waited >= 2, "the engine said 202 {waited} times");
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_step_that_fails_a_few_times_is_tried_again() {
    let stage = Stage::with_engine(Control {
        fail: 2,
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let worker = stage.worker(&[]).await;
    let job = stage.delete(ada);
    let ended = stage.ended(job).await;
    assert_eq!(ended.status, "completed");
    assert_eq!(
        ended.failed_attempts, 10,
        "two for each of the engine's steps"
    );
    let calls = stage.engine_calls(ada).await;
    let statuses: Vec<_> = calls.iter().take(3).map(|(_, status)| *status).collect();
    assert_eq!(statuses, [500, 500, 200]);
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn an_engine_that_is_down_fails_the_job_and_the_failure_says_which_step_and_why() {
    let stage = Stage::with_engine(Control {
        down: true,
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let worker = stage.worker(&[("DELETE_MAX_ATTEMPTS", "3")]).await;
    let job = stage.delete(ada);

    let ended = stage.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("failed", 0));
    let failure = ended.failure.unwrap();
    assert_eq!(failure["code"], "deletion-step-failed");
    assert_eq!(
        failure["type"],
        "urn:countersign:problem:deletion-step-failed"
    );
    assert_eq!(failure["status"], 502);
    assert_eq!(
        (&failure["step"], &failure["attempts"]),
        (&json!("stop-flows"), &json!(3))
    );
    assert_eq!(failure["requestId"], REQUEST_ID);
    let detail = failure["detail"].as_str().unwrap();
    assert!(detail.contains("the flow engine answered 503"), "{detail}");
    assert!(
        !detail.contains("127.0.0.1"),
        "no address is shown: {detail}"
    );

    // A new deletion starts again, and everything that was done can be done twice.
    stage.engine.change_control(&ControlChange {
        down: Some(false),
        ..ControlChange::default()
    });
    let again = stage.delete(ada);
    assert_eq!(stage.ended(again).await.status, "completed");
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn an_engine_that_cannot_be_reached_is_named_in_the_failure() {
    let stage = Stage::new().await;
    stage.engine.running.stop(GRACE).await;
    let worker = stage.worker(&[("DELETE_MAX_ATTEMPTS", "2")]).await;
    let job = stage.delete(stage.user(EMAIL));
    let failure = stage.ended(job).await.failure.unwrap();
    let detail = failure["detail"].as_str().unwrap();
    assert!(
        detail.contains("the flow engine could not be reached"),
        "{detail}"
    );
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn steps_of_an_engine_that_is_configured_no_longer_fail_with_a_clear_error() {
    let stage = Stage::new().await;
    let worker = stage
        .worker(&[("FLOW_ENGINE_URL", ""), ("DELETE_MAX_ATTEMPTS", "1")])
        .await;
    let job = stage.delete(stage.user(EMAIL));
    let failure = stage.ended(job).await.failure.unwrap();
    assert!(
        failure["detail"]
            .as_str()
            .unwrap()
            .contains("FLOW_ENGINE_URL"),
        "{failure}"
    );
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn without_an_engine_the_other_steps_complete() {
    let stage = Stage::new().await;
    let worker = stage.worker(&[("FLOW_ENGINE_URL", "")]).await;
    let job = stage.delete_by(stage.user(EMAIL), &Step::of_new_deletion(false));
    let ended = stage.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 3));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn people_tasks_go_in_batches_until_there_are_no_more() {
    let stage = Stage::new().await;
    stage.people_tasks.says_more(4);
    let worker = stage.worker(&[]).await;
    let job = stage.delete(stage.user(EMAIL));
    let ended = stage.ended(job).await;
    assert_eq!(
        (ended.status.as_str(), ended.failed_attempts),
        ("completed", 0)
    );
    assert_eq!(stage.people_tasks.calls().len(), 5);
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_key_that_the_people_task_service_does_not_know_fails_the_step() {
    let stage = Stage::new().await;
    let key = testkit::ed25519_pem();
    assert!(SigningKey::from_pem(&key).is_ok());
    let changes = [
        ("TOKEN_SIGNING_KEY", key.expose()),
        ("DELETE_MAX_ATTEMPTS", "1"),
    ];
    let worker = stage.worker(&changes).await;
    let job = stage.delete(stage.user(EMAIL));
    let failure = stage.ended(job).await.failure.unwrap();
    assert_eq!(failure["step"], "delete-people-tasks");
    let detail = failure["detail"].as_str().unwrap();
    assert!(
        detail.contains("the people-task service answered 401"),
        "{detail}"
    );
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_cancelled_job_stops_before_its_next_step() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_millis(400),
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let worker = stage.worker(&[]).await;
    let job = stage.delete(ada);
    stage
        .job_that(job, "the second step", |job| job.steps_done == 1)
        .await;
    stage.sql(&format!(
        "UPDATE users.deletions SET status = 'cancelled', finished = now() WHERE id = decode('{job}', 'hex')"
    ));
    // The worker stops when the step in flight is over, so all that it will do is done then.
    assert!(worker.stop(GRACE).await);
    let cancelled = stage.job(job);
    assert_eq!(
        (cancelled.status.as_str(), cancelled.steps_done),
        ("cancelled", 1)
    );
    assert!(stage.engine_calls(ada).await.len() <= 2);
    assert!(stage.people_tasks.calls().is_empty());

    let other = stage.worker(&[]).await;
    eventually("another worker's look at the queue", || async {
        other_is_idle(&stage).await.then_some(())
    })
    .await;
    assert_eq!(stage.job(job).status, "cancelled");
    other.stop(GRACE).await;
}

/// A job that is published after others is done after them, by one worker at least begun.
async fn other_is_idle(stage: &Stage) -> bool {
    let probe = stage.delete_by(
        stage.user(&format!("{}@example.com", rand::random::<u32>())),
        &[Step::DeleteUser],
    );
    stage.ended(probe).await.status == "completed"
}

#[actix_web::test]
async fn a_user_whose_row_is_gone_already_is_done() {
    let stage = Stage::new().await;
    let ada = stage.user(EMAIL);
    let job = stage.delete(ada);
    stage.sql(&format!(
        "DELETE FROM users.users WHERE id = decode('{ada}', 'hex')"
    ));
    let worker = stage.worker(&[]).await;
    assert_eq!(stage.ended(job).await.status, "completed");
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn tickets_go_when_their_time_is_over() {
    let stage = Stage::new().await;
    let (old, recent) = (
        stage.delete(stage.user(EMAIL)),
        stage.delete(stage.user("bob@example.com")),
    );
    let worker = stage.worker(&[("DELETE_TICKET_RETENTION", "30d")]).await;
    stage.ended(old).await;
    stage.ended(recent).await;
    worker.stop(GRACE).await;
    stage.sql(&format!(
        "UPDATE users.deletions SET finished = now() - interval '31 days' WHERE id = decode('{old}', 'hex')"
    ));
    let worker = stage.worker(&[("DELETE_TICKET_RETENTION", "30d")]).await;
    eventually("the old ticket's end", || async {
        let left = stage.database.rows_that_hold("users", &old.to_string());
        left.is_empty().then_some(())
    })
    .await;
    assert_eq!(stage.job(recent).status, "completed");
    worker.stop(GRACE).await;
}
