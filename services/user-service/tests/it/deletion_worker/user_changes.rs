//! The people-task service is told of changes of users, whatever ends in between.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testkit::eventually;
use values::UserId;

use crate::deletion_worker::STOP_TIMEOUT;
use crate::deletion_worker::fixture::{ChangeResponse, Fixture};

const EMAIL: &str = "Ada@example.com";

/// A system in which only confirmed addresses give access to tasks, or all.
async fn fixture(confirmation_required: bool) -> Fixture {
    let fixture = Fixture::new().await;
    fixture.sql(&format!(
        "INSERT INTO users.deletion_settings (with_engine, confirmation_required)
         VALUES (true, {confirmation_required})"
    ));
    fixture
}

fn change(fixture: &Fixture, user: UserId, set: &str) {
    fixture.sql(&format!(
        "UPDATE users.users SET {set} WHERE id = decode('{user}', 'hex')"
    ));
}

fn untold(fixture: &Fixture) -> usize {
    let rows = fixture.database.rows_that_hold("users", "");
    rows.iter()
        .filter(|row| row.starts_with("user_changes:"))
        .count()
}

async fn all_told(fixture: &Fixture) {
    eventually("all changes to be told", || async {
        (untold(fixture) == 0).then_some(())
    })
    .await;
}

fn changed(state: &Value) -> DateTime<Utc> {
    state["changed"].as_str().unwrap().parse().unwrap()
}

/// What the people-task service knows: the state with the latest time.
fn known(fixture: &Fixture, user: UserId) -> Value {
    let states = fixture.people_tasks.changes(user);
    let mut latest = states.into_iter().max_by_key(changed).unwrap();
    latest.as_object_mut().unwrap().remove("changed");
    latest
}

#[actix_web::test]
async fn changes_of_power_are_told_and_no_others() {
    let fixture = fixture(true).await;
    let (ada, bob) = (fixture.user(EMAIL), fixture.user("bob@example.com"));
    let worker = fixture.worker(&[]).await;
    let state = |active: bool, admin: bool, email: Option<&str>| json!({"isActive": active, "isAdmin": admin, "email": email});
    for (set, expected) in [
        ("is_active = false", state(false, false, Some(EMAIL))),
        (
            "is_active = true, scope = '{admin,user}'",
            state(true, true, Some(EMAIL)),
        ),
        ("scope = '{user}'", state(true, false, Some(EMAIL))),
        (
            "email = 'new@example.com', email_key = 'new@example.com', email_confirmed = NULL",
            state(true, false, None),
        ),
        (
            "email_confirmed = now()",
            state(true, false, Some("new@example.com")),
        ),
    ] {
        let before = fixture.people_tasks.changes(ada).len();
        change(&fixture, ada, set);
        all_told(&fixture).await;
        let told = fixture.people_tasks.changes(ada);
        assert_eq!(told.len(), before + 1, "{set}");
        assert_eq!(known(&fixture, ada), expected, "{set}");
    }
    let told = fixture.people_tasks.changes(ada);
    assert!(told.is_sorted_by(|earlier, later| changed(earlier) < changed(later)));
    // 2026-01-01T00:00:00.000000Z
    assert!(
        told.iter()
            .all(|state| state["changed"].as_str().unwrap().len() == 27)
    );

    for set in [
        "plan = 'gold'",
        "scope = '{user,other}'",
        "password_hash = 'y', epoch = epoch + 1",
        "is_active = is_active, email = email",
        "email_confirmed = now()",
    ] {
        change(&fixture, bob, set);
        assert_eq!(untold(&fixture), 0, "{set}");
    }
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn without_confirmation_each_address_gives_access_and_nothing_is_told_before_that_is_known() {
    let fixture = fixture(false).await;
    let ada = fixture.user(EMAIL);
    fixture.sql("UPDATE users.deletion_settings SET confirmation_required = NULL");
    change(&fixture, ada, "email_confirmed = NULL");
    let worker = fixture.worker(&[]).await;
    // The worker looks meanwhile.
    let job = fixture.delete(fixture.user("bob@example.com"));
    assert_eq!(fixture.ended(job).await.status, "completed");
    assert_eq!(fixture.people_tasks.changes(ada).len(), 0);
    fixture.sql("UPDATE users.deletion_settings SET confirmation_required = false");
    all_told(&fixture).await;
    assert_eq!(known(&fixture, ada)["email"], EMAIL);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn after_an_outage_the_last_state_is_told() {
    let fixture = fixture(true).await;
    fixture
        .people_tasks
        .will_respond_to_changes(ChangeResponse::Failure);
    let users: Vec<_> = (0..40)
        .map(|number| fixture.user(&format!("user{number}@example.com")))
        .collect();
    let workers = [fixture.worker(&[]).await, fixture.worker(&[]).await];
    for set in ["is_active = false", "is_active = true", "is_active = false"] {
        fixture.sql(&format!("UPDATE users.users SET {set}"));
    }
    eventually("a failed call", || async {
        let failed = users
            .iter()
            .any(|user| !fixture.people_tasks.changes(*user).is_empty());
        failed.then_some(())
    })
    .await;
    assert_eq!(untold(&fixture), users.len());
    fixture
        .people_tasks
        .will_respond_to_changes(ChangeResponse::Success);
    fixture.sql("UPDATE users.users SET is_active = true, scope = '{user,admin}'");
    all_told(&fixture).await;
    for user in users {
        let known = known(&fixture, user);
        assert_eq!(
            (&known["isActive"], &known["isAdmin"]),
            (&json!(true), &json!(true))
        );
    }
    for worker in workers {
        worker.stop(STOP_TIMEOUT).await;
    }
}

#[actix_web::test]
async fn a_worker_that_is_killed_before_it_deletes_a_change_leaves_it_to_another() {
    let fixture = fixture(true).await;
    let ada = fixture.user(EMAIL);
    fixture
        .people_tasks
        .will_respond_to_changes(ChangeResponse::Never);
    let process = fixture.process(&[]);
    change(&fixture, ada, "is_active = false");
    eventually("the first call", || async {
        (fixture.people_tasks.changes(ada).len() == 1).then_some(())
    })
    .await;
    drop(process);
    assert_eq!(untold(&fixture), 1);
    // A change during the call is not lost, either.
    change(&fixture, ada, "is_active = true");
    change(&fixture, ada, "scope = '{user,admin}'");
    fixture
        .people_tasks
        .will_respond_to_changes(ChangeResponse::Success);
    let process = fixture.process(&[]);
    all_told(&fixture).await;
    assert_eq!(
        known(&fixture, ada),
        json!({"isActive": true, "isAdmin": true, "email": EMAIL})
    );
    drop(process);
}

#[actix_web::test]
async fn the_times_of_changes_grow_when_the_clock_does_not() {
    let fixture = fixture(true).await;
    let ada = fixture.user(EMAIL);
    change(&fixture, ada, "access_changed = '2099-01-01 00:00:00+00'");
    let worker = fixture.worker(&[]).await;
    for set in ["is_active = false", "is_active = true"] {
        change(&fixture, ada, set);
        all_told(&fixture).await;
    }
    let times: Vec<_> = fixture.people_tasks.changes(ada);
    let times: Vec<_> = times
        .iter()
        .map(|state| state["changed"].as_str().unwrap())
        .collect();
    assert_eq!(
        times,
        ["2099-01-01T00:00:00.000001Z", "2099-01-01T00:00:00.000002Z"]
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn nothing_is_told_of_a_user_who_is_gone() {
    let fixture = fixture(true).await;
    let (ada, bob) = (fixture.user(EMAIL), fixture.user("bob@example.com"));
    fixture
        .people_tasks
        .will_respond_to_changes(ChangeResponse::Failure);
    let worker = fixture.worker(&[]).await;
    change(&fixture, ada, "is_active = false");
    eventually("a failed call", || async {
        (!fixture.people_tasks.changes(ada).is_empty()).then_some(())
    })
    .await;
    fixture.sql(&format!(
        "DELETE FROM users.users WHERE id = decode('{ada}', 'hex')"
    ));
    let before = fixture.people_tasks.changes(ada).len();
    fixture
        .people_tasks
        .will_respond_to_changes(ChangeResponse::Success);
    change(&fixture, bob, "is_active = false");
    all_told(&fixture).await;
    assert_eq!(fixture.people_tasks.changes(bob).len(), 1);
    assert_eq!(fixture.people_tasks.changes(ada).len(), before);
    worker.stop(STOP_TIMEOUT).await;
}
