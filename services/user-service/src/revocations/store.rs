//! The feed in the database.

use std::time::Duration;

use auth::RevocationFeed;
use database::{Connection, Error};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Double, Nullable};
use values::UserId;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    cursor: i64,
    #[diesel(sql_type = Nullable<Binary>)]
    id: Option<UserId>,
    #[diesel(sql_type = Nullable<BigInt>)]
    epoch: Option<i64>,
}

/// The snapshot's functions are not in diesel's language, and cursor and rows must come from the same
/// snapshot, so from one statement. A user who is gone has an epoch that no token reaches.
const FEED: &str = "
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS cursor, raised.id, raised.epoch
    FROM (SELECT) AS one_row
    LEFT JOIN (
        SELECT id, epoch FROM users
        WHERE epoch_transaction >= $1 AND epoch_raised > now() - $2 * interval '1 second'
        UNION ALL
        SELECT user_id, 9223372036854775807 FROM deletions
        WHERE epoch_transaction >= $1
            AND (finished IS NULL OR finished > now() - $2 * interval '1 second')
    ) AS raised ON true";

/// Reads what was raised by the transaction `cursor` or a later one, not longer ago than `since`.
pub(super) fn feed(
    connection: &mut Connection,
    cursor: i64,
    since: Duration,
) -> Result<RevocationFeed, Error> {
    let rows: Vec<Row> = diesel::sql_query(FEED)
        .bind::<BigInt, _>(cursor)
        .bind::<Double, _>(since.as_secs_f64())
        .load(connection)?;
    Ok(RevocationFeed {
        cursor: rows.first().map_or(cursor, |row| row.cursor),
        epochs: rows
            .into_iter()
            .filter_map(|row| row.id.zip(row.epoch))
            .collect(),
    })
}
