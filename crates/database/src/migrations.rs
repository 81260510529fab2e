use std::time::{Duration, Instant};

use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::{Connection as _, ConnectionError, PgConnection, QueryableByName, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _};

use crate::DatabaseSettings;

/// The advisory lock that all replicas of all services take before they migrate.
const LOCK: i64 = 0x636f_756e_7465_7273;
/// How long to wait for a database that is still starting.
const MAX_WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

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
        diesel::sql_query("SELECT pg_advisory_lock($1)")
            .bind::<BigInt, _>(LOCK)
            .execute(&mut connection)?;
        // Closing the connection releases the lock.
        let applied = connection
            .run_pending_migrations(migrations)
            .map_err(MigrationError::Migration)?;
        for version in applied {
            tracing::info!(schema, %version, "migrated");
        }
        Ok(())
    });
    work.await.unwrap_or(Err(MigrationError::Panicked))
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
