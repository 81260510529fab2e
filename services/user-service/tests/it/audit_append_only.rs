//! The rights of the service's role on the audit log.

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use diesel::{Connection as _, PgConnection, QueryableByName, RunQueryDsl as _};
use testkit::{TestConnection, TestDatabase};
use user_service::MIGRATIONS;

const INSERT: &str = "INSERT INTO audit_log (action, actor_kind, client_address, request_id)
    VALUES ('user-created', 'anonymous', '203.0.113.7', 'r')";

/// Retention periods that the owner's functions refuse.
pub(crate) const YOUNGER_THAN_30_DAYS: [&str; 5] = [
    "interval '29 days'",
    "interval '0'",
    "interval '-1 day'",
    "NULL",
    // Compares as 530 days, but subtracting it leads to the day before yesterday.
    "interval '-100 years 36526 days'",
];

pub(crate) fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    let row: Number = diesel::sql_query(format!("SELECT ({sql}) AS number"))
        .get_result(connection)
        .unwrap();
    row.number
}

/// The service's own connection, and the superuser's.
pub(crate) fn connections(database: &TestDatabase) -> (PgConnection, TestConnection) {
    let service = PgConnection::establish(database.users_url().expose()).unwrap();
    let mut admin = database.admin();
    admin.batch_execute("SET search_path = users").unwrap();
    (service, admin)
}

pub(crate) fn refusal(connection: &mut PgConnection, sql: &str) -> String {
    connection.batch_execute(sql).unwrap_err().to_string()
}

#[test]
fn the_services_role_can_only_insert_and_read() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    service.batch_execute(INSERT).unwrap();
    for sql in [
        "UPDATE audit_log SET request_id = 'other'",
        "UPDATE audit_log SET client_address = NULL",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "ALTER TABLE audit_log ADD COLUMN more text",
        "DROP TABLE audit_log",
        "SELECT FROM audit_log FOR UPDATE",
        "INSERT INTO audit_log (action, actor_kind, request_id, at)
            VALUES ('user-created', 'anonymous', 'r', now() - interval '1 year')",
        "INSERT INTO audit_log (action, actor_kind, request_id, id) OVERRIDING SYSTEM VALUE
            VALUES ('user-created', 'anonymous', 'r', 1)",
        "INSERT INTO audit_log (action, actor_kind, request_id) VALUES ('user-created', 'anonymous', 'r')
            ON CONFLICT (at, id) DO UPDATE SET request_id = 'other'",
    ] {
        let refusal = refusal(&mut service, sql);
        let refused = ["permission denied", "must be owner"];
        assert!(
            refused.iter().any(|words| refusal.contains(words)),
            "{sql}: {refusal}"
        );
    }
    assert_eq!(
        number(
            &mut admin,
            "SELECT count(*) FROM audit_log WHERE request_id = 'r'"
        ),
        1
    );
    assert_eq!(number(&mut service, "SELECT count(*) FROM audit_log"), 1);
}

#[test]
fn pruning_deletes_the_oldest_rows_but_none_of_the_last_thirty_days() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let aged = "INSERT INTO audit_log (at, action, actor_kind, subject_kind, subject_id, request_id)
        SELECT now() - days * interval '1 day', 'user-created', 'anonymous', 'user', substring(sha256('x') FOR 12), 'r'
        FROM unnest(ARRAY[1, 29, 31, 50, 60]) AS days";
    admin.batch_execute(aged).unwrap();
    for younger in YOUNGER_THAN_30_DAYS {
        let refusal = refusal(
            &mut service,
            &format!("SELECT prune_audit_log({younger}, 100)"),
        );
        assert!(refusal.contains("30 days at least"), "{younger}: {refusal}");
    }
    let prune = "SELECT prune_audit_log(interval '40 days', 1)";
    assert_eq!(number(&mut service, prune), 1);
    let oldest = "SELECT extract(day FROM now() - min(at))::bigint FROM audit_log";
    assert_eq!(number(&mut service, oldest), 50);
    let prune = "SELECT prune_audit_log(interval '30 days', 100)";
    assert_eq!(number(&mut service, prune), 2);
    assert_eq!(number(&mut service, oldest), 29);
    assert_eq!(number(&mut service, prune), 0);
}

#[test]
fn what_unknown_callers_did_to_no_user_is_kept_for_thirty_days_only() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let user = format!("'\\x{:024x}'", 1);
    admin
        .batch_execute(&format!(
            "INSERT INTO audit_log (at, action, actor_kind, actor_id, subject_kind, subject_id, request_id)
            SELECT now() - days * interval '1 day', action, kind, actor, subject_kind, subject, label
            FROM unnest(ARRAY[29, 31, 50, 60]) AS days, (VALUES
                ('sign-in-refused', 'anonymous', NULL::bytea, NULL, NULL::bytea, 'about no user'),
                ('sign-in-refused', 'anonymous', NULL, 'user', {user}, 'about a user'),
                ('sign-in-refused', 'user', {user}, NULL, NULL, 'by a user'),
                ('tokens-revoked', 'service', NULL, NULL, NULL, 'by an operator')
            ) AS row (action, kind, actor, subject_kind, subject, label)"
        ))
        .unwrap();
    // Together with older rows about users, at most as many as asked for.
    let prune = "SELECT prune_audit_log(interval '55 days', 2)";
    for pruned in [2, 2, 2, 0] {
        assert_eq!(number(&mut service, prune), pruned);
    }
    let left = |label| format!("SELECT count(*) FROM audit_log WHERE request_id = '{label}'");
    assert_eq!(number(&mut admin, &left("about no user")), 1);
    assert_eq!(number(&mut admin, &left("about a user")), 3);
    assert_eq!(number(&mut admin, &left("by a user")), 3);
    assert_eq!(number(&mut admin, &left("by an operator")), 3);
}

#[test]
fn forgetting_removes_only_the_addresses_of_one_user() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let (ada, bob) = (format!("'\\x{:024x}'", 1), format!("'\\x{:024x}'", 2));
    admin
        .batch_execute(&format!(
            "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, client_address, request_id)
             VALUES ('signed-in', 'user', {ada}, 'user', {ada}, '203.0.113.1', 'own'),
                ('user-updated', 'admin', {ada}, 'user', {bob}, '203.0.113.1', 'of another'),
                ('sign-in-refused', 'anonymous', NULL, 'user', {ada}, '203.0.113.1', 'by an unknown actor'),
                ('user-updated', 'admin', {bob}, 'user', {ada}, '203.0.113.2', 'by another'),
                ('signed-in', 'user', {bob}, 'user', {bob}, '203.0.113.2', 'of another')"
        ))
        .unwrap();
    let forget = format!("SELECT forget_audit_addresses(ARRAY[{ada}]::bytea[], 2)");
    assert_eq!(number(&mut service, &forget), 2);
    assert_eq!(number(&mut service, &forget), 1);
    assert_eq!(number(&mut service, &forget), 0);
    let bobs = "SELECT count(*) FROM audit_log WHERE host(client_address) = '203.0.113.2'";
    assert_eq!(number(&mut service, bobs), 2);
    let forgotten = "SELECT count(*) FROM audit_log WHERE client_address IS NULL AND id <= 3";
    assert_eq!(number(&mut service, forgotten), 3);
}

#[test]
fn forgetting_addresses_does_not_wait() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let ada = format!("'\\x{:024x}'", 1);
    admin
        .batch_execute(&format!(
            "INSERT INTO audit_log (action, actor_kind, subject_kind, subject_id, client_address, request_id)
             VALUES ('user-updated', 'anonymous', 'user', {ada}, '203.0.113.1', 'free'),
                ('user-updated', 'anonymous', 'user', {ada}, '203.0.113.1', 'held')"
        ))
        .unwrap();
    admin
        .batch_execute("BEGIN; SELECT FROM audit_log WHERE request_id = 'held' FOR UPDATE")
        .unwrap();
    service.batch_execute("SET lock_timeout = '2s'").unwrap();
    let forget = format!("SELECT forget_audit_addresses(ARRAY[{ada}]::bytea[], 10)");
    assert_eq!(number(&mut service, &forget), 1);
    admin.batch_execute("COMMIT").unwrap();
    assert_eq!(number(&mut service, &forget), 1);
}

#[test]
fn pseudonymising_two_users_who_changed_each_other_does_not_wait() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let (ada, bob) = (format!("'\\x{:024x}'", 1), format!("'\\x{:024x}'", 2));
    admin
        .batch_execute(&format!(
            "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, client_address, request_id)
             VALUES ('user-updated', 'admin', {ada}, 'user', {bob}, '203.0.113.1', 'both'),
                ('user-updated', 'admin', {bob}, 'user', {ada}, '203.0.113.2', 'both'),
                ('signed-in', 'user', {ada}, 'user', {ada}, '203.0.113.1', 'ada'),
                ('signed-in', 'user', {bob}, 'user', {bob}, '203.0.113.2', 'bob'),
                ('sign-in-refused', 'anonymous', NULL, 'user', {bob}, '203.0.113.3', 'bob')"
        ))
        .unwrap();
    let pseudonymise = |who: &str| format!("SELECT pseudonymise_audit_log({who}, 100)");
    service.batch_execute("BEGIN").unwrap();
    assert_eq!(number(&mut service, &pseudonymise(&ada)), 3);
    let mut other = PgConnection::establish(database.users_url().expose()).unwrap();
    other.batch_execute("SET lock_timeout = '2s'").unwrap();
    assert_eq!(number(&mut other, &pseudonymise(&bob)), 2);
    service.batch_execute("COMMIT").unwrap();
    assert_eq!(number(&mut other, &pseudonymise(&bob)), 2);
    assert_eq!(number(&mut other, &pseudonymise(&bob)), 0);
    let left = "SELECT count(*) FROM audit_log WHERE client_address IS NOT NULL
        OR actor_id < '\\x01' OR subject_id < '\\x01'";
    assert_eq!(number(&mut admin, left), 0);
}

#[test]
fn pseudonymising_changes_at_most_the_given_number_of_rows() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    let ada = format!("'\\x{:024x}'", 1);
    admin
        .batch_execute(&format!(
            "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, request_id)
             SELECT 'user-updated', 'admin', {ada}::bytea, 'user', {ada}::bytea, 'r' FROM generate_series(1, 5)
             UNION ALL
             SELECT 'user-created', 'anonymous', NULL::bytea, 'user', {ada}::bytea, 'r' FROM generate_series(1, 4)"
        ))
        .unwrap();
    let pseudonymise = format!("SELECT pseudonymise_audit_log({ada}, 3)");
    for expected in [3, 3, 3, 0] {
        assert_eq!(number(&mut service, &pseudonymise), expected);
    }
}

#[test]
fn a_temporary_table_of_the_caller_does_not_redirect_the_owners_functions() {
    let database = TestDatabase::users(MIGRATIONS);
    let (mut service, mut admin) = connections(&database);
    admin
        .batch_execute(
            "INSERT INTO audit_log (at, action, actor_kind, request_id)
            VALUES (now() - interval '1 year', 'user-created', 'anonymous', 'r')",
        )
        .unwrap();
    let shadow = "CREATE TEMPORARY TABLE audit_log (LIKE users.audit_log);
        SET search_path = pg_temp, users";
    service.batch_execute(shadow).unwrap();
    let prune = "SELECT users.prune_audit_log(interval '40 days', 10)";
    assert_eq!(number(&mut service, prune), 1);
    assert_eq!(number(&mut admin, "SELECT count(*) FROM audit_log"), 0);
}
