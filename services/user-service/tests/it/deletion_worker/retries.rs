//! How often the deletion worker retries, when it begins with people tasks, and starting failed deletions again.

use std::time::Duration;

use demo_engine::{Control, ControlChange};
use serde_json::json;
use testkit::{eventually, lines};
use values::{FromText as _, UserId};

use crate::deletion_worker::end_to_end::{System, text};
use crate::deletion_worker::fixture::{ErasureResponse, Fixture};

const EMAIL: &str = "ada@example.com";
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn failed_attempts_are_forgotten_when_a_step_makes_progress() {
    use ErasureResponse::{Failure, More};
    let fixture = Fixture::new().await;
    let responses = [Failure, More, Failure, More, Failure];
    fixture.people_tasks.will_respond(&responses);
    let worker = fixture.worker(&[("DELETE_MAX_ATTEMPTS", "2")]).await;
    let ended = fixture.ended(fixture.delete(fixture.user(EMAIL))).await;
    assert_eq!(ended.status, "completed", "{:?}", ended.failure);
    assert_eq!(fixture.people_tasks.calls().len(), responses.len() + 2);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn an_erasure_that_other_transactions_block_is_repeated_and_is_no_failure() {
    let fixture = Fixture::new().await;
    fixture
        .people_tasks
        .will_respond(&[ErasureResponse::Blocked]);
    let worker = fixture.worker(&[("DELETE_MAX_ATTEMPTS", "1")]).await;
    let ended = fixture.ended(fixture.delete(fixture.user(EMAIL))).await;
    assert_eq!(ended.status, "completed", "{:?}", ended.failure);
    assert_eq!(fixture.people_tasks.calls().len(), 3);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn people_tasks_are_erased_when_no_revoked_token_can_add_any() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker(&[("DELETE_SETTLE_TIME", "1h")]).await;
    let job = fixture.delete(fixture.user(EMAIL));
    let waits = "SELECT 'waits' AS line FROM users.deletions
        WHERE lease_until IS NULL AND next_attempt > now() + interval '50 minutes'";
    eventually("the worker to wait", async || {
        (!lines(&mut fixture.database.admin(), waits).is_empty()).then_some(())
    })
    .await;
    assert!(fixture.people_tasks.calls().is_empty());
    fixture.sql(
        "UPDATE users.deletions
         SET created = created - interval '1 hour', next_attempt = now(), republish_at = now()",
    );
    assert_eq!(fixture.ended(job).await.status, "completed");
    assert_eq!(fixture.people_tasks.calls().len(), 2);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_deletion_whose_engine_never_finishes_fails_at_its_maximum_age() {
    let fixture = Fixture::with_engine(Control {
        accepted: Duration::from_secs(3_600),
        ..Control::default()
    })
    .await;
    let job = fixture.delete(fixture.user(EMAIL));
    fixture.sql("UPDATE users.deletions SET started = now() - interval '8 days'");
    let worker = fixture.worker(&[]).await;
    let ended = fixture.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("failed", 0));
    let failure = ended.failure.unwrap();
    assert_eq!(failure["step"], "stop-flows");
    let detail = failure["detail"].as_str().unwrap();
    assert!(detail.contains("DELETE_MAX_AGE"), "{detail}");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_deletion_that_makes_progress_does_not_fail_at_its_maximum_age() {
    let fixture = Fixture::new().await;
    fixture
        .people_tasks
        .will_respond(&[ErasureResponse::More; 2]);
    let job = fixture.delete(fixture.user(EMAIL));
    fixture.sql("UPDATE users.deletions SET started = now() - interval '8 days'");
    let worker = fixture.worker(&[]).await;
    let ended = fixture.ended(job).await;
    assert_eq!(ended.status, "completed", "{:?}", ended.failure);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_failed_deletion_continues_at_its_step_when_it_is_started_again() {
    use ErasureResponse::Failure;
    let system = System::start_with(Control::default(), &[("DELETE_MAX_ATTEMPTS", "1")]).await;
    let (admin, fixture) = (system.admin().await, &system.fixture);
    fixture.people_tasks.will_respond(&[Failure]);
    let (id, _) = system.sign_up().await;
    let (_, status) = system.delete(&admin, &format!("/users/{id}")).await;
    let failed = system.ended(&admin, &status).await;
    assert_eq!(text(&failed, "/status"), "failed");
    assert_eq!(failed["stepsDone"], 5);
    let ada = UserId::from_text(&id).unwrap();
    let calls = fixture.engine_calls(ada).await;

    let retry = system.http.post("/users/deletions/retry").bearer(&admin);
    let reply = retry.send().await.expect(200);
    assert_eq!(reply.json, json!({"retried": 1, "more": false}));
    let completed = json!({"status": "completed", "stepsDone": 8, "stepsTotal": 8});
    assert_eq!(system.ended(&admin, &status).await, completed);
    assert_eq!(
        fixture.engine_calls(ada).await,
        calls,
        "the finished steps at the engine must not be repeated"
    );
    system.stop().await;
}

#[actix_web::test]
async fn tasks_that_were_added_after_their_step_are_deleted_before_the_user() {
    use ErasureResponse::{Blocked, Failure, More};
    let fixture = Fixture::new().await;
    let ada = fixture.user(EMAIL);
    let job = fixture.delete(ada);
    fixture.sql(
        "UPDATE users.deletion_steps SET finished = now() WHERE name <> 'delete-user';
         UPDATE users.deletions SET steps_done = 7",
    );
    let responses = [Failure, More, Blocked];
    fixture.people_tasks.will_respond(&responses);
    let worker = fixture.worker(&[("DELETE_MAX_ATTEMPTS", "1")]).await;
    let failed = fixture.ended(job).await;
    assert_eq!((failed.status.as_str(), failed.steps_done), ("failed", 7));
    assert!(!failed.is_revoked, "the user must still be there");

    fixture.sql(
        "UPDATE users.deletions SET status = 'in-progress', failure = NULL, finished = NULL, started = now(),
             next_attempt = now(), republish_at = now()",
    );
    let ended = fixture.ended(job).await;
    assert_eq!(ended.status, "completed", "{:?}", ended.failure);
    assert!(ended.is_revoked);
    assert_eq!(fixture.people_tasks.calls().len(), responses.len() + 1);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_deletion_survives_an_outage_of_the_engine() {
    let fixture = Fixture::with_engine(Control {
        down: true,
        ..Control::default()
    })
    .await;
    let job = fixture.delete(fixture.user(EMAIL));
    let worker = fixture.worker(&[("DELETE_RETRY_PAUSE", "1ms")]).await;
    let tries = |job: &crate::deletion_worker::fixture::Job| job.failed_attempts > 10;
    fixture.job_that(job, "more attempts", tries).await;
    assert_eq!(fixture.job(job).status, "in-progress");
    fixture.engine.change_control(&ControlChange {
        down: Some(false),
        ..ControlChange::default()
    });
    fixture.sql("UPDATE users.deletions SET next_attempt = now(), republish_at = now()");
    assert_eq!(fixture.ended(job).await.status, "completed");
    worker.stop(STOP_TIMEOUT).await;
}
