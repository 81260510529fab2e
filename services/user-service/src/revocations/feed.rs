use std::time::Duration;

use auth::RevocationFeed;
use database::{Connection, Database, Error};

use super::cursor::FeedCursor;
use super::store;
use super::watched::Watching;

/// One page of at most `limit` epochs.
pub(super) async fn read_feed(
    database: &Database,
    cursor: FeedCursor,
    limit: u32,
) -> Result<RevocationFeed, Error> {
    let load = move |connection: &mut Connection| store::load_page(connection, cursor, limit);
    let page = database.run(load).await?;
    let resume = cursor.resume.unwrap_or(page.resume);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (next, more) = match page.entries.get(limit) {
        Some(entry) => (
            FeedCursor::continued(cursor.scan, entry.at, entry.id, resume),
            true,
        ),
        // The pages of one scan come from different snapshots. What has changed since the first one follows.
        None => (resume.to_string(), cursor.resume.is_some()),
    };
    let entries = page.entries.iter().take(limit);
    Ok(RevocationFeed {
        cursor: resume,
        epochs: entries.map(|entry| (entry.id, entry.epoch)).collect(),
        next,
        more,
        incarnation: page.incarnation,
        max_token_lifetime: page.max_token_lifetime,
    })
}

/// Waits until the page at the cursor may have epochs, at most for `wait`. Returns a page without epochs if the poller
/// has read the feed meanwhile and found none; otherwise the database must be asked.
pub(super) async fn wait_for_epochs(
    mut watching: Watching,
    cursor: FeedCursor,
    wait: Duration,
) -> Option<RevocationFeed> {
    if wait.is_zero() {
        return None;
    }
    let reads = watching.borrow().reads;
    let changed = watching.wait_for(|watched| watched.page_without_epochs(cursor).is_none());
    // It also ends when the poller does: a process that stops lets nothing wait.
    let _ = tokio::time::timeout(wait, changed).await;
    let watched = watching.borrow();
    let page = watched.page_without_epochs(cursor)?;
    (watched.reads > reads).then(|| page.clone())
}
