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
/// How often the lifetime of tokens is recorded, and expired rows are deleted.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Rows that one statement deletes.
const BATCH: i64 = 1_000;

/// Keeps the verifier of this process and the lifetimes of tokens up to date.
pub(crate) struct Poller {
    source: Source,
    reader: FeedReader,
    token_lifetime: Duration,
    last_upkeep: Instant,
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
            last_upkeep: Instant::now(),
        };
        poller.record_lifetime().await?;
        poller.reader.poll(&poller.source).await?;
        let watching = poller.source.watched.subscribe();
        Ok((poller, watching))
    }

    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
            if let Err(error) = self.reader.poll(&self.source).await {
                error.warn("cannot read revocations; using those already known");
            }
            if self.last_upkeep.elapsed() > UPKEEP_INTERVAL
                && let Err(error) = self.upkeep().await
            {
                error.warn("the lifetime of tokens could not be recorded");
            }
        }
    }

    async fn upkeep(&mut self) -> Result<(), Error> {
        self.record_lifetime().await?;
        let delete = |connection: &mut Connection| store::delete_expired(connection, BATCH);
        let deleted = self.source.database.run(delete).await?;
        // After a full batch the next poll goes on: a night's deletions may be thousands.
        if i64::try_from(deleted).is_ok_and(|deleted| deleted < BATCH) {
            self.last_upkeep = Instant::now();
        }
        Ok(())
    }

    async fn record_lifetime(&self) -> Result<(), Error> {
        let lifetime = self.token_lifetime;
        let record =
            move |connection: &mut Connection| store::record_lifetime(connection, lifetime);
        self.source.database.run(record).await
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

#[cfg(test)]
mod tests {
    use database::DatabaseSettings;
    use diesel::connection::SimpleConnection as _;
    use testkit::{TestDatabase, lines};

    use super::*;

    /// One batch and a half of deleted users of whom no token is left.
    const DELETED: &str = "INSERT INTO users.deleted_users (user_id, deleted)
        SELECT substr(sha256(n::text::bytea), 1, 12), now() - interval '1 day' FROM generate_series(1, 1500) AS n";

    #[tokio::test]
    async fn while_a_batch_of_deleted_users_is_full_the_next_poll_goes_on() {
        let test = TestDatabase::users(crate::MIGRATIONS);
        test.admin().batch_execute(DELETED).unwrap();
        let database = Database::connect(&DatabaseSettings {
            url: test.users_url(),
            owner_url: None,
            pool_size: 2,
            timeout: Duration::from_secs(30),
        });
        let verifier = Arc::new(Verifier::new("issuer", "audience"));
        let starting = Poller::start(database, verifier, Duration::from_hours(1));
        let (mut poller, _watching) = starting.await.unwrap();
        let started = poller.last_upkeep;
        for (left, is_done) in [("500", false), ("0", true)] {
            poller.upkeep().await.unwrap();
            let count = "SELECT count(*)::text AS line FROM users.deleted_users";
            assert_eq!(lines(&mut test.admin(), count), [left]);
            assert_eq!(poller.last_upkeep > started, is_done);
        }
    }
}
