//! The event `due` while processes of the version before run.

use std::collections::HashSet;

use diesel::PgConnection;
use diesel::connection::SimpleConnection as _;
use serde_json::json;
use testkit::{TestBroker, eventually};

use crate::due_dates::{PLUGIN, accepting, after, register, settled, statuses, waiting, worker};
use crate::fixture::Fixture;

#[tokio::test]
async fn nothing_is_due_while_a_worker_runs_that_does_not_know_it() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    // A worker of an earlier version.
    app.execute("INSERT INTO delivery_workers (beat) VALUES (now() + interval '1 hour')");
    let task = app.create(&ada, json!({"decisionBy": after(-1)})).await;
    let url = json!({"url": receiver.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, url.clone())
        .await
        .expect(200);
    let _worker = worker(&app).await;
    // The earlier worker delivers decisions meanwhile, and this one leaves them to it.
    let other = app.create(&ada, json!({"decisionBy": after(-1)})).await;
    let _ = register(&app, &ada, PLUGIN, &other, url).await.expect(200);
    let _ = app.approve(&ada, &other).await.expect(200);
    let beat = "SELECT max(beat)::text AS value FROM delivery_workers WHERE protocol > 0";
    let mut beats = HashSet::new();
    // By then, it has looked for due dates.
    eventually("the worker to join and to beat twice", async || {
        app.execute("UPDATE delivery_workers SET beat = now() WHERE protocol = 0");
        beats.extend(app.value(beat));
        (beats.len() > 2).then_some(())
    })
    .await;
    assert_eq!(app.count("delivery_workers"), 2);
    assert_eq!(app.count("deliveries WHERE due_at IS NOT NULL"), 0);
    assert_eq!(waiting(&app), 1);
    assert_eq!(receiver.calls().len(), 0);
    app.execute("DELETE FROM delivery_workers WHERE protocol = 0");
    let calls = receiver.wait_for_calls(2).await;
    let mut statuses = statuses(&calls);
    statuses.sort_unstable();
    assert_eq!(statuses, ["approved", "due"]);
}

#[tokio::test]
async fn services_of_the_version_before_may_change_tasks_meanwhile() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let ada = app.user("ada@example.com");
    let url = json!({"url": receiver.url("/")});
    let far = after(600);
    for date in [after(-3), after(-2), after(-1)] {
        let task = app.create(&ada, json!({"decisionBy": date})).await;
        let _ = register(&app, &ada, PLUGIN, &task, url.clone())
            .await
            .expect(200);
    }
    // They do not know `due_dates`.
    let tasks = "(SELECT array_agg(id ORDER BY decision_by) AS id FROM tasks) AS tasks";
    app.execute(&format!(
        "UPDATE task_states SET status = 'approved', decision_made = now() FROM {tasks} WHERE task_id = tasks.id[1]"
    ));
    app.execute(&format!(
        "UPDATE task_states SET decision_by = '{far}Z' FROM {tasks} WHERE task_id = tasks.id[2]"
    ));
    app.execute(&format!(
        "UPDATE task_states SET decision_by = NULL FROM {tasks} WHERE task_id = tasks.id[3]"
    ));
    let _worker = worker(&app).await;
    eventually("due dates to be handled", async || {
        (app.count("due_dates WHERE due_at <= now()") == 0).then_some(())
    })
    .await;
    let left = format!("due_dates WHERE due_at = '{far}Z'");
    assert_eq!((waiting(&app), app.count(&left)), (1, 1));
    assert_eq!(app.count("all_deliveries"), 0);
}

macro_rules! migrations {
    ($($name:literal,)+) => {
        &[$([
            include_str!(concat!("../../migrations/", $name, "/up.sql")),
            include_str!(concat!("../../migrations/", $name, "/down.sql")),
        ]),+]
    };
}

/// Migrations with which the version before runs, too, except those that build indexes.
const EXPANSIONS: &[[&str; 2]] = migrations![
    "00000000000016_comments_of_decisions",
    "00000000000017_required_comments",
    "00000000000018_webhook_events",
    "00000000000019_due_dates",
    "00000000000020_due_deliveries",
    "00000000000021_finished_due_deliveries",
    "00000000000022_all_due_deliveries",
    "00000000000023_workers_that_send_due",
    "00000000000030_task_versions",
    "00000000000031_registrants",
    "00000000000032_suspended_deliveries",
    "00000000000034_view_of_suspended_deliveries",
    "00000000000036_protocol_of_workers",
    "00000000000053_webhook_options",
    "00000000000054_deliveries_with_options",
    "00000000000057_webhook_tests",
    "00000000000059_bytes_of_options",
    "00000000000061_creators_of_due_dates",
];

#[tokio::test]
async fn the_migrations_can_be_reverted_and_run_again() {
    let database = testkit::TestDatabase::people_task(people_task_service::MIGRATIONS);
    let owner = database.people_task_owner_url();
    let mut owner = <PgConnection as diesel::Connection>::establish(owner.expose()).unwrap();
    for [_, down] in EXPANSIONS.iter().rev() {
        owner.batch_execute(down).unwrap();
    }
    for [up, _] in EXPANSIONS {
        owner.batch_execute(up).unwrap();
    }
    // The service and the worker have the rights that they need.
    let (app, receiver) = (
        Fixture::start_between(database, Some(TestBroker::new()), &[]).await,
        accepting(),
    );
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({"decisionBy": after(-1)})).await;
    let url = json!({"url": receiver.url("/")});
    let _ = register(&app, &ada, PLUGIN, &task, url).await.expect(200);
    let _worker = worker(&app).await;
    assert_eq!(settled(&app, &ada, &task, 1).await, ["sent", "due sent"]);
}
