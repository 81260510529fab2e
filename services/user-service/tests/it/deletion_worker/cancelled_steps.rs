//! A worker that is frozen before a step, while the deletion is cancelled.

use chrono::{DateTime, Utc};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use diesel::{QueryableByName, RunQueryDsl as _};
use testkit::eventually;
use user_service::deletions::Step;
use values::UserId;

use crate::deletion_worker::STOP_TIMEOUT;
use crate::deletion_worker::fixture::Fixture;

const EMAIL: &str = "ada@example.com";

/// Cancels a deletion when the worker has claimed it and begins this step.
async fn cancel_before(fixture: &Fixture, step: Step) -> UserId {
    let ada = fixture.user(EMAIL);
    let steps = [step, Step::DeleteTokens, Step::DeleteUser];
    let _job = fixture.delete_by(ada, &steps);
    let due = "UPDATE users.deletions SET republish_at = now() + interval";
    fixture.sql(&format!("{due} '1 hour'"));
    let worker = fixture.worker(&[]).await;
    // Each step begins with the user's row.
    let mut freezer = fixture.database.admin();
    let freeze = "BEGIN; LOCK TABLE users.users IN ACCESS EXCLUSIVE MODE";
    freezer.batch_execute(freeze).unwrap();
    fixture.sql(&format!("{due} '0'"));
    eventually("the step to begin", || async {
        (waiting(fixture) > 0).then_some(())
    })
    .await;
    let cancel = "UPDATE users.deletions
        SET status = 'cancelled', finished = now(), lease_until = NULL; COMMIT";
    freezer.batch_execute(cancel).unwrap();
    assert!(worker.stop(STOP_TIMEOUT).await);
    ada
}

/// How many statements wait for a lock.
fn waiting(fixture: &Fixture) -> i64 {
    #[derive(QueryableByName)]
    struct Waiting {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let waiting: Waiting = diesel::sql_query(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    .get_result(&mut fixture.database.admin())
    .unwrap();
    waiting.count
}

#[actix_web::test]
async fn a_step_that_begins_after_the_cancel_deletes_no_sign_in_data() {
    let fixture = Fixture::new().await;
    let ada = cancel_before(&fixture, Step::DeleteSignInData).await;
    let rows = fixture.rows_of(&ada.to_string());
    for (table, number) in [
        ("codes: ", 3),
        ("notifications: ", 1),
        ("known_networks: ", 3),
    ] {
        let of_table = rows.iter().filter(|row| row.starts_with(table));
        assert_eq!(of_table.count(), number, "{rows:?}");
    }
}

#[actix_web::test]
async fn a_step_that_begins_after_the_cancel_erases_no_tasks() {
    let fixture = Fixture::new().await;
    let _ada = cancel_before(&fixture, Step::DeletePeopleTasks).await;
    assert_eq!(fixture.people_tasks.calls(), []);
}

#[actix_web::test]
async fn an_erasure_names_the_time_of_the_users_latest_change_or_of_the_deletions_start() {
    let fixture = Fixture::new().await;
    let (ada, bob) = (fixture.user(EMAIL), fixture.user("bob@example.com"));
    let change = "UPDATE users.users SET access_changed = '2099-01-01 00:00:00.000001+00'
        WHERE email = 'ada@example.com'";
    fixture.sql(change);
    let before = Utc::now();
    let worker = fixture.worker(&[]).await;
    for user in [ada, bob] {
        let job = fixture.delete(user);
        assert_eq!(fixture.ended(job).await.status, "completed");
    }
    let changed = fixture.people_tasks.changes_of_erasures();
    // Each deletion calls twice.
    assert_eq!(changed[0], "2099-01-01T00:00:00.000001Z");
    let started: DateTime<Utc> = changed[2].parse().unwrap();
    assert!(started >= before && started <= Utc::now());
    assert!(worker.stop(STOP_TIMEOUT).await);
}
