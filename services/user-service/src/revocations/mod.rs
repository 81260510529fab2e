//! The feed of raised epochs: who polls it learns of every revocation within a poll's pause.
//!
//! The cursor is the oldest transaction that was still running when the feed was read. Whatever
//! commits later has at least that number, so nothing is ever left out; some of it may come twice.

pub(crate) mod routes;
mod store;

use std::sync::Arc;
use std::time::{Duration, Instant};

use auth::{RevocationFeed, Verifier};
use database::{Database, Error};
use tokio_util::sync::CancellationToken;

const POLL_PAUSE: Duration = Duration::from_millis(500);
/// Complete readings drop what no living token can meet any more.
const COMPLETE_READING_EVERY: Duration = Duration::from_secs(3600);
/// Added to a token's lifetime, for the clocks' differences.
const MARGIN: Duration = Duration::from_secs(60);

/// What was raised since the cursor; without one, everything that a living token can meet.
async fn feed(
    database: &Database,
    cursor: Option<i64>,
    token_lifetime: Duration,
) -> Result<RevocationFeed, Error> {
    let read = move |connection: &mut _| {
        Ok(store::feed(
            connection,
            cursor.unwrap_or(0),
            token_lifetime + MARGIN,
        )?)
    };
    database.run(read).await
}

/// Keeps this process's own verifier up to date.
#[derive(Debug)]
pub(crate) struct Poller {
    database: Database,
    verifier: Arc<Verifier>,
    token_lifetime: Duration,
    cursor: Option<i64>,
    complete_reading: Instant,
}

impl Poller {
    /// Reads the whole feed once, so that no revoked token is accepted from the start on.
    ///
    /// # Errors
    /// The database does not answer.
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
            complete_reading: Instant::now(),
        };
        poller.poll().await?;
        Ok(poller)
    }

    /// Polls until it is cancelled.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(POLL_PAUSE) => {}
                () = shutdown.cancelled() => return,
            }
            if self.complete_reading.elapsed() > COMPLETE_READING_EVERY {
                self.cursor = None;
            }
            if let Err(error) = self.poll().await {
                tracing::warn!(error = ?error, "revocations cannot be read; going on with what is known");
            }
        }
    }

    async fn poll(&mut self) -> Result<(), Error> {
        let feed = feed(&self.database, self.cursor, self.token_lifetime).await?;
        if self.cursor.is_some() {
            self.verifier.revoked().raise(feed.epochs);
        } else {
            self.verifier.revoked().replace(feed.epochs);
            self.complete_reading = Instant::now();
        }
        self.cursor = Some(feed.cursor);
        Ok(())
    }
}
