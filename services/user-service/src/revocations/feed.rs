//! Pages of the feed, and what the poller of this process saw last. Readers in other processes wait for it, so that they need
//! not ask the database again and again whether anything has changed.

use std::time::Duration;

use auth::RevocationFeed;
use database::{Connection, Database, Error};
use tokio::sync::watch;

use super::cursor::{FeedCursor, Scan};
use super::store;

pub(super) async fn read_feed(
    database: &Database,
    cursor: FeedCursor,
    limit: u32,
) -> Result<RevocationFeed, Error> {
    let load = move |connection: &mut Connection| store::load_page(connection, cursor, limit);
    database.run(load).await
}

/// Waits until the page at the cursor may have epochs, at most for `wait`. Returns a page without epochs if the poller
/// has begun to read the feed meanwhile and found none; otherwise the database must be asked.
pub(super) async fn wait_for_epochs(
    mut watching: Watching,
    cursor: FeedCursor,
    wait: Duration,
) -> Option<RevocationFeed> {
    if wait.is_zero() {
        return None;
    }
    let begun = watching.borrow().begun;
    let changed = watching.wait_for(|watched| watched.page_without_epochs(cursor).is_none());
    // It also ends when the poller does: a process that stops lets nothing wait.
    let _ = tokio::time::timeout(wait, changed).await;
    let watched = watching.borrow();
    let page = watched.page_without_epochs(cursor)?;
    // A read that had begun before may have missed what was committed before the request.
    (watched.ended > begun).then(|| page.clone())
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    /// The number of the read that began last, and of the one that read changes last. There is one at a time.
    begun: u64,
    ended: u64,
    /// The last page, if it has no epochs, after the transaction from which on none has raised an epoch that a read could see.
    quiet: Option<(i64, RevocationFeed)>,
}

/// How requests see what the poller saw. It is closed when the poller ends.
pub(crate) type Watching = watch::Receiver<Watched>;

impl Watched {
    pub(super) fn begin(&mut self) {
        self.begun += 1;
    }

    pub(super) fn note(&mut self, cursor: FeedCursor, page: &RevocationFeed) {
        if cursor.scan != Scan::Changes {
            return;
        }
        self.ended = self.begun;
        let known = self.quiet.take();
        if !page.epochs.is_empty() || page.more || cursor.resume.is_some() {
            return;
        }
        let known = known.filter(|(_, known)| known.incarnation == page.incarnation);
        let since = known.map_or(cursor.at, |(since, _)| since.min(cursor.at));
        self.quiet = Some((since, page.clone()));
    }

    /// The page at this cursor, if the last read says that it has no epochs.
    fn page_without_epochs(&self, cursor: FeedCursor) -> Option<&RevocationFeed> {
        let (since, page) = self.quiet.as_ref()?;
        let is_start = cursor.scan == Scan::Changes && cursor.resume.is_none();
        (is_start && cursor.at >= *since).then_some(page)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use database::DatabaseSettings;
    use diesel::connection::SimpleConnection as _;
    use testkit::TestDatabase;
    use values::{FromText as _, RevocableId};

    use super::*;

    const IDS: &str = "WITH new AS (
        SELECT n, decode(lpad(to_hex(n), 24, '0'), 'hex') AS id FROM generate_series(1, 50) AS n)";
    /// Users whose epochs were raised a moment ago, deleted users, and credentials that have ended.
    const ENTRIES: [&str; 3] = [
        "INSERT INTO users.users (id, username, username_key, email, email_key, password_hash, plan, scope,
            epoch_transaction, epoch_raised)
        SELECT id, n, n, n, n, 'x', 'free', '{user}', pg_current_xact_id()::text::bigint, now() FROM new",
        "INSERT INTO users.deleted_users (user_id) SELECT id FROM new",
        "INSERT INTO users.ended_credentials (credential_id) SELECT id FROM new",
    ];

    #[tokio::test]
    async fn a_scan_omits_nothing_and_ends_although_an_older_transaction_is_unfinished() {
        for insert in ENTRIES {
            scan_entries(&format!("{IDS} {insert}")).await;
        }
    }

    async fn scan_entries(insert: &str) {
        let test = TestDatabase::users(crate::MIGRATIONS);
        let mut unfinished = test.admin();
        let begin = "BEGIN; SELECT pg_current_xact_id()";
        unfinished.batch_execute(begin).unwrap();
        test.admin().batch_execute(insert).unwrap();
        let database = Database::connect(&DatabaseSettings {
            url: test.users_url(),
            owner_url: None,
            pool_size: 1,
            timeout: Duration::from_secs(30),
        });
        let mut next = FeedCursor::ALL;
        // Everything, and the changes since then; and these once more in the next poll.
        for (scan, changes_follow) in [(1, true), (2, false), (3, false)] {
            let mut ids = HashSet::new();
            for page in 1..=3 {
                let feed = read_feed(&database, next, 20).await.unwrap();
                let more = page < 3 || changes_follow;
                assert_eq!(feed.more, more, "page {page} of scan {scan}");
                ids.extend(feed.epochs.iter().map(|(id, _)| *id));
                next = FeedCursor::from_text(&feed.next).unwrap();
            }
            assert_eq!(ids.len(), 50, "scan {scan}: {insert}");
        }
    }

    fn page(incarnation: &str, epochs: usize) -> RevocationFeed {
        RevocationFeed {
            epochs: (0..epochs).map(|_| (RevocableId::generate(), 1)).collect(),
            incarnation: incarnation.to_owned(),
            ..RevocationFeed::default()
        }
    }

    fn watched(reads: &[(i64, RevocationFeed)]) -> Watched {
        let mut watched = Watched::default();
        for (at, page) in reads {
            watched.begin();
            watched.note(FeedCursor::changes_since(*at), page);
        }
        watched
    }

    fn knows(watched: &Watched, at: i64) -> bool {
        let cursor = FeedCursor::changes_since(at);
        watched.page_without_epochs(cursor).is_some()
    }

    #[test]
    fn cursors_since_the_last_change_have_no_epochs() {
        let watched = watched(&[(5, page("a", 1)), (8, page("a", 0)), (9, page("a", 0))]);
        assert!(knows(&watched, 8) && knows(&watched, 9) && knows(&watched, 20));
        assert!(!knows(&watched, 7));
    }

    #[test]
    fn nothing_is_known_after_a_change_or_another_incarnation() {
        assert!(!knows(&watched(&[(8, page("a", 0)), (9, page("a", 1))]), 9));
        let restored = watched(&[(3, page("a", 0)), (7, page("b", 0))]);
        assert!(!knows(&restored, 6) && knows(&restored, 7));
    }

    #[tokio::test]
    async fn a_request_is_answered_by_a_read_that_began_after_it() {
        let (watched, watching) = watch::channel(watched(&[(8, page("a", 0))]));
        let (cursor, wait) = (FeedCursor::changes_since(8), Duration::from_millis(10));
        for begins_after in [false, true] {
            let begin = || watched.send_modify(Watched::begin);
            if !begins_after {
                begin();
            }
            let request = wait_for_epochs(watching.clone(), cursor, wait);
            let read = async {
                if begins_after {
                    begin();
                }
                watched.send_modify(|watched| watched.note(cursor, &page("a", 0)));
            };
            // The request is polled first.
            let (answer, ()) = tokio::join!(request, read);
            assert_eq!(answer.is_some(), begins_after);
        }
    }

    #[test]
    fn reads_of_everything_and_cursors_inside_of_a_scan_are_left_to_the_database() {
        let mut watched = watched(&[(8, page("a", 0))]);
        watched.note(FeedCursor::ALL, &page("a", 1));
        assert!(knows(&watched, 8));
        assert!(watched.page_without_epochs(FeedCursor::ALL).is_none());
        let inside = FeedCursor {
            resume: Some(9),
            ..FeedCursor::changes_since(8)
        };
        assert!(watched.page_without_epochs(inside).is_none());
    }
}
