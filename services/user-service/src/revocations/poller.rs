use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::{FeedReader, FeedSource, RevocationFeed, Verifier};
use database::{Connection, Database, Error};
use tokio_util::sync::CancellationToken;
use values::FromText as _;

use super::cursor::FeedCursor;
use super::{feed, store};

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the lifetime of tokens is recorded, and expired rows are deleted.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Rows that one statement deletes.
const BATCH: i64 = 1_000;

/// Keeps the verifier of this process and the lifetimes of tokens up to date.
#[derive(Debug)]
pub(crate) struct Poller {
    database: Database,
    reader: FeedReader,
    token_lifetime: Duration,
    last_upkeep: Instant,
}

impl Poller {
    /// Records the lifetime of tokens before any is signed, and reads the whole feed once, so that the process never
    /// accepts a revoked token.
    ///
    /// # Errors
    /// The database is unavailable.
    pub(crate) async fn start(
        database: Database,
        verifier: Arc<Verifier>,
        token_lifetime: Duration,
    ) -> Result<Self, Error> {
        let mut poller = Self {
            database,
            reader: FeedReader::new(verifier),
            token_lifetime,
            last_upkeep: Instant::now(),
        };
        poller.record_lifetime().await?;
        poller.reader.poll(&Source(&poller.database)).await?;
        Ok(poller)
    }

    /// Polls until it is cancelled.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
            if let Err(error) = self.reader.poll(&Source(&self.database)).await {
                tracing::warn!(error = ?error, "cannot read revocations; using those already known");
            }
            if self.last_upkeep.elapsed() > UPKEEP_INTERVAL
                && let Err(error) = self.upkeep().await
            {
                tracing::warn!(error = ?error, "the lifetime of tokens could not be recorded");
            }
        }
    }

    async fn upkeep(&mut self) -> Result<(), Error> {
        self.record_lifetime().await?;
        let delete = |connection: &mut Connection| store::delete_expired(connection, BATCH);
        self.database.run(delete).await?;
        self.last_upkeep = Instant::now();
        Ok(())
    }

    async fn record_lifetime(&self) -> Result<(), Error> {
        let lifetime = self.token_lifetime;
        let record =
            move |connection: &mut Connection| store::record_lifetime(connection, lifetime);
        self.database.run(record).await
    }
}

/// The feed in this service's own database.
struct Source<'a>(&'a Database);

impl FeedSource for Source<'_> {
    type Error = Error;

    async fn read(&self, cursor: Option<&str>) -> Result<RevocationFeed, Error> {
        // The cursors are this process's own.
        let cursor = cursor.and_then(|text| FeedCursor::from_text(text).ok());
        let cursor = cursor.unwrap_or(FeedCursor::ALL);
        feed::read_feed(self.0, cursor, Some(FeedReader::PAGE)).await
    }
}
