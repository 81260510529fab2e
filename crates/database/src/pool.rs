use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::Connection as _;
use diesel::r2d2::{ConnectionManager, NopErrorHandler, Pool};
use diesel::result::Error as DieselError;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::availability::{Availability, UNREACHABLE};
use crate::connector::{ConnectGate, Connector, with_timeouts};
use crate::{Connection, DatabaseSettings, Error, StatementLimits};

/// How many closures may wait for each connection before more are refused.
const WAITING_PER_CONNECTION: usize = 64;

/// The pool. Once its last user has dropped it, no thread opens a new connection.
struct Sessions {
    pool: Pool<Connector>,
    gate: ConnectGate,
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.gate.close();
    }
}

/// A pool of connections, and a limit for the threads that use them.
#[derive(Clone)]
pub struct Database {
    sessions: Arc<Sessions>,
    availability: Arc<Availability>,
    permits: Arc<Semaphore>,
    /// One for each caller that may still wait.
    waiting: Arc<Semaphore>,
    max_waiting: usize,
    /// How long a closure waits for a connection.
    pub(crate) timeout: Duration,
}

/// The two pools of a service.
#[derive(Clone)]
pub struct ServicePools {
    /// For everything but lists.
    pub database: Database,
    /// For lists and counts, so that slow ones leave the connections of other requests alone.
    pub lists: Database,
}

impl ServicePools {
    /// Creates the pools of a service, which together have the connections that the settings allow. A quarter of
    /// them, at least one, are for lists. Each new one of the others first runs the statements `on_connect`.
    pub fn connect(settings: &DatabaseSettings, on_connect: &'static str) -> Self {
        let lists = (settings.pool_size / 4).max(1);
        let others = settings.pool_size.saturating_sub(lists).max(1);
        let availability = Arc::<Availability>::default();
        let connect = |pool_size, on_connect| {
            let settings = DatabaseSettings {
                pool_size,
                ..settings.clone()
            };
            let availability = Arc::clone(&availability);
            Database::open(
                &settings,
                StatementLimits::SERVICE,
                on_connect,
                availability,
            )
        };
        Self {
            database: connect(others, on_connect),
            lists: connect(lists, ""),
        }
    }

    /// Sets the gauges of both pools.
    pub fn record_gauges(&self) {
        self.database.record_gauges("main");
        self.lists.record_gauges("lists");
    }
}

impl Database {
    /// Creates the pool of a worker. It connects in the background, so an unavailable database does not stop the
    /// start.
    pub fn connect(settings: &DatabaseSettings) -> Self {
        Self::connect_with(settings, StatementLimits::WORKER, "")
    }

    /// Creates a pool like [`Database::connect`], with other limits. Each new connection first runs the statements
    /// `on_connect`, such as `SET`.
    pub fn connect_with(
        settings: &DatabaseSettings,
        limits: StatementLimits,
        on_connect: &'static str,
    ) -> Self {
        Self::open(settings, limits, on_connect, Arc::default())
    }

    fn open(
        settings: &DatabaseSettings,
        limits: StatementLimits,
        on_connect: &'static str,
        availability: Arc<Availability>,
    ) -> Self {
        let gate = ConnectGate::default();
        let connector = Connector {
            manager: ConnectionManager::new(with_timeouts(settings.url.expose(), settings.timeout)),
            limits,
            on_connect,
            found_broken: Mutex::default(),
            gate: gate.clone(),
            availability: Arc::clone(&availability),
        };
        let size = settings.pool_size as usize;
        let max_waiting = size * WAITING_PER_CONNECTION;
        let pool = Pool::builder()
            .max_size(settings.pool_size)
            .min_idle(Some(1))
            .connection_timeout(settings.timeout)
            // Otherwise each attempt of each connection that is wanted is logged.
            .error_handler(Box::new(NopErrorHandler))
            .build_unchecked(connector);
        Self {
            sessions: Arc::new(Sessions { pool, gate }),
            availability,
            permits: Arc::new(Semaphore::new(size)),
            waiting: Arc::new(Semaphore::new(max_waiting)),
            max_waiting,
            timeout: settings.timeout,
        }
    }

    /// Runs a closure with a connection on a thread for blocking work.
    ///
    /// # Errors
    /// What the closure returns, or [`Error`] when no connection is free in time. When the closure fails after the
    /// server ended one of its statements, that is the error: [`Error::Contended`].
    pub async fn run<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let work = self.prepare(&[Instant::now()], work).await?;
        let done = tokio::task::spawn_blocking(work);
        done.await.unwrap_or_else(|_| Err(Error::Panicked.into()))
    }

    /// Like [`Database::run`], on the current thread, which it blocks, for requests that began to wait at these times. A panic
    /// of the closure goes on.
    pub(crate) async fn run_here<T, E: From<Error>>(
        &self,
        waiting_since: &[Instant],
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.prepare(waiting_since, work).await?()
    }

    /// Waits until a connection may be used, and returns what uses it.
    async fn prepare<T, E: From<Error>, W: FnOnce(&mut Connection) -> Result<T, E>>(
        &self,
        waiting_since: &[Instant],
        work: W,
    ) -> Result<impl FnOnce() -> Result<T, E> + use<T, E, W>, E> {
        let permit = self.permit().await;
        waiting_since.iter().copied().for_each(record_wait);
        let permit = permit?;
        let sessions = Arc::clone(&self.sessions);
        let availability = Arc::clone(&self.availability);
        let span = tracing::Span::current();
        Ok(move || {
            let _permit = permit;
            span.in_scope(|| {
                let session = sessions.pool.get();
                let mut session = session.map_err(|error| Error::Unavailable(error.into()))?;
                let done = work(&mut session.connection);
                let outcome = session.finish_use();
                availability.record(outcome.trouble);
                match (done, outcome.ended) {
                    (Err(_), Some(message)) => Err(Error::Contended(message.into()).into()),
                    (done, _) => done,
                }
            })
        })
    }

    /// Like [`Database::run`], in one transaction that an error rolls back.
    ///
    /// # Errors
    /// What the closure returns, or [`Error`] when no connection is free in time or the commit fails.
    pub async fn transaction<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(move |connection| transaction(connection, work))
            .await
    }

    /// Checks whether the database can run statements and accept changes now.
    ///
    /// # Errors
    /// Why it cannot: it is unreachable, busy or read-only, or its disk is full.
    pub async fn check(&self) -> Result<(), &'static str> {
        let availability = Arc::clone(&self.availability);
        let checked = self.run(move |connection| availability.check(connection));
        match checked.await {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            Err(Error::Busy) => Err("every connection to the database is in use"),
            Err(_) => Err(UNREACHABLE),
        }
    }

    /// Sets the gauges of the pool under this name.
    pub fn record_gauges(&self, pool: &'static str) {
        let state = self.sessions.pool.state();
        let (idle, open) = (state.idle_connections, state.connections);
        let in_use = open.saturating_sub(idle);
        metrics::gauge!("database_connections", "pool" => pool, "state" => "idle").set(idle);
        metrics::gauge!("database_connections", "pool" => pool, "state" => "in-use").set(in_use);
        metrics::gauge!("database_connections_max", "pool" => pool)
            .set(self.sessions.pool.max_size());
        let waiting = self.max_waiting - self.waiting.available_permits();
        metrics::gauge!("database_waiting", "pool" => pool)
            .set(u32::try_from(waiting).unwrap_or(u32::MAX));
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| Error::Busy)?;
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(self.timeout, permit).await;
        permit.ok().and_then(Result::ok).ok_or(Error::Busy)
    }
}

/// Records the wait of a request for a connection, also if it got none.
pub(crate) fn record_wait(since: Instant) {
    metrics::histogram!("database_wait_seconds").record(since.elapsed().as_secs_f64());
}

/// Runs a closure in a transaction that an error rolls back: a savepoint, inside another transaction.
///
/// # Errors
/// What the closure returns, or [`Error`] when the transaction cannot begin or commit.
pub fn transaction<T, E: From<Error>>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    let mut failure = None;
    let done = connection.transaction(|connection| {
        work(connection).map_err(|error| {
            failure = Some(error);
            DieselError::RollbackTransaction
        })
    });
    done.map_err(|error| match (error, failure) {
        (DieselError::RollbackTransaction, Some(failure)) => failure,
        (error, _) => Error::from(error).into(),
    })
}
