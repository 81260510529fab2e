//! What a database must be like before anything uses it.

use diesel::dsl::sql;
use diesel::sql_types::{Bool, Nullable, Text};
use diesel::{PgConnection, RunQueryDsl as _};

use crate::MigrationError;
use crate::observer::pg_backend_pid;

/// Checks the database of a connection, while another connection by the same URL is open.
pub(crate) fn check(
    connection: &mut PgConnection,
    other: &mut PgConnection,
    schema: &'static str,
) -> Result<(), MigrationError> {
    check_sessions(connection, other)?;
    check_texts(connection)?;
    check_schema(connection, schema)
}

/// Checks that a connection keeps its process of the server while another one is used. What is set by `SET` when a
/// connection opens, and locks of a session, need that.
fn check_sessions(
    connection: &mut PgConnection,
    other: &mut PgConnection,
) -> Result<(), MigrationError> {
    let process = diesel::select(pg_backend_pid());
    let before: i32 = process.get_result(connection)?;
    let during: i32 = process.get_result(other)?;
    let after: i32 = process.get_result(connection)?;
    if before == during || before != after {
        let message = "a process of the server belongs to several connections: a pooler such as PgBouncer must be in \
                       session mode, or left out of DATABASE_URL";
        return Err(MigrationError::Unusable(message.to_owned()));
    }
    Ok(())
}

/// Checks that the database keeps texts as they are, and finds them as the services do.
fn check_texts(connection: &mut PgConnection) -> Result<(), MigrationError> {
    let encoding = sql::<Text>("SELECT current_setting('server_encoding')");
    let encoding: String = encoding.get_result(connection)?;
    if encoding != "UTF8" {
        return Err(MigrationError::Unusable(format!(
            "the database has the encoding {encoding} and must have UTF8: create it with CREATE DATABASE … \
             ENCODING 'UTF8' TEMPLATE template0"
        )));
    }
    // In Turkish and Azerbaijani it does not.
    let has_usual_case = sql::<Bool>("SELECT lower('I') = 'i'");
    if !has_usual_case.get_result::<bool>(connection)? {
        let message = "the database's locale makes another letter than i of I: create it with CREATE DATABASE … \
                       LOCALE 'C.UTF-8' TEMPLATE template0";
        return Err(MigrationError::Unusable(message.to_owned()));
    }
    warn_of_other_collation(connection)
}

/// Warns if the server now orders texts by other rules than those by which its indexes were built.
fn warn_of_other_collation(connection: &mut PgConnection) -> Result<(), MigrationError> {
    // Postgres 14 does not store the version of the rules.
    let is_stored = sql::<Bool>("SELECT current_setting('server_version_num')::int >= 150000");
    let is_other = sql::<Bool>(
        "SELECT coalesce(datcollversion <> pg_database_collation_actual_version(oid), false)
        FROM pg_database WHERE datname = current_database()",
    );
    if is_stored.get_result::<bool>(connection)? && is_other.get_result::<bool>(connection)? {
        tracing::warn!(
            "the server's operating system orders texts otherwise than before, so searches may miss rows: run REINDEX \
             DATABASE, then ALTER DATABASE … REFRESH COLLATION VERSION"
        );
    }
    Ok(())
}

fn check_schema(
    connection: &mut PgConnection,
    expected: &'static str,
) -> Result<(), MigrationError> {
    let found = sql::<Nullable<Text>>("SELECT current_schema()::text");
    let found: Option<String> = found.get_result(connection)?;
    if found.as_deref() != Some(expected) {
        return Err(MigrationError::Unusable(format!(
            "the role's current schema is {found:?} and must be {expected:?}: run deploy/postgres/bootstrap.sql, which \
             sets its search_path"
        )));
    }
    Ok(())
}
