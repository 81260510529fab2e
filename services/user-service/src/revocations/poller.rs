use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::Verifier;
use database::{Database, Error};
use tokio_util::sync::CancellationToken;

use super::feed::read_feed;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A full read drops the epochs that no unexpired token can be older than.
const FULL_READ_INTERVAL: Duration = Duration::from_secs(3600);

/// Keeps the verifier of this process up to date.
#[derive(Debug)]
pub(crate) struct Poller {
    database: Database,
    verifier: Arc<Verifier>,
    token_lifetime: Duration,
    cursor: Option<i64>,
    last_full_read: Instant,
}

impl Poller {
    /// Reads the whole feed once, so that the process never accepts a revoked token.
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
            verifier,
            token_lifetime,
            cursor: None,
            last_full_read: Instant::now(),
        };
        poller.poll().await?;
        Ok(poller)
    }

    /// Polls until it is cancelled.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
            if self.last_full_read.elapsed() > FULL_READ_INTERVAL {
                self.cursor = None;
            }
            if let Err(error) = self.poll().await {
                tracing::warn!(error = ?error, "cannot read revocations; using those already known");
            }
        }
    }

    async fn poll(&mut self) -> Result<(), Error> {
        let feed = read_feed(&self.database, self.cursor, self.token_lifetime).await?;
        if self.cursor.is_some() {
            self.verifier.revoked().raise(feed.epochs);
        } else {
            self.verifier.revoked().replace(feed.epochs);
            self.last_full_read = Instant::now();
        }
        self.cursor = Some(feed.cursor);
        Ok(())
    }
}
