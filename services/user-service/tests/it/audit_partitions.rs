//! The partitions of the audit log, one for each month: how they are created, filled, changed and dropped.

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use serde_json::Value;
use testkit::{TestDatabase, eventually, lines};
use user_service::MIGRATIONS;

use crate::audit::rows;
use crate::audit_append_only::{YOUNGER_THAN_30_DAYS, connections, number, refusal};
use crate::audit_list::next_page;
use crate::fixture::Fixture;

/// The names of the partitions of months, the oldest first.
const PARTITIONS: &str =
    "SELECT relname::text AS line FROM pg_inherits JOIN pg_class ON oid = inhrelid
    WHERE inhparent = 'users.audit_log'::regclass AND relname <> 'audit_log_default' ORDER BY 1";
/// The names of the months from `-$1` to `$2`, counted from this one.
const MONTHS: &str =
    "SELECT to_char(date_trunc('month', now() AT TIME ZONE 'UTC') + n * interval '1 month',
    '\"audit_log_\"YYYYMM') AS line FROM generate_series";
const INSERT: &str = "INSERT INTO audit_log (action, actor_kind, request_id)
    VALUES ('user-created', 'anonymous', 'r')";
const ADA: &str = "decode(lpad('1', 24, '0'), 'hex')";
const BOB: &str = "decode(lpad('2', 24, '0'), 'hex')";

fn months(connection: &mut PgConnection, first: i32, last: i32) -> Vec<String> {
    lines(connection, &format!("{MONTHS} ({first}, {last}) AS n"))
}

fn owner(database: &TestDatabase) -> PgConnection {
    PgConnection::establish(database.users_owner_url().expose()).unwrap()
}

/// Creates the partitions of former months, as the service did in these months.
fn create_former_months(database: &TestDatabase, months: u32) {
    let create = format!(
        "SELECT create_audit_log_partition(date_trunc('month', now() AT TIME ZONE 'UTC' - n * interval '1 month')::date)
         FROM generate_series(1, {months}) AS n"
    );
    owner(database).batch_execute(&create).unwrap();
}

/// Inserts an entry for each of these ages in days, by Ada about Bob.
fn insert_aged(admin: &mut PgConnection, days: &str) {
    let insert = format!(
        "INSERT INTO audit_log (at, action, actor_kind, actor_id, subject_kind, subject_id, client_address, request_id)
         SELECT now() - days * interval '1 day', 'user-updated', 'admin', {ADA}, 'user', {BOB}, '203.0.113.1',
            'age-' || days
         FROM {days} AS days"
    );
    admin.batch_execute(&insert).unwrap();
}

#[test]
fn partitions_are_created_months_ahead() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let expected = months(&mut admin, 0, 3);
    assert_eq!(lines(&mut admin, PARTITIONS), expected);
    let drop = format!("DROP TABLE {}, {}", expected[0], expected[3]);
    admin.batch_execute(&drop).unwrap();
    for _ in 0..2 {
        service
            .batch_execute("SELECT create_audit_log_partitions()")
            .unwrap();
        assert_eq!(lines(&mut admin, PARTITIONS), expected);
    }
}

#[test]
fn a_month_is_dropped_when_all_its_entries_are_older_than_the_retention() {
    let database = TestDatabase::users(MIGRATIONS);
    create_former_months(&database, 15);
    let (mut service, mut admin) = connections(&database);
    insert_aged(&mut admin, "generate_series(0, 420, 5)");
    let expected = lines(
        &mut admin,
        "SELECT DISTINCT to_char(at AT TIME ZONE 'UTC', '\"audit_log_\"YYYYMM') AS line
         FROM (SELECT now() - days * interval '1 day' AS at FROM generate_series(0, 40) AS days) AS kept ORDER BY 1",
    );
    let drop = "SELECT drop_audit_log_partition(interval '40 days')::text AS line";
    let count = |service: &mut PgConnection| lines(service, PARTITIONS).len();
    let all = count(&mut service);
    let to_drop = all - expected.len() - 3;
    for left in (all - to_drop..all).rev() {
        let oldest = lines(&mut service, PARTITIONS)[0].clone();
        assert_eq!(lines(&mut service, drop), [oldest]);
        assert_eq!(count(&mut service), left, "one at a time");
    }
    let none = "SELECT coalesce(drop_audit_log_partition(interval '40 days'), 'none') AS line";
    assert_eq!(lines(&mut service, none), ["none"]);
    assert_eq!(lines(&mut admin, PARTITIONS)[..expected.len()], expected);
    let young = "SELECT count(*) FROM audit_log WHERE at >= now() - interval '40 days 1 hour'";
    assert_eq!(number(&mut admin, young), 9);
}

#[test]
fn the_last_thirty_days_cannot_be_dropped() {
    let database = TestDatabase::users(MIGRATIONS);
    create_former_months(&database, 3);
    let (mut service, mut admin) = connections(&database);
    insert_aged(&mut admin, "generate_series(0, 29)");
    for younger in YOUNGER_THAN_30_DAYS {
        let drop = format!("SELECT drop_audit_log_partition({younger})");
        let refusal = refusal(&mut service, &drop);
        assert!(refusal.contains("30 days at least"), "{younger}: {refusal}");
    }
    for _ in 0..5 {
        let drop = "SELECT drop_audit_log_partition(interval '30 days')";
        service.batch_execute(drop).unwrap();
    }
    assert_eq!(number(&mut admin, "SELECT count(*) FROM audit_log"), 30);
}

#[test]
fn the_services_role_has_no_rights_on_partitions() {
    let database = TestDatabase::users(MIGRATIONS);
    create_former_months(&database, 1);
    let (mut service, mut admin) = connections(&database);
    let mut partitions = months(&mut admin, -1, 3);
    partitions.push("audit_log_default".to_owned());
    for partition in partitions {
        for sql in [
            format!("SELECT FROM {partition}"),
            format!("UPDATE {partition} SET request_id = 'other'"),
            format!("DELETE FROM {partition}"),
            format!("TRUNCATE {partition}"),
            format!("DROP TABLE {partition}"),
            format!("ALTER TABLE audit_log DETACH PARTITION {partition}"),
            format!(
                "INSERT INTO {partition} (action, actor_kind, request_id) VALUES ('user-created', 'anonymous', 'r')"
            ),
        ] {
            let refusal = refusal(&mut service, &sql);
            let refused = ["permission denied", "must be owner"];
            assert!(
                refused.iter().any(|words| refusal.contains(words)),
                "{sql}: {refusal}"
            );
        }
    }
    let create = "SELECT create_audit_log_partition('2001-01-01')";
    assert!(refusal(&mut service, create).contains("permission denied"));
}

#[test]
fn entries_of_a_month_without_a_partition_are_kept_like_others() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    for partition in lines(&mut admin, PARTITIONS) {
        admin
            .batch_execute(&format!("DROP TABLE {partition}"))
            .unwrap();
    }
    service.batch_execute(INSERT).unwrap();
    service
        .batch_execute("SELECT create_audit_log_partitions()")
        .unwrap();
    // The rest of this month joins the entry.
    let next_months = months(&mut admin, 1, 3);
    assert_eq!(lines(&mut admin, PARTITIONS), next_months);
    service.batch_execute(INSERT).unwrap();
    assert_eq!(number(&mut service, "SELECT count(*) FROM audit_log"), 2);
    assert_eq!(
        number(&mut admin, "SELECT count(*) FROM audit_log_default"),
        2
    );
    // They are deleted by age, one by one.
    insert_aged(&mut admin, "unnest(ARRAY[39, 41, 500])");
    let prune = "SELECT prune_audit_log(interval '40 days', 1)";
    for expected in [1, 1, 0] {
        assert_eq!(number(&mut service, prune), expected);
    }
    assert_eq!(number(&mut service, "SELECT count(*) FROM audit_log"), 3);
}

#[test]
fn creating_a_partition_does_not_wait_for_inserts() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let expected = lines(&mut admin, PARTITIONS);
    let newest = &expected[3];
    let prepare = format!("DROP TABLE {newest}; BEGIN; {INSERT}");
    admin.batch_execute(&prepare).unwrap();
    service
        .batch_execute("SELECT create_audit_log_partitions()")
        .unwrap();
    assert_eq!(lines(&mut service, PARTITIONS), expected);
    admin.batch_execute("COMMIT").unwrap();
}

#[test]
fn dropping_does_not_wait_for_transactions_that_use_the_log() {
    let database = TestDatabase::users(MIGRATIONS);
    create_former_months(&database, 3);
    let (mut service, mut admin) = connections(&database);
    admin.batch_execute(&format!("BEGIN; {INSERT}")).unwrap();
    // The service's own limit is 8 seconds.
    service
        .batch_execute("SET statement_timeout = '5s'")
        .unwrap();
    let drop = "SELECT drop_audit_log_partition(interval '30 days')";
    let refused = refusal(&mut service, drop);
    assert!(refused.contains("lock timeout"), "{refused}");
    service.batch_execute(INSERT).unwrap();
    admin.batch_execute("COMMIT").unwrap();
    let before = lines(&mut admin, PARTITIONS).len();
    service.batch_execute(drop).unwrap();
    assert_eq!(lines(&mut admin, PARTITIONS).len(), before - 1);
    assert_eq!(number(&mut admin, "SELECT count(*) FROM audit_log"), 2);
}

#[test]
fn deletions_change_entries_of_all_months() {
    let database = TestDatabase::users(MIGRATIONS);
    create_former_months(&database, 2);
    let (mut service, mut admin) = connections(&database);
    // Two rows of each of four months; the oldest has no partition.
    insert_aged(
        &mut admin,
        "unnest(ARRAY(
            SELECT extract(epoch FROM now() - (date_trunc('month', now()) - n * interval '1 month')) / 86400 - 0.5
            FROM unnest(ARRAY[0, 0, 1, 1, 2, 2, 5, 5]) AS n
        ))",
    );
    let partitions = "SELECT count(DISTINCT tableoid) FROM audit_log";
    assert_eq!(number(&mut admin, partitions), 4);
    let forget = format!("SELECT forget_audit_addresses(ARRAY[{ADA}], 3)");
    for expected in [3, 3, 2, 0] {
        assert_eq!(number(&mut service, &forget), expected);
    }
    let left = "SELECT count(*) FROM audit_log WHERE client_address IS NOT NULL";
    assert_eq!(number(&mut admin, left), 0);
    for user in [ADA, BOB] {
        let pseudonymise = format!("SELECT pseudonymise_audit_log({user}, 5)");
        for expected in [5, 3, 0] {
            assert_eq!(number(&mut service, &pseudonymise), expected);
        }
        let pseudonym = format!("substring(sha256({user}) FOR 12)");
        let changed = format!(
            "SELECT count(*) FROM audit_log WHERE {pseudonym} IN (actor_id, subject_id) AND {user} NOT IN (actor_id, subject_id)"
        );
        assert_eq!(number(&mut admin, &changed), 8);
    }
}

#[tokio::test]
async fn the_service_drops_old_months_and_lists_the_others_in_order() {
    let database = TestDatabase::users(MIGRATIONS);
    create_former_months(&database, 6);
    let (_, mut admin) = connections(&database);
    insert_aged(&mut admin, "generate_series(0, 160, 10)");
    let app = Fixture::start_on(database, &[("AUDIT_RETENTION", "70d")]).await;
    let root = app.admin().await;
    let oldest_kept = "SELECT to_char(now() AT TIME ZONE 'UTC' - interval '70 days', '\"audit_log_\"YYYYMM') AS line";
    let oldest_kept = lines(&mut admin, oldest_kept);
    eventually("old months to be dropped", async || {
        let found = lines(&mut app.admin_connection(), PARTITIONS);
        (found[..1] == oldest_kept).then_some(())
    })
    .await;
    for order in ["at:1", "at:-1", "action:1"] {
        let sort = format!("filter=action:user-updated&sort={order}");
        let all = rows(&app.http, &root.token, &format!("?{sort}&limit=100")).await;
        assert!(all.len() >= 8, "the entries of 70 days");
        let mut ages: Vec<i64> = all.iter().map(age).collect();
        if order == "at:-1" {
            ages.reverse();
        }
        assert!(
            ages.is_sorted_by(|older, newer| older > newer),
            "{order}: {ages:?}"
        );
        let mut paged = Vec::new();
        let mut next = Some(format!("/audit?limit=3&{sort}"));
        while let Some(path) = next {
            let reply = app.get(&root, &path).await.expect(200);
            paged.extend(reply.json.as_array().unwrap().clone());
            next = next_page(&reply);
        }
        assert_eq!(paged, all, "{order}");
    }
}

/// The age in days of an entry of [`insert_aged`].
fn age(entry: &Value) -> i64 {
    let id = entry["requestId"].as_str().unwrap();
    id.strip_prefix("age-").unwrap().parse().unwrap()
}
