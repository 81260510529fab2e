use std::time::Duration;

use auth::RevocationFeed;
use database::{Connection, Database, Error};

use super::store;

/// Added to the lifetime of tokens, for differences between clocks.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);

/// The epochs raised since the cursor. Without one, all epochs that an unexpired token can be older than.
pub(super) async fn read_feed(
    database: &Database,
    cursor: Option<i64>,
    token_lifetime: Duration,
) -> Result<RevocationFeed, Error> {
    let since = token_lifetime + CLOCK_MARGIN;
    let load =
        move |connection: &mut Connection| store::load_feed(connection, cursor.unwrap_or(0), since);
    database.run(load).await
}
