//! Creators of tasks take turns when due dates have passed.

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::eventually;
use values::UserId;

use crate::due_dates::{after, register, waiting, worker};
use crate::fixture::{Fixture, Task, User};

const PATH: &str = "/people-task/webhooks";

/// Creates a task that was due a moment ago, with a webhook that waits for that.
async fn create_due(app: &Fixture, by: &User) -> Task {
    let task = app.create(by, json!({"decisionBy": after(-1)})).await;
    let hook = json!({"url": "http://127.0.0.9/", "events": ["due"]});
    let _ = register(app, by, PATH, &task, hook).await.expect(200);
    task
}

fn of(creator: UserId) -> String {
    format!("due_dates WHERE creator = decode('{creator}', 'hex')")
}

#[tokio::test]
async fn beside_thousands_of_due_dates_of_one_creator_another_ones_is_in_the_first_batch() {
    let app = Fixture::start_with_broker(&[]).await;
    // The deliveries stay where they are.
    app.execute("INSERT INTO paused_hosts (host) VALUES ('127.0.0.9')");
    let (ada, bob) = (app.user("ada@example.com"), app.user("bob@example.com"));
    let _ = create_due(&app, &ada).await;
    app.execute(
        "INSERT INTO webhooks (id, task_id, registered_by, url, host, lane, on_due)
        SELECT new_id(), task_id, registered_by, url, host, lane, true
        FROM webhooks CROSS JOIN generate_series(1, 20000)",
    );
    app.execute("DELETE FROM due_dates");
    app.execute(
        "INSERT INTO due_dates (webhook_id, due_at, creator)
        SELECT webhooks.id, now() - interval '1 minute', creator
        FROM webhooks JOIN tasks ON tasks.id = task_id",
    );
    let task = create_due(&app, &bob).await;
    app.execute(&format!(
        "UPDATE due_dates SET due_at = (SELECT max(due_at) FROM {}) + interval '1 ms'
        WHERE creator = decode('{}', 'hex')",
        of(ada.id),
        bob.id
    ));
    assert_eq!(waiting(&app), 20_002);
    let _worker = worker(&app).await;
    let own = format!("deliveries WHERE task_id = decode('{}', 'hex')", task.id);
    eventually("the delivery", async || {
        (app.count(&own) == 1).then_some(())
    })
    .await;
    let earlier = format!("deliveries WHERE created < (SELECT created FROM people_task.{own})");
    assert_eq!(app.count(&earlier), 0);
}

#[tokio::test]
async fn a_due_date_that_cannot_be_handled_keeps_only_its_creator_waiting() {
    let app = Fixture::start_with_broker(&[]).await;
    let eve = app.user("eve@example.com");
    let _ = create_due(&app, &eve).await;
    // No index of deliveries can have this host.
    app.execute("ALTER TABLE webhooks DROP CONSTRAINT webhooks_have_short_hosts");
    app.execute(
        "UPDATE webhooks SET host = (SELECT string_agg(md5(number::text), '') FROM generate_series(1, 500) AS number)",
    );
    for name in ["ada", "bob", "carol"] {
        let user = app.user(&format!("{name}@example.com"));
        let _ = create_due(&app, &user).await;
    }
    let _worker = worker(&app).await;
    eventually("due dates of others to be handled", async || {
        (app.count("webhooks WHERE last_due IS NOT NULL") == 3).then_some(())
    })
    .await;
    assert_eq!((waiting(&app), app.count(&of(eve.id))), (1, 1));
}

#[tokio::test]
async fn thousands_of_creators_whose_due_dates_are_to_come_are_passed_over() {
    let app = Fixture::start_with_broker(&[]).await;
    app.execute("INSERT INTO paused_hosts (host) VALUES ('127.0.0.9')");
    let ada = app.user("ada@example.com");
    let _ = create_due(&app, &ada).await;
    app.execute(
        "INSERT INTO webhooks (id, task_id, registered_by, url, host, lane, on_due)
        SELECT new_id(), task_id, registered_by, url, host, lane, true
        FROM webhooks CROSS JOIN generate_series(1, 300)",
    );
    app.execute(
        "INSERT INTO due_dates (webhook_id, due_at)
        SELECT id, now() FROM webhooks ON CONFLICT DO NOTHING",
    );
    app.execute(
        "INSERT INTO due_dates (webhook_id, due_at, creator)
        SELECT new_id(), now() + interval '1 day', substr(sha256(number::text::bytea), 1, 12)
        FROM generate_series(1, 3000) AS number",
    );
    let _worker = worker(&app).await;
    eventually("due dates to be handled", async || {
        (waiting(&app) == 3_000).then_some(())
    })
    .await;
    assert_eq!(app.count("deliveries"), 301);
}

#[tokio::test]
async fn accounts_of_one_group_take_one_turn_and_keep_it_when_a_due_date_is_edited() {
    let app = Fixture::start().await;
    let group = UserId::generate();
    let members = ["eve@example.com", "mallory@example.com"].map(|email| app.member(email, group));
    for member in &members {
        let task = create_due(&app, member).await;
        let edit = async |date: Value| {
            let edit = json!({"decisionBy": date});
            let _ = app.put(member, &task.path, &edit).await.expect(200);
        };
        edit(Value::Null).await;
        edit(json!(after(600))).await;
    }
    assert_eq!((waiting(&app), app.count(&of(group))), (2, 2));
    // Another user's webhook for a task of theirs takes that user's turn.
    let task = app.create(&members[0], json!({})).await;
    let grace = app.user("grace@example.com");
    let hook = json!({"url": "http://127.0.0.9/", "events": ["due"]});
    let _ = register(&app, &grace, PATH, &task, hook).await.expect(200);
    let edit = json!({"decisionBy": after(600)});
    let _ = app.put(&members[0], &task.path, &edit).await.expect(200);
    assert_eq!(app.count(&of(grace.id)), 1);
}

#[tokio::test]
async fn due_dates_of_the_version_before_have_the_creator_of_their_task() {
    const BACKFILL: &str =
        include_str!("../../migrations/00000000000062_creators_of_waiting_due_dates/up.sql");
    let app = Fixture::start().await;
    let group = UserId::generate();
    let (ada, eve) = (
        app.user("ada@example.com"),
        app.member("eve@example.com", group),
    );
    let _ = create_due(&app, &ada).await;
    // A process of 0.2.0 registers another webhook.
    app.execute(
        "WITH made AS (SELECT new_id() AS id, id AS task_id, creator FROM tasks
        ), awaited AS (INSERT INTO due_dates (webhook_id, due_at) SELECT id, now() FROM made)
        INSERT INTO webhooks (id, task_id, registered_by, url, host, on_due)
        SELECT id, task_id, creator, 'http://127.0.0.9/', '127.0.0.9', true FROM made",
    );
    assert_eq!(app.count(&of(ada.id)), 2);
    let _ = create_due(&app, &eve).await;
    app.execute("UPDATE due_dates SET creator = ''");
    let mut admin = app.database.admin();
    admin
        .batch_execute("SET search_path = people_task")
        .unwrap();
    admin.batch_execute(BACKFILL).unwrap();
    let found = [ada.id, group].map(|creator| app.count(&of(creator)));
    assert_eq!(found, [2, 1]);
}
