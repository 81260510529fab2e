use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use app_config::{Reader, Settings};
use diesel::RunQueryDsl as _;
use diesel::connection::Connection as _;
use diesel::r2d2::Pool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use values::Secret;

use crate::connector::{Connector, Door};
use crate::{Connection, Error};

/// Work that may wait for each connection before more is refused.
const WAITING_PER_CONNECTION: usize = 64;

/// Where the database is and how much of it this process may use.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// The role that reads and writes.
    pub url: Secret,
    /// The role that owns the schema and migrates it.
    pub owner_url: Option<Secret>,
    /// Connections, and threads that use them.
    pub pool_size: u32,
    /// How long work may wait for a connection.
    pub timeout: Duration,
}

impl Settings for DatabaseSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            url: reader.required(
                "DATABASE_URL",
                "the Postgres url of the service's role, `postgres://role:password@host:5432/countersign`.",
            )?,
            owner_url: reader.optional(
                "DATABASE_OWNER_URL",
                "The Postgres url of the role that owns the schema and runs migrations; DATABASE_URL when not set.",
            )?,
            pool_size: reader.in_range(
                "DATABASE_POOL_SIZE",
                "32",
                "a whole number from 1 to 200",
                "Connections to Postgres at the most; those of all processes together must stay below its `max_connections`.",
                |size| (1..=200).contains(size),
            )?,
            timeout: reader.or_default(
                "DATABASE_TIMEOUT",
                "3s",
                "How long work waits for a connection before it is refused with 503.",
            )?,
        })
    }
}

/// The pool; when its last user has gone, no connection is being opened any more.
struct Sessions {
    pool: Pool<Connector>,
    door: Door,
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.door.shut();
    }
}

/// A pool of connections and the threads that may use them.
#[derive(Clone)]
pub struct Database {
    sessions: Arc<Sessions>,
    permits: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    max_waiting: usize,
    timeout: Duration,
}

impl Database {
    /// A pool that connects in the background: a database that is away does not stop the start.
    #[must_use]
    pub fn connect(settings: &DatabaseSettings) -> Self {
        Self::connect_with(settings, "")
    }

    /// Like [`Database::connect`]; each connection runs `at_start` first, `SET` statements for example.
    #[must_use]
    pub fn connect_with(settings: &DatabaseSettings, at_start: &'static str) -> Self {
        let door = Door::default();
        let connector = Connector::new(settings, at_start, door.clone());
        let size = settings.pool_size as usize;
        let pool = Pool::builder()
            .max_size(settings.pool_size)
            .min_idle(Some(1))
            .connection_timeout(settings.timeout)
            .build_unchecked(connector);
        Self {
            sessions: Arc::new(Sessions { pool, door }),
            permits: Arc::new(Semaphore::new(size)),
            waiting: Arc::default(),
            max_waiting: size * WAITING_PER_CONNECTION,
            timeout: settings.timeout,
        }
    }

    /// Runs a closure with a connection, on a thread for blocking work.
    ///
    /// # Errors
    /// What the closure returns, or [`Error`] when there is no connection for it.
    pub async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let waited = Instant::now();
        let permit = self.permit().await?;
        metrics::histogram!("database_wait_seconds").record(waited.elapsed().as_secs_f64());
        let sessions = Arc::clone(&self.sessions);
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            span.in_scope(|| {
                let mut session = sessions.pool.get().map_err(Error::from)?;
                let done = work(&mut session.connection);
                session.used(done.is_ok());
                done
            })
        });
        done.await.unwrap_or_else(|_| Err(Error::Panicked.into()))
    }

    /// Like [`Database::run`], in one transaction that an error rolls back.
    ///
    /// # Errors
    /// What the closure returns, or [`Error`] when there is no connection for it or the commit fails.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.run(move |connection| transaction(connection, work))
            .await
    }

    /// Whether a statement can be run now.
    pub async fn is_usable(&self) -> bool {
        let ping = |connection: &mut Connection| {
            diesel::sql_query("SELECT 1").execute(connection)?;
            Ok::<_, Error>(())
        };
        self.run(ping).await.is_ok()
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let place = Place::take(&self.waiting, self.max_waiting).ok_or(Error::Busy)?;
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(self.timeout, permit).await;
        drop(place);
        permit.ok().and_then(Result::ok).ok_or(Error::Busy)
    }
}

/// Runs a closure in a transaction that an error rolls back: a savepoint, inside another transaction.
///
/// # Errors
/// What the closure returns, or [`Error`] when the transaction cannot begin or commit.
pub fn transaction<T, E: From<Error>>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    let done = connection.transaction(|connection| work(connection).map_err(Failure::Work));
    done.map_err(|failure| match failure {
        Failure::Work(error) => error,
        Failure::Transaction(error) => Error::from(error).into(),
    })
}

/// What ended a transaction without a commit: the work, or the transaction itself.
enum Failure<E> {
    Work(E),
    Transaction(diesel::result::Error),
}

impl<E> From<diesel::result::Error> for Failure<E> {
    fn from(error: diesel::result::Error) -> Self {
        Self::Transaction(error)
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

/// A place in the line for a connection; given back when dropped, also when the caller goes away.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, max: usize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::AcqRel);
        let place = Self(waiting);
        (before < max).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
