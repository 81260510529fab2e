//! The deletion worker: its steps, its retries, and what it deletes.

mod cancel;
mod cancelled_steps;
mod crashes;
pub(crate) mod end_to_end;
mod engine_setting;
pub(crate) mod fixture;
mod retries;
mod user_changes;

use std::collections::BTreeSet;
use std::time::Duration;

use auth::SigningKey;
use demo_engine::{Control, ControlChange};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use testkit::eventually;
use user_service::deletions::Step;
use values::DeletionId;

use crate::deletion_worker::fixture::{ErasureResponse, Fixture, REQUEST_ID};

const EMAIL: &str = "Ada.Lovelace@Example.com";
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn steps_run_in_order_and_nothing_of_the_user_remains() {
    let fixture = Fixture::new().await;
    let (ada, bob) = (fixture.user(EMAIL), fixture.user("bob@example.com"));
    let worker = fixture.worker(&[]).await;
    let job = fixture.delete(ada);

    let ended = fixture.ended(job).await;
    assert_eq!(ended.status, "completed");
    assert_eq!((ended.steps_done, ended.steps_total), (8, 8));
    assert_eq!(ended.failed_attempts, 0);
    assert!(
        ended.is_revoked,
        "the revocation feed must report the tokens as revoked"
    );
    let calls = fixture.engine_calls(ada).await;
    let steps: Vec<_> = calls.iter().map(|(step, _)| step.as_str()).collect();
    assert_eq!(steps, ["stop-flows", "flows", "logs", "accounts", "tokens"]);
    let erasures = fixture.people_tasks.calls();
    assert_eq!(
        erasures.len(),
        2,
        "in a step of its own and before the last"
    );
    for erasure in erasures {
        assert_eq!(erasure.user, ada.to_string());
        assert_eq!(erasure.emails, json!([EMAIL]));
    }

    let left = fixture.rows_of(&ada.to_string());
    assert_eq!(left.len(), 1, "only the job still has the id: {left:?}");
    assert!(left[0].starts_with("deletions:"));
    assert_eq!(
        fixture.database.rows_that_hold("users", "lovelace"),
        Vec::<String>::new()
    );
    for (email, counts) in [(EMAIL, [0, 0]), ("bob@example.com", [4, 1])] {
        let left = [email.to_owned(), format!("verify-email {email}")]
            .map(|counted| account_hash(&counted))
            .map(|hash| fixture.database.rows_that_hold("users", &hash).len());
        assert_eq!(left, counts, "{email}");
    }
    assert!(
        !fixture
            .database
            .rows_that_hold("users", &bob.to_string())
            .is_empty()
    );
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[actix_web::test]
async fn only_a_confirmed_address_identifies_the_tasks_of_a_user() {
    let fixture = Fixture::new().await;
    let (ada, eve) = (
        fixture.user("ada@example.com"),
        fixture.user("eve@example.com"),
    );
    fixture.sql(&format!(
        "UPDATE users.users SET username = 'victim@example.com', username_key = 'victim@example.com'
         WHERE id = decode('{ada}', 'hex');
         UPDATE users.users SET email_confirmed = NULL WHERE id = decode('{eve}', 'hex');"
    ));
    let worker = fixture.worker(&[]).await;
    for (user, emails) in [(ada, json!(["ada@example.com"])), (eve, json!([]))] {
        let ended = fixture.ended(fixture.delete(user)).await;
        assert_eq!(ended.status, "completed");
        let calls = fixture.people_tasks.calls();
        let call = calls.iter().find(|call| call.user == user.to_string());
        assert_eq!(call.unwrap().emails, emails);
        assert_eq!(fixture.rows_of(&user.to_string()).len(), 1);
    }
    for name in ["victim@example.com", "ada@example.com", "eve@example.com"] {
        assert!(fixture.database.rows_that_hold("users", name).is_empty());
    }
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[actix_web::test]
async fn sign_in_data_is_deleted_before_the_user() {
    let fixture = Fixture::with_engine(Control {
        accepted: Duration::from_secs(600),
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let worker = fixture.worker(&[]).await;
    let job = fixture.delete_by(ada, &[Step::DeleteSignInData, Step::StopFlows]);
    fixture
        .job_that(job, "the first step", |job| job.steps_done == 1)
        .await;
    let left = fixture.rows_of(&ada.to_string());
    let tables = left.iter().filter_map(|row| row.split(':').next());
    let tables: BTreeSet<_> = tables.collect();
    assert_eq!(
        tables,
        BTreeSet::from(["deletions", "last_sign_ins", "sign_in_names", "users"])
    );
    assert!(worker.stop(STOP_TIMEOUT).await);
}

/// The hash under which failed sign-ins of an account are counted, and requests for codes.
fn account_hash(email: &str) -> String {
    hex::encode(Sha256::digest(email.to_lowercase()))
}

#[actix_web::test]
async fn calls_carry_the_request_id_and_the_trace() {
    let fixture = Fixture::new().await;
    let job = fixture.delete(fixture.user(EMAIL));
    let worker = fixture.worker(&[]).await;
    fixture.ended(job).await;
    let (request_id, traceparent) = fixture.people_tasks.context().unwrap();
    assert_eq!(request_id, REQUEST_ID);
    assert!(
        traceparent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{traceparent}"
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn waiting_for_the_engine_shows_progress_and_is_not_a_failure() {
    let fixture = Fixture::with_engine(Control {
        accepted: Duration::from_millis(1_200),
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let worker = fixture.worker(&[("DELETE_MAX_ATTEMPTS", "1")]).await;
    let job = fixture.delete_by(ada, &[Step::StopFlows, Step::DeleteFlows, Step::DeleteUser]);

    let mut seen = Vec::new();
    eventually("the end of the job", || {
        let job = fixture.job(job);
        if seen.last() != Some(&job.steps_done) {
            seen.push(job.steps_done);
        }
        async move { (job.status == "completed").then_some(()) }
    })
    .await;
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(
        seen.contains(&0) && seen.contains(&1),
        "both steps were in progress for a while: {seen:?}"
    );
    assert_eq!(fixture.job(job).failed_attempts, 0);
    let waited = fixture
        .engine_calls(ada)
        .await
        .iter()
        .filter(|(_, status)| *status == 202)
        .count();
    assert!(waited >= 2, "the engine responded with 202 {waited} times");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_failed_step_is_retried() {
    let fixture = Fixture::with_engine(Control {
        fail: 2,
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let worker = fixture.worker(&[]).await;
    let job = fixture.delete(ada);
    let ended = fixture.ended(job).await;
    assert_eq!(ended.status, "completed");
    assert_eq!(
        ended.failed_attempts, 10,
        "two for each of the engine's steps"
    );
    let calls = fixture.engine_calls(ada).await;
    let statuses: Vec<_> = calls.iter().take(3).map(|(_, status)| *status).collect();
    assert_eq!(statuses, [500, 500, 200]);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_job_fails_after_the_last_attempt_and_names_the_step_and_the_reason() {
    let fixture = Fixture::with_engine(Control {
        down: true,
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let worker = fixture.worker(&[("DELETE_MAX_ATTEMPTS", "3")]).await;
    let job = fixture.delete(ada);

    let ended = fixture.ended(job).await;
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
    assert!(
        detail.contains("the flow engine responded with 503"),
        "{detail}"
    );
    assert!(
        !detail.contains("127.0.0.1"),
        "the failure must not show an address: {detail}"
    );

    // A new deletion starts from the beginning; every step is repeatable.
    fixture.engine.change_control(&ControlChange {
        down: Some(false),
        ..ControlChange::default()
    });
    let again = fixture.delete(ada);
    assert_eq!(fixture.ended(again).await.status, "completed");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn the_failure_says_that_the_engine_could_not_be_reached() {
    let fixture = Fixture::new().await;
    fixture.engine.running.stop(STOP_TIMEOUT).await;
    let worker = fixture.worker(&[("DELETE_MAX_ATTEMPTS", "2")]).await;
    let job = fixture.delete(fixture.user(EMAIL));
    let failure = fixture.ended(job).await.failure.unwrap();
    let detail = failure["detail"].as_str().unwrap();
    assert!(
        detail.contains("the flow engine could not be reached"),
        "{detail}"
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn people_tasks_are_deleted_in_batches() {
    let (metrics, fixture) = (telemetry::metrics_recorder(), Fixture::new().await);
    fixture
        .people_tasks
        .will_respond(&[ErasureResponse::More; 4]);
    let worker = fixture.worker(&[]).await;
    let job = fixture.delete(fixture.user(EMAIL));
    let ended = fixture.ended(job).await;
    assert_eq!(
        (ended.status.as_str(), ended.failed_attempts),
        ("completed", 0)
    );
    assert_eq!(fixture.people_tasks.calls().len(), 6);
    assert_eq!(ended.deleted_tasks, 12);
    let counted = metrics.render();
    let labels = ["deletion_steps_total{", "delete-people-tasks", "\"part\""];
    let mut lines = counted.lines();
    let parts = lines.find(|line| labels.iter().all(|label| line.contains(label)));
    assert!(parts.is_some_and(|line| line.ends_with(" 4")), "{counted}");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn an_unknown_signing_key_fails_the_people_task_step() {
    let fixture = Fixture::new().await;
    let key = testkit::ed25519_pem();
    assert!(SigningKey::from_pem(&key).is_ok());
    let changes = [
        ("TOKEN_SIGNING_KEY", key.expose()),
        ("DELETE_MAX_ATTEMPTS", "1"),
    ];
    let worker = fixture.worker(&changes).await;
    let job = fixture.delete(fixture.user(EMAIL));
    let failure = fixture.ended(job).await.failure.unwrap();
    assert_eq!(failure["step"], "delete-people-tasks");
    let detail = failure["detail"].as_str().unwrap();
    assert!(
        detail.contains("the people-task service responded with 401"),
        "{detail}"
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_cancelled_job_stops_before_its_next_step() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_millis(400),
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let worker = fixture.worker(&[]).await;
    let job = fixture.delete(ada);
    fixture
        .job_that(job, "the second step", |job| job.steps_done == 1)
        .await;
    fixture.sql(&format!(
        "UPDATE users.deletions SET status = 'cancelled', finished = now() WHERE id = decode('{job}', 'hex')"
    ));
    // The worker stops after the step in flight, so it does nothing more after this.
    assert!(worker.stop(STOP_TIMEOUT).await);
    let cancelled = fixture.job(job);
    assert_eq!(
        (cancelled.status.as_str(), cancelled.steps_done),
        ("cancelled", 1)
    );
    assert!(fixture.engine_calls(ada).await.len() <= 2);
    assert!(fixture.people_tasks.calls().is_empty());

    let other = fixture.worker(&[]).await;
    eventually("another worker to process the queue", || async {
        other_worker_is_idle(&fixture).await.then_some(())
    })
    .await;
    assert_eq!(fixture.job(job).status, "cancelled");
    other.stop(STOP_TIMEOUT).await;
}

/// Processes another job: messages that were published before it are handled by then.
async fn other_worker_is_idle(fixture: &Fixture) -> bool {
    let probe = fixture.delete_by(
        fixture.user(&format!("{}@example.com", rand::random::<u32>())),
        &[Step::StopFlows, Step::DeleteUser],
    );
    fixture.ended(probe).await.status == "completed"
}

#[actix_web::test]
async fn a_job_completes_when_the_user_no_longer_exists() {
    let fixture = Fixture::new().await;
    let ada = fixture.user(EMAIL);
    let job = fixture.delete(ada);
    fixture.sql(&format!(
        "DELETE FROM users.users WHERE id = decode('{ada}', 'hex')"
    ));
    let worker = fixture.worker(&[]).await;
    assert_eq!(fixture.ended(job).await.status, "completed");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn old_tickets_are_deleted() {
    let fixture = Fixture::new().await;
    let (old, recent) = (
        fixture.delete(fixture.user(EMAIL)),
        fixture.delete(fixture.user("bob@example.com")),
    );
    let worker = fixture.worker(&[("DELETE_TICKET_RETENTION", "30d")]).await;
    fixture.ended(old).await;
    fixture.ended(recent).await;
    worker.stop(STOP_TIMEOUT).await;
    fixture.sql(&format!(
        "UPDATE users.deletions SET finished = now() - interval '31 days' WHERE id = decode('{old}', 'hex')"
    ));
    let worker = fixture.worker(&[("DELETE_TICKET_RETENTION", "30d")]).await;
    ticket_is_deleted(&fixture, old).await;
    assert_eq!(fixture.job(recent).status, "completed");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn an_old_deletion_that_failed_is_kept_as_long_as_it_can_be_started_again() {
    let fixture = Fixture::new().await;
    let (old, failed) = (
        fixture.delete(fixture.user(EMAIL)),
        fixture.delete(fixture.user("bob@example.com")),
    );
    fixture.sql(
        "UPDATE users.deletions SET status = 'failed', failure = '{}', finished = now() - interval '31 days'",
    );
    fixture.sql("UPDATE users.users SET is_active = email <> 'bob@example.com'");
    let worker = fixture.worker(&[("DELETE_TICKET_RETENTION", "30d")]).await;
    ticket_is_deleted(&fixture, old).await;
    assert_eq!(fixture.job(failed).status, "failed");
    worker.stop(STOP_TIMEOUT).await;
}

async fn ticket_is_deleted(fixture: &Fixture, ticket: DeletionId) {
    eventually("the old ticket to be deleted", || async {
        let left = fixture
            .database
            .rows_that_hold("users", &ticket.to_string());
        left.is_empty().then_some(())
    })
    .await;
}
