use std::time::{Duration, Instant};

use app_config::SettingValue as _;
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::migration::{Migration, MigrationSource};
use diesel::pg::Pg;
use diesel::sql_types::{Bool, Text};
use diesel::{Connection as _, ConnectionError, PgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _};

use telemetry::Outage;
use values::Secret;

use crate::availability::is_read_only;
use crate::connector::with_timeouts;
use crate::settings::PostgresUrl;
use crate::{DatabaseSettings, Error, StatementLimits, observer, requirements};

/// The advisory lock that all replicas of all services take before they migrate.
const LOCK: i64 = 0x636f_756e_7465_7273;
/// How long to wait for a database that is still starting, and for migrations that another process runs.
const MAX_WAIT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);
/// How long to wait while another process migrates, which may copy a large table.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(6 * 60 * 60);
/// A migration waits only shortly for the lock of a table, because later statements on the table wait behind it.
const MAX_TABLE_LOCK_WAIT: Duration = Duration::from_secs(3);
/// A migration outside of a transaction builds or drops an index concurrently. It waits for earlier transactions to end,
/// and no statement waits behind it.
const MAX_WAIT_OUTSIDE_TRANSACTIONS: Duration = Duration::from_secs(10 * 60);
/// How often a migration is tried that does not get its locks, and how long other statements have the table
/// between two attempts.
const MAX_ATTEMPTS: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_secs(2);
/// Otherwise the server ends the statement of a process that was killed only when it has a result, and its locks stay
/// until then.
const END_WITH_PROCESS: &str =
    "SET client_connection_check_interval = '2s'; SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// Why a schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The database was unavailable for a minute.
    #[error("the database is unavailable")]
    Connect(#[from] ConnectionError),
    /// The database is not as this version needs it. The text says what to do about it.
    #[error("{0}")]
    Unusable(String),
    /// A statement around the migrations failed.
    #[error(transparent)]
    Database(#[from] Error),
    /// Another process has been migrating for six hours.
    #[error("another process has been running migrations for six hours")]
    Busy,
    /// A migration failed; it was rolled back, or left no index behind.
    #[error("a migration failed")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The migrating thread panicked.
    #[error("the migrating thread panicked")]
    Panicked,
}

impl MigrationError {
    /// No process that may migrate has run this migration.
    fn lacks(schema: &str, version: &str) -> Self {
        Self::Unusable(format!(
            "the schema {schema:?} lacks the migration {version}: run the command `migrate` of the service that owns it, \
             or set DATABASE_OWNER_URL"
        ))
    }
}

impl From<diesel::result::Error> for MigrationError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Prepares a schema for this version before its first statement: runs the pending migrations if the settings have
/// the URL of the owner, and otherwise waits until another process has run them. Migrations of later versions are
/// ignored.
///
/// # Errors
/// The database is unavailable for a minute, the schema is older than the first migration, a migration fails, or one
/// that this process may not run is missing for a minute.
pub async fn prepare_schema(
    settings: &DatabaseSettings,
    schema: &'static str,
    migrations: EmbeddedMigrations,
) -> Result<(), MigrationError> {
    let Some(owner_url) = &settings.owner_url else {
        return on_connection(&settings.url, schema, connect, move |connection| {
            wait_until_migrated(connection, schema, &migrations)
        })
        .await;
    };
    migrate(owner_url, schema, migrations).await?;
    // The pool does not connect as the owner does, and perhaps through a pooler.
    on_connection(&settings.url, schema, connect, |_| Ok(())).await
}

/// Runs the pending migrations of a schema as the role that owns it. Processes that start at the same time
/// wait for each other, and all but the first find nothing to do.
///
/// A migration that does not get a lock within three seconds is rolled back and tried again, so that it does not
/// hold up the statements of running processes. If this process is killed, the server ends what it runs within seconds.
///
/// A migration whose `metadata.toml` has `run_in_transaction = false` must be one statement that does nothing the second
/// time, such as `CREATE INDEX CONCURRENTLY IF NOT EXISTS`. An invalid index of an attempt that failed is dropped.
///
/// # Errors
/// The database is unavailable for a minute, the schema is older than the first migration, a migration fails, or another
/// process migrates for hours.
pub async fn migrate(
    owner_url: &Secret,
    schema: &'static str,
    migrations: EmbeddedMigrations,
) -> Result<(), MigrationError> {
    on_connection(owner_url, schema, connect, move |connection| {
        // Servers of some systems cannot do it, and refuse it.
        let _ = connection.batch_execute(END_WITH_PROCESS);
        take_lock(connection)?;
        run_pending(connection, schema, &migrations)
    })
    .await
}

/// Checks at once whether a service could use its schema, and changes nothing. Returns the version of the server.
///
/// # Errors
/// The database is unavailable, or does not have what [`prepare_schema`] waits for.
pub async fn check_schema(
    url: &Secret,
    schema: &'static str,
    migrations: EmbeddedMigrations,
) -> Result<String, MigrationError> {
    // libpq's message about a URL may have its password.
    PostgresUrl::parse(url.expose()).map_err(MigrationError::Unusable)?;
    on_connection(
        url,
        schema,
        connect_to_primary,
        move |connection| match first_missing(connection, schema, &needed_versions(&migrations)?)? {
            Some(version) => Err(MigrationError::lacks(schema, &version)),
            None => Ok(sql::<Text>("SHOW server_version").get_result(connection)?),
        },
    )
    .await
}

/// Runs `work` on a thread for blocking work, with a connection of its own to the schema. For a minute, it is run again if
/// the connection was lost before a migration, as to a server that stops: the process that asks need not end with it.
async fn on_connection<T: Send + 'static>(
    url: &Secret,
    schema: &'static str,
    connect: fn(&str) -> Result<PgConnection, MigrationError>,
    work: impl Fn(&mut PgConnection) -> Result<T, MigrationError> + Send + 'static,
) -> Result<T, MigrationError> {
    let url = url.clone();
    let run = move || {
        let mut connection = connect(url.expose())?;
        requirements::check(&mut connection, &mut connect(url.expose())?, schema)?;
        work(&mut connection)
    };
    let work = tokio::task::spawn_blocking(move || {
        let started = Instant::now();
        loop {
            match run() {
                Err(MigrationError::Database(error @ Error::Lost(_)))
                    if started.elapsed() < MAX_WAIT =>
                {
                    tracing::warn!(?error, "the connection was lost; connecting again");
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    });
    work.await.unwrap_or(Err(MigrationError::Panicked))
}

/// Takes the lock for migrations. Closing the connection releases it.
///
/// No statement waits for it on the server: who builds an index concurrently has the lock and waits for all statements
/// under way, so the two would wait for each other.
fn take_lock(connection: &mut PgConnection) -> Result<(), MigrationError> {
    let waiting = Outage::new("waiting for the migrations of another process");
    let started = Instant::now();
    let take = sql::<Bool>(&format!("SELECT pg_try_advisory_lock({LOCK})"));
    while !take.clone().get_result::<bool>(connection)? {
        if started.elapsed() > MAX_LOCK_WAIT {
            return Err(MigrationError::Busy);
        }
        waiting.fail(&format_args!("it has the lock"));
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn wait_until_migrated(
    connection: &mut PgConnection,
    schema: &'static str,
    migrations: &EmbeddedMigrations,
) -> Result<(), MigrationError> {
    let needed = needed_versions(migrations)?;
    let (started, waiting) = (Instant::now(), Outage::new("waiting for a migration"));
    while let Some(version) = first_missing(connection, schema, &needed)? {
        if started.elapsed() > MAX_WAIT {
            return Err(MigrationError::lacks(schema, &version));
        }
        waiting.fail(&format_args!("{schema} lacks {version}"));
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn needed_versions(migrations: &EmbeddedMigrations) -> Result<Vec<String>, MigrationError> {
    let migrations: Vec<Box<dyn Migration<Pg>>> =
        migrations.migrations().map_err(MigrationError::Migration)?;
    let mut versions: Vec<_> = migrations
        .iter()
        .map(|migration| migration.name().version().to_string())
        .collect();
    versions.sort();
    Ok(versions)
}

/// The first of the versions that is not in diesel's table of migrations. diesel would create the table, which only the
/// owner may.
fn first_missing(
    connection: &mut PgConnection,
    schema: &'static str,
    needed: &[String],
) -> Result<Option<String>, MigrationError> {
    let exists = sql::<Bool>("SELECT to_regclass('__diesel_schema_migrations') IS NOT NULL");
    let applied: Vec<String> = if exists.get_result(connection)? {
        sql::<Text>("SELECT version FROM __diesel_schema_migrations").load(connection)?
    } else {
        Vec::new()
    };
    let is_missing = |version: &&String| !applied.contains(version);
    let missing = needed.iter().find(is_missing);
    // The first migration replaced earlier ones.
    if !applied.is_empty() && missing.is_some() && missing == needed.first() {
        return Err(MigrationError::Unusable(format!(
            "the schema {schema:?} was last migrated by a version before the one that this version can be upgraded \
             from: upgrade it step by step, as deploy/UPGRADING.md says"
        )));
    }
    Ok(missing.cloned())
}

/// Migrations that may be asked for again.
struct Borrowed<'a>(&'a EmbeddedMigrations);

impl MigrationSource<Pg> for Borrowed<'_> {
    fn migrations(&self) -> diesel::migration::Result<Vec<Box<dyn Migration<Pg>>>> {
        self.0.migrations()
    }
}

fn run_pending(
    connection: &mut PgConnection,
    schema: &'static str,
    migrations: &EmbeddedMigrations,
) -> Result<(), MigrationError> {
    first_missing(connection, schema, &needed_versions(migrations)?)?;
    let pending = connection.pending_migrations(Borrowed(migrations));
    for migration in pending.map_err(MigrationError::Migration)? {
        run_with_retries(connection, &migration)?;
        tracing::info!(schema, version = %migration.name(), "migrated");
    }
    Ok(())
}

fn run_with_retries(
    connection: &mut PgConnection,
    migration: &dyn Migration<Pg>,
) -> Result<(), MigrationError> {
    let limits = StatementLimits {
        statement: None,
        lock: match migration.metadata().run_in_transaction() {
            true => MAX_TABLE_LOCK_WAIT,
            false => MAX_WAIT_OUTSIDE_TRANSACTIONS,
        },
    };
    observer::limit_statements(connection, limits)?;
    let mut attempt = 1;
    while let Err(error) = run_once(connection, migration) {
        if observer::take_outcome(connection).ended.is_none() || attempt == MAX_ATTEMPTS {
            return Err(MigrationError::Migration(error));
        }
        tracing::warn!(%error, attempt, "a migration did not get its locks; trying again");
        attempt += 1;
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(())
}

fn run_once(
    connection: &mut PgConnection,
    migration: &dyn Migration<Pg>,
) -> diesel::migration::Result<()> {
    if migration.metadata().run_in_transaction() {
        return connection.run_migration(migration).map(drop);
    }
    // An attempt may have ended with its process.
    drop_invalid_indexes(connection)?;
    let run = connection.run_migration(migration).map(drop);
    if run.is_err() {
        let outcome = observer::take_outcome(connection);
        // Also an invalid index is updated with each row, and a unique one refuses rows.
        if let Err(error) = drop_invalid_indexes(connection) {
            tracing::error!(%error, "an invalid index was not dropped");
        }
        observer::put_outcome(connection, outcome);
    }
    run
}

/// Drops the indexes that a concurrent build left unfinished, except those that a connection of this role is building.
fn drop_invalid_indexes(connection: &mut PgConnection) -> Result<(), diesel::result::Error> {
    let invalid: Vec<String> = sql::<Text>(
        "SELECT format('%I.%I', relnamespace::regnamespace, relname)
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE NOT indisvalid AND relkind = 'i' AND relnamespace = current_schema()::regnamespace
            AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index WHERE index_relid IS NOT NULL)",
    )
    .load(connection)?;
    for name in invalid {
        connection.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}"))?;
        tracing::warn!(name, "dropped an index whose build had failed");
    }
    Ok(())
}

/// Waits until the database can be reached and changed.
fn connect(url: &str) -> Result<PgConnection, MigrationError> {
    let (started, waiting) = (Instant::now(), Outage::new("waiting for the database"));
    loop {
        match connect_to_primary(url) {
            Ok(connection) => {
                waiting.end();
                return Ok(connection);
            }
            Err(error) if started.elapsed() > MAX_WAIT => return Err(error),
            Err(error) => {
                waiting.fail(&error);
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn connect_to_primary(url: &str) -> Result<PgConnection, MigrationError> {
    let mut connection = PgConnection::establish(&with_timeouts(url, CONNECT_TIMEOUT))?;
    if is_read_only(&mut connection)? {
        let message = "the database is read-only: it is a standby, or default_transaction_read_only is on; \
                       DATABASE_URL must lead to the primary";
        return Err(MigrationError::Unusable(message.to_owned()));
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{MigrationError, connect_to_primary};

    #[test]
    fn a_server_that_never_answers_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let connected = connect_to_primary(&format!("postgres://a:b@127.0.0.1:{port}/d"));
        assert!(matches!(connected, Err(MigrationError::Connect(_))));
    }
}
