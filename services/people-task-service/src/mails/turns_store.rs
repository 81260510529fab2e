//! The statements that find creators with due mails, in raw SQL because they follow an index.
//!
//! Each uses the one index that matches its condition, whatever Postgres knew of the table when it was planned.

use database::{Connection, Error, prepared};
use diesel::sql_types::{BigInt, Binary, Bool};
use diesel::{QueryableByName, RunQueryDsl as _};
use values::UserId;

/// How many creators a scan looks at.
const SCANNED: i64 = 1_024;

#[derive(QueryableByName)]
struct CreatorRow {
    #[diesel(sql_type = Binary)]
    creator: UserId,
    #[diesel(sql_type = BigInt)]
    mails: i64,
}

/// The creators of the oldest due mails.
pub(super) struct Oldest {
    /// In their order.
    pub(super) creators: Vec<UserId>,
    /// Whether no mail of another one is due.
    pub(super) are_all: bool,
}

/// Finds the creators of the `limit` mails that have been due for longest.
pub(super) fn creators_of_oldest(connection: &mut Connection, limit: i64) -> Result<Oldest, Error> {
    let oldest = prepared(CREATORS_OF_OLDEST).bind::<BigInt, _>(limit);
    let rows: Vec<CreatorRow> = oldest.load(connection)?;
    Ok(Oldest {
        are_all: rows.iter().map(|row| row.mails).sum::<i64>() < limit,
        creators: rows.into_iter().map(|row| row.creator).collect(),
    })
}

// Mails whose task is gone have no creator.
const CREATORS_OF_OLDEST: &str = "
SELECT creator, count(*) AS mails FROM (
    SELECT creator FROM task_mails WHERE next_attempt <= now() AND creator <> '' ORDER BY next_attempt LIMIT $1
) AS oldest GROUP BY creator ORDER BY creator";

#[derive(QueryableByName)]
struct StepRow {
    #[diesel(sql_type = Binary)]
    creator: UserId,
    #[diesel(sql_type = Bool)]
    is_due: bool,
}

/// What a scan found.
pub(super) struct Scanned {
    /// Creators with due mails.
    pub(super) due: Vec<UserId>,
    /// The last creator that was looked at; `None` if no creator comes after it.
    pub(super) last: Option<UserId>,
}

/// Finds the next `limit` creators with due mails after a creator, or fewer if too many others have mails that are not
/// due. Each creator takes one step in an index, however many mails it has.
pub(super) fn scan_creators(
    connection: &mut Connection,
    after: Option<UserId>,
    limit: usize,
) -> Result<Scanned, Error> {
    let after = after
        .as_ref()
        .map_or(&[] as &[u8], |creator| creator.as_bytes());
    let rows: Vec<StepRow> = prepared(SCAN_CREATORS)
        .bind::<Binary, _>(after)
        .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind::<BigInt, _>(SCANNED)
        .load(connection)?;
    let looked_at = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let last = rows.last().map(|row| row.creator);
    let due = rows.into_iter().filter(|row| row.is_due);
    let due: Vec<_> = due.map(|row| row.creator).collect();
    let is_full = looked_at >= SCANNED || due.len() >= limit;
    Ok(Scanned {
        last: last.filter(|_| is_full),
        due,
    })
}

const SCAN_CREATORS: &str = "
WITH RECURSIVE step AS (
    (SELECT creator, next_attempt <= now() AS is_due, (next_attempt <= now())::int AS due
    FROM task_mails WHERE creator > $1 ORDER BY creator, next_attempt LIMIT 1)
    UNION ALL
    SELECT following.creator, following.next_attempt <= now(), due + (following.next_attempt <= now())::int
    FROM step CROSS JOIN LATERAL (
        SELECT creator, next_attempt FROM task_mails WHERE task_mails.creator > step.creator
        ORDER BY creator, next_attempt LIMIT 1
    ) AS following
    WHERE due < $2
)
SELECT creator, is_due FROM step LIMIT $3";
