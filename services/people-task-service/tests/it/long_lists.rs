//! Lists whose pages are large, and lists that take long.

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::eventually;
use values::UserId;

use crate::fixture::{Fixture, User, next_page};

/// No page is longer.
const MAX_PAGE: usize = 4 * 1024 * 1024;

/// Inserts tasks of a user, numbered by their titles, the newest first.
fn insert_tasks(app: &Fixture, by: &User, number: usize, description: &str) {
    app.execute(&format!(
        "INSERT INTO tasks (id, creator, requester, requester_key, approver, approver_key, title,
            description, public, approver_secret, requester_secret, created)
         SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), decode('{id}', 'hex'),
            'r@example.com', 'r@example.com', 'a@example.com', 'a@example.com', n::text, {description},
            false, sha256(('a' || n)::bytea), sha256(('r' || n)::bytea), now() - n * interval '1 second'
         FROM generate_series(1, {number}) AS n",
        id = by.id,
    ));
    app.add_states();
}

/// Reads a list page by page. Returns its rows and the number of pages.
async fn read_all(app: &Fixture, by: &User, path: &str) -> (Vec<Value>, usize) {
    let (mut rows, mut pages) = (Vec::new(), 0);
    let mut next = Some(path.to_owned());
    while let Some(path) = next {
        let reply = app.get(by, &path).await.expect(200);
        let page = reply.json.as_array().unwrap();
        assert!(!page.is_empty() || rows.is_empty(), "an empty page");
        assert!(reply.text.len() <= MAX_PAGE, "{} bytes", reply.text.len());
        rows.extend(page.iter().cloned());
        pages += 1;
        next = next_page(&reply);
    }
    (rows, pages)
}

fn titles(rows: &[Value]) -> Vec<usize> {
    let titles = rows.iter().map(|row| row["title"].as_str().unwrap());
    titles.map(|title| title.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_page_of_long_tasks_ends_early_and_its_link_leads_to_the_rest() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    // 80 kB each.
    insert_tasks(&app, &me, 130, "repeat('😀', 20000)");
    let (rows, pages) = read_all(&app, &me, "/people-task/tasks?limit=100").await;
    assert_eq!(titles(&rows), (1..=130).collect::<Vec<_>>());
    assert_eq!(pages, 3);
}

#[tokio::test]
async fn a_page_far_into_a_list_of_very_many_tasks_needs_the_order_of_an_index() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    insert_tasks(&app, &me, 100_001, "''");
    let far = "/people-task/tasks?limit=1&offset=10001";
    let refused = app.get(&me, &format!("{far}&sort=title:1")).await;
    refused.expect_problem(400, "validation-failed");
    assert_eq!(refused.bad_fields(), ["offset"]);
    for (path, expected) in [
        ("offset=10000&sort=title:1", "18998"),
        ("offset=10001&sort=created:1", "90000"),
        ("offset=11110&sort=title:1&filter=title:7", ""),
        ("offset=100001&sort=title:1", ""),
    ] {
        let path = format!("/people-task/tasks?limit=1&{path}");
        let reply = app.get(&me, &path).await.expect(200);
        assert_eq!(
            reply.json[0]["title"].as_str().unwrap_or_default(),
            expected,
            "{path}"
        );
    }
    app.execute("DELETE FROM tasks WHERE title = '100001'");
    let reply = app
        .get(&me, &format!("{far}&sort=title:-1"))
        .await
        .expect(200);
    assert_eq!(reply.json[0]["title"], "90997");
}

#[tokio::test]
async fn a_page_that_json_escapes_make_long_ends_early() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    // 20 kB in the database, and 120 kB as JSON.
    insert_tasks(&app, &me, 50, "repeat(E'\\x01', 20000)");
    let (rows, pages) = read_all(&app, &me, "/people-task/tasks").await;
    assert_eq!(titles(&rows), (1..=50).collect::<Vec<_>>());
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn the_longest_page_of_short_tasks_is_complete() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    insert_tasks(&app, &me, 1_010, "'details'");
    let (rows, pages) = read_all(&app, &me, "/people-task/tasks?limit=1000").await;
    assert_eq!(titles(&rows), (1..=1_010).collect::<Vec<_>>());
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn deliveries_with_many_attempts_are_split_into_pages() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for number in 0..20 {
        let url = format!("http://127.0.0.1:9/{number}");
        let _ = app.register(&ada, &task, &url).await;
    }
    let _ = app.approve(&ada, &task).await.expect(200);
    // 3 kB each.
    app.execute(
        "UPDATE deliveries SET attempt_log = (
            SELECT jsonb_agg(jsonb_build_object('at', '2026-01-01T00:00:01.000Z', 'durationMs', n,
                'statusCode', NULL, 'error', NULL, 'response', repeat('…', 1024)))
            FROM generate_series(1, 100) AS n)",
    );
    let path = format!("{}/deliveries", task.path);
    let (rows, pages) = read_all(&app, &ada, &path).await;
    let shown = rows.iter().map(|row| row["attempts"].as_array().unwrap());
    assert_eq!(shown.map(Vec::len).collect::<Vec<_>>(), [100; 20]);
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn accounts_of_one_group_have_their_queries_for_lists_together() {
    let app = Fixture::start_with(&[("DATABASE_POOL_SIZE", "32")]).await;
    let group = UserId::generate();
    let members =
        ["eve", "mallory", "trudy"].map(|name| app.member(&format!("{name}@example.com"), group));
    let ada = app.user("ada@example.com");
    let mut blocker = app.database.admin();
    blocker
        .batch_execute("BEGIN; LOCK TABLE people_task.tasks IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let list = async |user: &User| app.get(user, "/people-task/tasks").await;
    let lists = join_all(members.iter().chain([&ada]).map(list));
    let freed = async {
        eventually("queries to wait", async || {
            let waiting = "SELECT (count(*) = 3)::text AS value FROM pg_locks
                WHERE NOT granted AND relation = 'tasks'::regclass";
            (app.value(waiting)? == "true").then_some(())
        })
        .await;
        blocker.batch_execute("ROLLBACK").unwrap();
    };
    let (lists, ()) = futures_util::future::join(lists, freed).await;
    for list in lists {
        assert_eq!(list.expect(200).json, json!([]));
    }
}

#[tokio::test]
async fn slow_lists_leave_decisions_alone_and_end_with_503() {
    let app = Fixture::start_with(&[("DATABASE_POOL_SIZE", "4"), ("DATABASE_TIMEOUT", "2s")]).await;
    // The server's messages to new connections are German then.
    app.database.alter("SET lc_messages = 'C.UTF-8'");
    let users: Vec<_> = (0..8)
        .map(|n| app.user(&format!("user{n}@example.com")))
        .collect();
    let tasks = join_all(users.iter().map(|user| app.create(user, json!({})))).await;
    // In the service, only the list of deliveries uses this table.
    let mut blocker = app.database.admin();
    blocker
        .batch_execute("BEGIN; LOCK TABLE people_task.finished_deliveries IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let lists = users.iter().zip(&tasks).map(|(user, task)| async {
        let path = format!("{}/deliveries", task.path);
        app.get(user, &path).await
    });
    let decisions = async {
        eventually("a list to wait", async || {
            let waiting = "SELECT (count(*) > 0)::text AS value FROM pg_locks
                WHERE NOT granted AND relation = 'finished_deliveries'::regclass";
            (app.value(waiting)? == "true").then_some(())
        })
        .await;
        for (user, task) in users.iter().zip(&tasks) {
            let _ = app.approve(user, task).await.expect(200);
        }
    };
    let (lists, ()) = futures_util::future::join(join_all(lists), decisions).await;
    for list in lists {
        list.expect_problem(503, "overloaded");
        assert!(list.header("retry-after").is_some());
    }
    blocker.batch_execute("ROLLBACK").unwrap();
    let path = format!("{}/deliveries", tasks[0].path);
    let _ = app.get(&users[0], &path).await.expect(200);
}
