use std::time::{Duration, Instant};

use diesel::migration::Migration;
use diesel::pg::Pg;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::{Connection as _, ConnectionError, PgConnection, QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _};

use crate::{DatabaseSettings, StatementLimits, observer};

/// The advisory lock that all replicas of all services take before they migrate.
const LOCK: i64 = 0x636f_756e_7465_7273;
/// How long to wait for a database that is still starting.
const MAX_WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);
/// A migration waits only shortly for the lock of a table, because later statements on the table wait behind it.
const LIMITS: StatementLimits = StatementLimits {
    statement: None,
    lock: Duration::from_secs(3),
};
/// How often a migration is tried that does not get its locks, and how long other statements have the table
/// between two attempts.
const MAX_ATTEMPTS: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_secs(2);

/// Why a schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The database was unavailable for a minute.
    #[error("the database is unavailable")]
    Connect(#[from] ConnectionError),
    /// The search path of the role leads to another schema.
    #[error(
        "the role's current schema is {found:?} and must be {expected:?}: run deploy/postgres/bootstrap.sql, which sets its search_path"
    )]
    WrongSchema {
        /// The schema that the service owns.
        expected: &'static str,
        /// The first schema of the role's search path that exists.
        found: Option<String>,
    },
    /// A statement around the migrations failed.
    #[error("the migration lock could not be taken")]
    Lock(#[from] diesel::result::Error),
    /// A migration failed; it was rolled back.
    #[error("a migration failed")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The migrating thread panicked.
    #[error("the migrating thread panicked")]
    Panicked,
}

/// Runs the pending migrations of a schema as the role that owns it. Replicas that start at the same time
/// wait for each other, and all but the first find nothing to do.
///
/// A migration that does not get a lock within three seconds is rolled back and tried again, so that it does not
/// hold up the statements of running replicas.
///
/// # Errors
/// The database is unavailable for a minute, or a migration fails.
pub async fn migrate(
    settings: &DatabaseSettings,
    schema: &'static str,
    migrations: EmbeddedMigrations,
) -> Result<(), MigrationError> {
    let url = settings.owner_url.as_ref().unwrap_or(&settings.url).clone();
    let work = tokio::task::spawn_blocking(move || {
        let mut connection = connect(url.expose())?;
        check_schema(&mut connection, schema)?;
        // Closing the connection releases the lock.
        diesel::sql_query("SELECT pg_advisory_lock($1)")
            .bind::<BigInt, _>(LOCK)
            .execute(&mut connection)?;
        observer::limit_statements(&mut connection, LIMITS)?;
        run_pending(&mut connection, schema, migrations)
    });
    work.await.unwrap_or(Err(MigrationError::Panicked))
}

fn run_pending(
    connection: &mut PgConnection,
    schema: &'static str,
    migrations: EmbeddedMigrations,
) -> Result<(), MigrationError> {
    let pending = connection
        .pending_migrations(migrations)
        .map_err(MigrationError::Migration)?;
    for migration in pending {
        run_with_retries(connection, &migration)?;
        tracing::info!(schema, version = %migration.name(), "migrated");
    }
    Ok(())
}

fn run_with_retries(
    connection: &mut PgConnection,
    migration: &dyn Migration<Pg>,
) -> Result<(), MigrationError> {
    let mut attempt = 1;
    while let Err(error) = connection.run_migration(migration).map(drop) {
        if observer::take_outcome(connection).ended.is_none() || attempt == MAX_ATTEMPTS {
            return Err(MigrationError::Migration(error));
        }
        tracing::warn!(%error, attempt, "a migration did not get its locks; trying again");
        attempt += 1;
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(())
}

fn connect(url: &str) -> Result<PgConnection, ConnectionError> {
    let started = Instant::now();
    loop {
        match PgConnection::establish(url) {
            Ok(connection) => return Ok(connection),
            Err(error) if started.elapsed() > MAX_WAIT => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "waiting for the database");
                std::thread::sleep(PAUSE);
            }
        }
    }
}

#[derive(QueryableByName)]
struct CurrentSchema {
    #[diesel(sql_type = Nullable<Text>)]
    name: Option<String>,
}

fn check_schema(
    connection: &mut PgConnection,
    expected: &'static str,
) -> Result<(), MigrationError> {
    let current: CurrentSchema =
        diesel::sql_query("SELECT current_schema()::text AS name").get_result(connection)?;
    if current.name.as_deref() == Some(expected) {
        Ok(())
    } else {
        Err(MigrationError::WrongSchema {
            expected,
            found: current.name,
        })
    }
}
