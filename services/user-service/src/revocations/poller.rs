use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::{FeedReader, FeedSource, RevocationFeed, Verifier};
use database::{Connection, Database, Error};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use values::FromText as _;

use super::cursor::FeedCursor;
use super::feed::{self, Watched, Watching};
use super::store;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the lifetime of tokens is recorded.
const RECORD_INTERVAL: Duration = Duration::from_secs(600);

/// Keeps the verifier of this process and the lifetimes of tokens up to date.
pub(crate) struct Poller {
    source: Source,
    reader: FeedReader,
    token_lifetime: Duration,
    recorded: Instant,
}

impl Poller {
    /// Records the lifetime of tokens before any is signed, and reads the whole feed once, so that the process never
    /// accepts a revoked token.
    pub(crate) async fn start(
        database: Database,
        verifier: Arc<Verifier>,
        token_lifetime: Duration,
    ) -> Result<(Self, Watching), Error> {
        let mut poller = Self {
            source: Source {
                database,
                watched: watch::Sender::default(),
            },
            reader: FeedReader::new(verifier),
            token_lifetime,
            recorded: Instant::now(),
        };
        poller.record_lifetime().await?;
        poller.reader.poll(&poller.source).await?;
        let watching = poller.source.watched.subscribe();
        Ok((poller, watching))
    }

    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let pause = || shutdown.run_until_cancelled(tokio::time::sleep(POLL_INTERVAL));
        while pause().await.is_some() {
            if let Err(error) = self.reader.poll(&self.source).await {
                error.warn("cannot read revocations; using those already known");
            }
            if self.recorded.elapsed() > RECORD_INTERVAL
                && let Err(error) = self.record_lifetime().await
            {
                error.warn("the lifetime of tokens could not be recorded");
            }
        }
    }

    async fn record_lifetime(&mut self) -> Result<(), Error> {
        let lifetime = self.token_lifetime;
        let record =
            move |connection: &mut Connection| store::record_lifetime(connection, lifetime);
        self.source.database.run(record).await?;
        self.recorded = Instant::now();
        Ok(())
    }
}

struct Source {
    database: Database,
    watched: watch::Sender<Watched>,
}

impl FeedSource for Source {
    type Error = Error;

    async fn read(&self, cursor: Option<&str>) -> Result<RevocationFeed, Error> {
        // The cursors are this process's own.
        let cursor = cursor.and_then(|text| FeedCursor::from_text(text).ok());
        let cursor = cursor.unwrap_or(FeedCursor::ALL);
        self.watched.send_modify(Watched::begin);
        let page = feed::read_feed(&self.database, cursor, FeedReader::PAGE).await?;
        self.watched
            .send_modify(|watched| watched.note(cursor, &page));
        Ok(page)
    }
}
