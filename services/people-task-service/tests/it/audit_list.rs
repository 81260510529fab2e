//! The list of the audit log, `GET /people-task/audit`, and the rights of the service's role on the log.

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use people_task_service::MIGRATIONS;
use serde_json::json;
use testkit::TestDatabase;

use crate::audit::{actions, rows};
use crate::fixture::{Fixture, WithSecret as _, next_page};

#[tokio::test]
async fn the_log_is_filtered_sorted_and_paged_like_other_lists() {
    let app = Fixture::start().await;
    let (ada, grace, root) = (
        app.user("ada@example.com"),
        app.user("grace@example.com"),
        app.admin(),
    );
    let (first, second) = (
        app.create(&ada, json!({})).await,
        app.create(&grace, json!({})).await,
    );
    let _ = app.approve(&grace, &first).await.expect(200);
    let get = async |query: String| rows(&app, &root, &query).await;
    let all = get(String::new()).await;
    assert_eq!(
        actions(&all),
        ["task-approved", "task-created", "task-created"]
    );
    let mut reversed = get("?sort=at:1".into()).await;
    reversed.reverse();
    assert_eq!(reversed, all);
    let sorted = get("?sort=action:-1".into()).await;
    assert_eq!(
        actions(&sorted),
        ["task-created", "task-created", "task-approved"]
    );
    let of_grace = get(format!("?filter=actor:{}", grace.id)).await;
    assert_eq!(actions(&of_grace), ["task-approved", "task-created"]);
    assert_eq!(of_grace[1]["subject"], second.id.as_str());
    let query = format!("?filter=action:task-created&filter=subject:{}", first.id);
    assert_eq!(get(query).await.len(), 1);
    let reply = app
        .get(&root, "/people-task/audit?limit=2")
        .await
        .expect(200);
    assert_eq!(reply.json.as_array().unwrap().len(), 2);
    let rest = app
        .get(&root, &next_page(&reply).unwrap())
        .await
        .expect(200);
    assert_eq!(rest.json, json!([all[2]]));
    assert_eq!(next_page(&rest), None);
    for (query, field) in [
        ("sort=actor:1", "sort"),
        ("filter=title:x", "filter"),
        ("filter=subject:x", "filter"),
        ("limit=0", "limit"),
        ("pattern=x", "pattern"),
    ] {
        let reply = app.get(&root, &format!("/people-task/audit?{query}")).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), [field], "{query}");
    }
}

#[tokio::test]
async fn only_administrators_may_read_the_log() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let path = "/people-task/audit";
    let reply = app.http.get(path).send().await;
    reply.expect_problem(401, "token-missing");
    let reply = app
        .http
        .get(path)
        .secret(&task.approver_secret)
        .send()
        .await;
    reply.expect_problem(401, "token-missing");
    let reply = app.get(&ada, "/people-task/audit?limit=0").await;
    reply.expect_problem(403, "insufficient-scope");
}

#[test]
fn the_services_role_may_only_insert_and_read() {
    let database = TestDatabase::people_task(MIGRATIONS);
    let mut service = database.people_task_connection();
    let insert = "INSERT INTO audit_log (action, actor_kind, client_address, request_id)
        VALUES ('task-created', 'service', '203.0.113.7', 'r')";
    service.batch_execute(insert).unwrap();
    for sql in [
        "UPDATE audit_log SET request_id = 'other'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "DROP TABLE audit_log",
        "INSERT INTO audit_log (action, actor_kind, request_id, at)
            VALUES ('task-created', 'service', 'r', now() - interval '1 year')",
    ] {
        let refusal = service.batch_execute(sql).unwrap_err().to_string();
        let refused = ["permission denied", "must be owner"];
        assert!(
            refused.iter().any(|words| refusal.contains(words)),
            "{sql}: {refusal}"
        );
    }
    let refusal = service.batch_execute("SELECT prune_audit_log(interval '29 days', 10)");
    assert!(
        refusal
            .unwrap_err()
            .to_string()
            .contains("30 days at least")
    );
    assert_eq!(
        number(&mut service, "prune_audit_log(interval '30 days', 10)"),
        0
    );
    assert_eq!(number(&mut service, "(SELECT count(*) FROM audit_log)"), 1);
}

fn number(connection: &mut PgConnection, expression: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    let row: Number = diesel::sql_query(format!("SELECT {expression} AS number"))
        .get_result(connection)
        .unwrap();
    row.number
}
