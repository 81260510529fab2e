//! `GET /users`.

use diesel::QueryableByName;
use diesel::RunQueryDsl as _;
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use serde_json::{Value, json};
use testkit::{TestDatabase, eventually};
use user_service::MIGRATIONS;

use crate::fixture::{Fixture, Person};

async fn usernames(app: &Fixture, admin: &Person, query: &str) -> Vec<String> {
    let reply = app.get(admin, &format!("/users{query}")).await.expect(200);
    let users = reply.json.as_array().unwrap();
    let name = |user: &Value| {
        user["username"]
            .as_str()
            .unwrap()
            .replace("@example.com", "")
    };
    users.iter().map(name).collect()
}

async fn set(app: &Fixture, admin: &Person, person: &Person, change: Value) {
    let _ = app.update(admin, &person.id, &change).await.expect(200);
}

/// Four different users and the administrator.
async fn app_with_users() -> (Fixture, Person) {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let ada = app.sign_up("Ada@example.com").await;
    let bob = app.sign_up("bob@example.com").await;
    let cy = app.sign_up("cy_1@example.com").await;
    let _ = app.sign_up("dan%@example.com").await;
    set(
        &app,
        &admin,
        &ada,
        json!({"plan": "Gold", "vendor": "acme", "email": "z@example.com"}),
    )
    .await;
    set(
        &app,
        &admin,
        &bob,
        json!({"vendor": ["acme", "a,b"], "isActive": false}),
    )
    .await;
    set(&app, &admin, &cy, json!({"scope": ["user", "tester"]})).await;
    let _ = app
        .sign_in("cy_1@example.com", crate::fixture::PASSWORD)
        .await
        .expect(200);
    (app, admin)
}

#[tokio::test]
async fn users_are_sorted_in_both_directions() {
    let (app, admin) = app_with_users().await;
    for (sort, expected) in [
        ("", ["dan%", "cy_1", "bob", "Ada", "admin"]),
        ("?sort=created:1", ["admin", "Ada", "bob", "cy_1", "dan%"]),
        ("?sort=username:1", ["Ada", "admin", "bob", "cy_1", "dan%"]),
        ("?sort=username:-1", ["dan%", "cy_1", "bob", "admin", "Ada"]),
        ("?sort=email:1", ["admin", "bob", "cy_1", "dan%", "Ada"]),
        ("?sort=mtime:-1", ["cy_1", "bob", "Ada", "dan%", "admin"]),
    ] {
        assert_eq!(usernames(&app, &admin, sort).await, expected, "{sort}");
    }
    assert_eq!(usernames(&app, &admin, "?sort=plan:-1").await[0], "Ada");
    assert_eq!(usernames(&app, &admin, "?sort=isActive:1").await[0], "bob");
    // Null comes last in both directions: only two users have signed in.
    assert_eq!(
        usernames(&app, &admin, "?sort=lastSignIn:1").await[..2],
        ["admin", "cy_1"]
    );
    assert_eq!(
        usernames(&app, &admin, "?sort=lastSignIn:-1").await[..2],
        ["cy_1", "admin"]
    );
}

#[tokio::test]
async fn users_must_match_all_filters() {
    let (app, admin) = app_with_users().await;
    for (query, expected) in [
        ("filter=scope:tester", vec!["cy_1"]),
        ("filter=vendor:acme", vec!["Ada", "bob"]),
        ("filter=vendor:a%5C,b", vec!["bob"]),
        ("filter=vendor:acme,isActive:true", vec!["Ada"]),
        ("filter=vendor:acme&filter=plan:Gold", vec!["Ada"]),
        ("filter=plan:gold", vec![]),
        ("filter=email:Z@example.com", vec!["Ada"]),
        ("filter=username:ADA@example.com", vec!["Ada"]),
        ("filter=username:ADA@example.com,scope:tester", vec![]),
        (
            "filter=email:Z@example.com,plan:Gold,isActive:true",
            vec!["Ada"],
        ),
        ("filter=isActive:false", vec!["bob"]),
        ("pattern=_", vec!["cy_1"]),
        ("pattern=%25", vec!["dan%"]),
        ("pattern=AD&filter=scope:user", vec!["Ada", "admin"]),
    ] {
        let path = format!("?sort=username:1&{query}");
        assert_eq!(usernames(&app, &admin, &path).await, expected, "{query}");
    }
}

#[tokio::test]
async fn invalid_parameters_are_listed_with_what_is_allowed() {
    let (app, admin) = app_with_users().await;
    for (query, field, allowed) in [
        ("limit=0", "limit", "from 1 to 1000"),
        ("limit=1001", "limit", "from 1 to 1000"),
        ("limit=x", "limit", "from 1 to 1000"),
        ("offset=-1", "offset", "0 to 10000000"),
        (
            "sort=colour:1",
            "sort",
            "created, mtime, username, email, plan, isActive, lastSignIn",
        ),
        ("sort=created:2", "sort", "1 (ascending) or -1"),
        (
            "filter=colour:red",
            "filter",
            "username, email, scope, plan, vendor, isActive",
        ),
        ("filter=isActive:yes", "filter", "true or false"),
        ("filter=scope", "filter", "<field>:<value>"),
        ("filter=scope:%00", "filter", "NUL"),
        ("pattern=%00", "pattern", "NUL"),
    ] {
        let reply = app.get(&admin, &format!("/users?{query}")).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field], "{query}");
        let message = reply.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(allowed), "{query}: {message}");
    }
}

#[tokio::test]
async fn with_very_many_users_a_page_far_in_a_list_with_a_pattern_is_refused() {
    let (app, admin) = app_with_users().await;
    let far = "/users?pattern=a&offset=1001";
    let _ = app.get(&admin, far).await.expect(200);
    let more = "UPDATE users.user_segments SET users = users + 100000";
    app.admin_connection().batch_execute(more).unwrap();
    let reply = app.get(&admin, far).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["offset"]);
    let message = reply.json["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("at most 1000"), "{message}");
    for path in [
        "/users?pattern=a&offset=1000",
        "/users?pattern=a&offset=1001&sort=username:1",
        "/users?offset=1001",
    ] {
        let _ = app.get(&admin, path).await.expect(200);
    }
}

#[tokio::test]
async fn links_lead_through_all_pages_without_gaps() {
    let (app, admin) = app_with_users().await;
    let mut ids = Vec::new();
    let mut next = Some("/users?limit=2&sort=plan:1&filter=scope:user".to_owned());
    while let Some(path) = next {
        let reply = app.get(&admin, &path).await.expect(200);
        let rows = reply.json.as_array().unwrap();
        assert!(rows.len() <= 2);
        ids.extend(
            rows.iter()
                .map(|user| user["id"].as_str().unwrap().to_owned()),
        );
        next = reply.header("link").map(|link| {
            let end = link.find('>').unwrap();
            assert_eq!(&link[end..], ">; rel=\"next\"");
            link[1..end].to_owned()
        });
    }
    assert_eq!(ids.len(), 5);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    let reply = app.get(&admin, "/users?offset=10000000").await.expect(200);
    assert_eq!(reply.json, json!([]));
}

#[derive(QueryableByName)]
struct Scans {
    #[diesel(sql_type = BigInt)]
    scans: i64,
}

/// Paths, and the index that serves each.
const INDEXES: [(&str, &str); 15] = [
    ("/users?limit=5", "users_by_created"),
    ("/users?limit=5&sort=created:1", "users_by_created"),
    ("/users?limit=5&sort=mtime:-1", "users_by_mtime"),
    ("/users?limit=5&sort=username:1", "users_by_username"),
    ("/users?limit=5&sort=email:-1", "users_by_email"),
    ("/users?limit=5&sort=plan:1", "users_by_plan"),
    ("/users?limit=5&sort=isActive:-1", "users_by_is_active"),
    ("/users?limit=5&sort=lastSignIn:1", "last_sign_ins_by_at"),
    (
        "/users?limit=5&sort=lastSignIn:-1",
        "last_sign_ins_by_at_descending",
    ),
    ("/users?filter=scope:scope7", "users_by_segment"),
    ("/users?filter=vendor:vendor7", "users_by_segment"),
    ("/users?filter=plan:plan7", "users_by_segment"),
    (
        "/users/count?filter=username:user7@example.com",
        "users_by_username",
    ),
    (
        "/users/count?filter=email:user7@example.com",
        "users_by_email",
    ),
    ("/users/count?pattern=user77", "users_username_pattern"),
];

/// With sequential scans and sorts disabled, the planner uses the index if it fits the statement.
#[tokio::test]
async fn every_sort_filter_and_pattern_has_an_index() {
    let database = TestDatabase::users(MIGRATIONS);
    let mut connection = database.admin();
    let prepare = "
        DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database());
            EXECUTE format('ALTER DATABASE %I SET enable_indexonlyscan = off', current_database());
            EXECUTE format('ALTER DATABASE %I SET enable_sort = off', current_database());
        END $$;
        INSERT INTO users.users (id, username, email, username_key, email_key, password_hash, plan, scope, vendor)
        SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), name, name, name, name, 'x', 'plan' || n, ARRAY['scope' || n], to_jsonb('vendor' || n)
        FROM (SELECT n, 'user' || n || '@example.com' AS name FROM generate_series(1, 2000) AS n) AS made;
        ANALYZE users.users;";
    connection.batch_execute(prepare).unwrap();
    let app = Fixture::start_on(database, &[]).await;
    let admin = app.admin().await;
    for (path, index) in INDEXES {
        let before = scans(&app, index);
        let _ = app.get(&admin, path).await.expect(200);
        eventually(&format!("{path} to use {index}"), async || {
            flush_statistics(&app, &admin).await;
            (scans(&app, index) > before).then_some(())
        })
        .await;
    }
}

/// Reads another list. The server updates the statistics of a connection when it is used again.
pub(crate) async fn flush_statistics(app: &Fixture, admin: &Person) {
    let _ = app.get(admin, "/users/deletions").await.expect(200);
}

/// How often an index was scanned. The partitions of an index count as the index.
pub(crate) fn scans(app: &Fixture, index: &str) -> i64 {
    let scans: Scans = diesel::sql_query(format!(
        "SELECT sum(idx_scan)::bigint AS scans FROM pg_stat_user_indexes
        WHERE indexrelid = 'users.{index}'::regclass
            OR indexrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'users.{index}'::regclass)"
    ))
    .get_result(&mut app.admin_connection())
    .unwrap();
    scans.scans
}
