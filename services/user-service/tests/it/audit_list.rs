//! The list of the audit log, `GET /audit`: filters, sorts, pages, and pruning.

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::{Reply, TestDatabase, eventually};
use user_service::MIGRATIONS;

use crate::audit::rows;
use crate::fixture::{Fixture, PASSWORD, Person};
use crate::list_users::{flush_statistics, scans};

/// The index for filters by request id and by rare actions.
const BRIN: &str = "audit_log_by_request_or_action";
const UNKNOWN: &str = "000000000000000000000000";

pub(crate) fn actions(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["action"].as_str().unwrap())
        .collect()
}

/// A log of six entries about the administrator, Ada and Bob.
async fn app_with_log() -> (Fixture, [Person; 3]) {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let bob = app.sign_up("bob@example.com").await;
    let gold = json!({"plan": "gold"});
    let _ = app.update(&admin, &ada.id, &gold).await.expect(200);
    let _ = app.sign_in("bob@example.com", PASSWORD).await.expect(200);
    (app, [admin, ada, bob])
}

const NEWEST_FIRST: [&str; 6] = [
    "signed-in",
    "user-updated",
    "user-created",
    "user-created",
    "signed-in",
    "first-admin-made",
];

#[tokio::test]
async fn entries_are_sorted_by_time_or_action() {
    let (app, [admin, ..]) = app_with_log().await;
    let get = async |query: &str| rows(&app.http, &admin.token, query).await;
    let all = get("").await;
    assert_eq!(actions(&all), NEWEST_FIRST);
    let oldest_first: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(get("?sort=at:1").await, oldest_first);
    let sorted = get("?sort=action:1").await;
    let mut expected = NEWEST_FIRST;
    expected.sort_unstable();
    assert_eq!(actions(&sorted), expected);
    let first_sign_in = &sorted[1];
    assert_eq!(
        first_sign_in["subject"],
        admin.id.as_str(),
        "ties are sorted by time"
    );
}

#[tokio::test]
async fn entries_must_match_all_filters() {
    let (app, [admin, ada, bob]) = app_with_log().await;
    let get = async |query: String| rows(&app.http, &admin.token, &query).await;
    let (ada, bob, actor) = (ada.id, bob.id, &admin.id);
    for (filter, expected) in [
        (
            format!("subject:{ada}"),
            vec!["user-updated", "user-created"],
        ),
        (format!("actor:{actor}"), vec!["user-updated", "signed-in"]),
        (format!("subject:{bob},action:signed-in"), vec!["signed-in"]),
        (format!("actor:{UNKNOWN}"), vec![]),
    ] {
        let rows = get(format!("?filter={filter}")).await;
        assert_eq!(actions(&rows), expected, "{filter}");
    }
    let all = get(String::new()).await;
    let moment = all[2]["at"].as_str().unwrap();
    assert_eq!(get(format!("?filter=before:{moment}")).await.len(), 3);
    assert_eq!(get(format!("?filter=after:{moment}")).await.len(), 3);
}

#[tokio::test]
async fn the_identifier_of_a_deleted_user_finds_its_entries() {
    let (app, [admin, ada, bob]) = app_with_log().await;
    let get = async |query: String| rows(&app.http, &admin.token, &query).await;
    let filters = [
        format!("?filter=subject:{}", ada.id),
        format!("?filter=actor:{}", bob.id),
    ];
    let pseudonymise = "SELECT users.pseudonymise_audit_log(subject_id, 100) FROM users.audit_log
        WHERE action = 'user-created'";
    let mut before = Vec::new();
    for filter in &filters {
        before.push(get(filter.clone()).await);
    }
    app.admin_connection().batch_execute(pseudonymise).unwrap();
    for (filter, before) in filters.iter().zip(before) {
        let after = get(filter.clone()).await;
        assert!(
            !before.is_empty() && actions(&after) == actions(&before),
            "{filter}"
        );
    }
}

#[tokio::test]
async fn links_lead_through_all_pages_in_order() {
    let (app, [admin, ..]) = app_with_log().await;
    let all = rows(&app.http, &admin.token, "?sort=action:-1").await;
    let mut paged = Vec::new();
    let mut next = Some("/audit?limit=4&sort=action:-1".to_owned());
    while let Some(path) = next {
        let reply = app.get(&admin, &path).await.expect(200);
        paged.extend(reply.json.as_array().unwrap().clone());
        next = next_page(&reply);
    }
    assert_eq!(paged, all);
}

pub(crate) fn next_page(reply: &Reply) -> Option<String> {
    let link = reply.header("link")?;
    let (path, rest) = link.strip_prefix('<')?.split_once('>')?;
    assert_eq!(rest, "; rel=\"next\"");
    Some(path.to_owned())
}

#[tokio::test]
async fn invalid_parameters_are_listed_with_what_is_allowed() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    for (query, field, allowed) in [
        ("limit=1001", "limit", "from 1 to 1000"),
        ("offset=-1", "offset", "0 to 10000000"),
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
async fn only_administrators_read_the_log() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let reply = app.http.get("/audit").send().await;
    reply.expect_problem(401, "token-missing");
    let reply = app.get(&ada, "/audit?sort=colour:1").await;
    reply.expect_problem(403, "insufficient-scope");
}

#[tokio::test]
async fn every_filter_and_the_default_order_have_an_index() {
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
    let app = Fixture::start_on(database, &[]).await;
    let admin = app.admin().await;
    let id = "000000000000000000000007";
    for (query, index) in [
        ("limit=5".to_owned(), "audit_log_by_time"),
        ("limit=5&sort=at:1".to_owned(), "audit_log_by_time"),
        ("filter=action:signed-in".to_owned(), BRIN),
        (format!("filter=actor:{id}"), "audit_log_by_actor"),
        (format!("filter=subject:{id}"), "audit_log_by_subject"),
        ("filter=requestId:r7&sort=action:1".to_owned(), BRIN),
        (
            "filter=before:2001-01-01T00:00:00Z".to_owned(),
            "audit_log_by_time",
        ),
    ] {
        let before = scans(&app, index);
        let _ = app
            .get(&admin, &format!("/audit?{query}"))
            .await
            .expect(200);
        eventually(&format!("{query} to use {index}"), async || {
            flush_statistics(&app, &admin).await;
            (scans(&app, index) > before).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn entries_older_than_the_retention_are_pruned() {
    let database = TestDatabase::users(MIGRATIONS);
    let aged =
        "INSERT INTO users.audit_log (at, action, actor_kind, subject_kind, subject_id, request_id)
        SELECT now() - days * interval '1 day', 'user-created', 'anonymous',
            'user', substring(sha256('user') FOR 12), 'old-' || days
        FROM unnest(ARRAY[1, 39, 41, 500]) AS days";
    database.admin().batch_execute(aged).unwrap();
    let settings = [("AUDIT_RETENTION", "40d")];
    let app = Fixture::start_on(database, &settings).await;
    let admin = app.admin().await;
    let left = eventually("old entries to be pruned", async || {
        let rows = rows(&app.http, &admin.token, "?filter=action:user-created").await;
        (rows.len() == 2).then_some(rows)
    })
    .await;
    let left: Vec<_> = left.iter().map(|row| &row["requestId"]).collect();
    assert_eq!(left, [&json!("old-1"), &json!("old-39")]);
}
