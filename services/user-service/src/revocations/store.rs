//! The revocation feed in the database.

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

/// diesel has no snapshot functions. The cursor and the rows must come from the same snapshot, and
/// therefore from one statement. A deleted user has the highest epoch, which no token has.
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

/// Reads the epochs raised by the transaction `cursor` or a later one, at most `since` ago.
pub(super) fn load_feed(
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
