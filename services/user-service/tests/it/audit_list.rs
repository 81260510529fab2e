//! The list of the audit log, `GET /audit`: filters, sorts, pages, and what is pruned from it.
#![expect(clippy::too_many_lines, reason = "a test tells its story in one go")]

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::{Reply, TestBroker, TestDatabase, eventually};
use user_service::MIGRATIONS;

use crate::audit::rows;
use crate::list_users::scans;
use crate::support::{PASSWORD, TestApp};

const NOBODY: &str = "000000000000000000000000";

pub(crate) fn actions(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["action"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn filters_sorts_and_pages_are_those_of_other_lists() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    let (ada, bob) = (
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    let _ = app
        .update(&admin, &ada.id, &json!({"plan": "gold"}))
        .await
        .expect(200);
    let _ = app.sign_in("bob@example.com", PASSWORD).await.expect(200);
    let all = rows(&app.http, &admin.token, "").await;
    let expected = [
        "signed-in",
        "user-updated",
        "user-created",
        "user-created",
        "signed-in",
        "first-admin-made",
    ];
    assert_eq!(actions(&all), expected, "newest first");
    let get = async |query: String| rows(&app.http, &admin.token, &query).await;
    let oldest_first: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(get("?sort=at:1".into()).await, oldest_first);
    let sorted = get("?sort=action:1".into()).await;
    let expected = [
        "first-admin-made",
        "signed-in",
        "signed-in",
        "user-created",
        "user-created",
        "user-updated",
    ];
    assert_eq!(actions(&sorted), expected);
    assert_eq!(
        sorted[1]["subject"],
        admin.id.as_str(),
        "ties go by the moment"
    );

    let (ada_id, bob_id, admin_id) = (&ada.id, &bob.id, &admin.id);
    assert_eq!(
        actions(&get(format!("?filter=subject:{ada_id}")).await),
        ["user-updated", "user-created"]
    );
    assert_eq!(
        actions(&get(format!("?filter=actor:{admin_id}")).await),
        ["user-updated", "signed-in"]
    );
    assert_eq!(
        actions(&get(format!("?filter=subject:{bob_id},action:signed-in")).await),
        ["signed-in"]
    );
    assert!(get(format!("?filter=actor:{NOBODY}")).await.is_empty());
    let moment = all[2]["at"].as_str().unwrap();
    assert_eq!(get(format!("?filter=before:{moment}")).await.len(), 3);
    assert_eq!(get(format!("?filter=after:{moment}")).await.len(), 3);

    let mut seen = Vec::new();
    let mut next = Some("/audit?limit=4&sort=action:-1".to_owned());
    while let Some(path) = next {
        let reply = app.get(&admin, &path).await.expect(200);
        seen.extend(reply.json.as_array().unwrap().clone());
        next = next_page(&reply);
    }
    let backwards: Vec<_> = sorted.into_iter().rev().collect();
    assert_eq!(seen, backwards);
}

fn next_page(reply: &Reply) -> Option<String> {
    let link = reply.header("link")?;
    let (path, rest) = link.strip_prefix('<')?.split_once('>')?;
    assert_eq!(rest, "; rel=\"next\"");
    Some(path.to_owned())
}

#[tokio::test]
async fn wrong_parameters_are_named_with_what_is_allowed() {
    let app = TestApp::start().await;
    let admin = app.admin().await;
    for (query, field, allowed) in [
        ("limit=1001", "limit", "from 1 to 1000"),
        ("offset=-1", "offset", "0 or more"),
        ("sort=actor:1", "sort", "at, action"),
        (
            "filter=email:x",
            "filter",
            "action, actor, subject, requestId, after, before",
        ),
        ("filter=actor:ada@example.com", "filter", "24 lower-case"),
        ("filter=after:yesterday", "filter", "RFC 3339"),
        ("pattern=ada", "pattern", "filter"),
    ] {
        let reply = app.get(&admin, &format!("/audit?{query}")).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field], "{query}");
        let message = reply.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(allowed), "{query}: {message}");
    }
}

#[tokio::test]
async fn only_administrators_read_it() {
    let app = TestApp::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let reply = app.http.get("/audit").send().await;
    reply.expect_problem(401, "token-missing");
    let reply = app.get(&ada, "/audit?sort=colour:1").await;
    reply.expect_problem(403, "insufficient-scope");
}

#[tokio::test]
async fn every_sort_and_filter_has_an_index() {
    let database = TestDatabase::users(MIGRATIONS);
    let prepare = "
        DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database());
        END $$;
        INSERT INTO users.audit_log (action, actor_kind, actor_id, subject_kind, subject_id, request_id)
        SELECT 'user-updated', 'admin', id, 'user', id, 'r' || n
        FROM (SELECT n, decode(lpad(to_hex(n), 24, '0'), 'hex') AS id FROM generate_series(1, 2000) AS n) AS made;
        ANALYZE users.audit_log;";
    database.admin().batch_execute(prepare).unwrap();
    let app = TestApp::start_on(database, TestBroker::new(), &[]).await;
    let admin = app.admin().await;
    let id = "000000000000000000000007";
    for (query, index) in [
        ("limit=5".to_owned(), "audit_log_pkey"),
        ("limit=5&sort=at:1".to_owned(), "audit_log_pkey"),
        ("limit=5&sort=action:-1".to_owned(), "audit_log_by_action"),
        ("filter=action:signed-in".to_owned(), "audit_log_by_action"),
        (format!("filter=actor:{id}"), "audit_log_by_actor"),
        (format!("filter=subject:{id}"), "audit_log_by_subject"),
        (
            "filter=requestId:r7&sort=action:1".to_owned(),
            "audit_log_by_request",
        ),
        (
            "filter=before:2001-01-01T00:00:00Z".to_owned(),
            "audit_log_pkey",
        ),
    ] {
        let before = scans(&app, index);
        let _ = app
            .get(&admin, &format!("/audit?{query}"))
            .await
            .expect(200);
        eventually(&format!("{query} to use {index}"), async || {
            (scans(&app, index) > before).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_service_prunes_what_is_older_than_the_setting_says() {
    let database = TestDatabase::users(MIGRATIONS);
    let aged = "INSERT INTO users.audit_log (at, action, actor_kind, request_id)
        SELECT now() - days * interval '1 day', 'user-created', 'anonymous', 'old-' || days
        FROM unnest(ARRAY[1, 39, 41, 500]) AS days";
    database.admin().batch_execute(aged).unwrap();
    let settings = [("AUDIT_RETENTION", "40d")];
    let app = TestApp::start_on(database, TestBroker::new(), &settings).await;
    let admin = app.admin().await;
    let left = eventually("the old rows' end", async || {
        let rows = rows(&app.http, &admin.token, "?filter=action:user-created").await;
        (rows.len() == 2).then_some(rows)
    })
    .await;
    let left: Vec<_> = left.iter().map(|row| &row["requestId"]).collect();
    assert_eq!(left, [&json!("old-1"), &json!("old-39")]);
}
