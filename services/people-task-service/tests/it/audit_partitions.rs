//! The partitions of the audit log. More tests of them are those of the user-service, which has the same table.

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use people_task_service::MIGRATIONS;
use serde_json::json;
use testkit::{TestDatabase, eventually, lines};

use crate::fixture::Fixture;

const INSERT: &str = "INSERT INTO audit_log (action, actor_kind, request_id)
    VALUES ('task-created', 'service', 'r')";

#[test]
fn the_service_adds_entries_with_known_values_and_changes_none() {
    let database = TestDatabase::people_task(MIGRATIONS);
    let mut service = database.people_task_connection();
    service.batch_execute(INSERT).unwrap();
    let partition = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"audit_log_\"YYYYMM') AS line";
    let partition = lines(&mut service, partition).remove(0);
    for (invalid, expected) in [
        (
            INSERT.replace("task-created", "user-created"),
            "audit_log_action_check",
        ),
        (
            INSERT.replace("'service'", "'anonymous'"),
            "audit_log_actor_kind_check",
        ),
        (
            format!("UPDATE {partition} SET request_id = 'other'"),
            "permission denied",
        ),
        (
            "SELECT drop_audit_log_partition('29 days')".to_owned(),
            "30 days at least",
        ),
    ] {
        let refusal = service.batch_execute(&invalid).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{invalid}: {refusal}");
    }
}

/// The names of all partitions, with the default one.
const PARTITIONS: &str =
    "SELECT relname::text AS line FROM pg_inherits JOIN pg_class ON oid = inhrelid
    WHERE inhparent = 'people_task.audit_log'::regclass ORDER BY 1";

/// Starts the service on a database with an old month and without the next one, and waits until it has changed both.
async fn start_with_maintenance() -> Fixture {
    let database = TestDatabase::people_task(MIGRATIONS);
    let mut owner = PgConnection::establish(database.people_task_owner_url().expose()).unwrap();
    let expected = lines(&mut owner, PARTITIONS);
    let prepare = format!(
        "SELECT create_audit_log_partition('2020-01-01'); DROP TABLE {}",
        expected[1]
    );
    owner.batch_execute(&prepare).unwrap();
    let fixture = Fixture::start_on(database, &[("DATABASE_POOL_SIZE", "2")]).await;
    eventually("the partitions to be maintained", async || {
        let found = lines(&mut fixture.database.admin(), PARTITIONS);
        (found == expected).then_some(())
    })
    .await;
    fixture
}

#[tokio::test]
async fn a_month_that_is_dropped_is_counted() {
    let metrics = telemetry::metrics_recorder();
    let _fixture = start_with_maintenance().await;
    let expected = "retention_deleted_total{table=\"audit_log\"} 1";
    eventually("it to be counted", async || {
        let rendered = metrics.render();
        let is_counted = rendered.lines().any(|line| line == expected);
        is_counted.then_some(())
    })
    .await;
}

#[tokio::test]
async fn work_goes_on_when_months_are_missing_and_while_they_are_created() {
    let fixture = start_with_maintenance().await;
    let ada = fixture.user("ada@example.com");
    let decide = async || {
        let task = fixture.create(&ada, json!({"approver": ada.email})).await;
        let _ = fixture.approve(&ada, &task).await.expect(200);
    };
    // Connections have prepared their statements.
    decide().await;
    let mut admin = fixture.database.admin();
    let months = lines(&mut admin, PARTITIONS);
    for month in &months[..4] {
        fixture.execute(&format!("DROP TABLE {month}"));
    }
    decide().await;
    fixture.execute("SELECT create_audit_log_partitions()");
    decide().await;
    assert_eq!(lines(&mut admin, PARTITIONS), months[1..]);
    assert_eq!(fixture.count("audit_log"), 4);
    assert_eq!(fixture.count("audit_log_default"), 4);
}
