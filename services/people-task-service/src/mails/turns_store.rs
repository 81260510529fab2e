//! The statements that find creators with due mails, in raw SQL because they follow an index.
//!
//! Each uses the one index that matches its condition, whatever Postgres knew of the table when it was planned.

use database::{Connection, Error, prepared};
use diesel::RunQueryDsl as _;
use diesel::sql_types::{BigInt, Binary, Bool};
use values::UserId;

/// How many creators a scan looks at.
const SCANNED: i64 = 1_024;

/// Finds the creators of the `limit` mails that have been due for longest, in their order. Returns with them whether no
/// mail of another one is due.
pub(super) fn creators_of_oldest(
    connection: &mut Connection,
    limit: i64,
) -> Result<(Vec<UserId>, bool), Error> {
    let oldest = prepared(CREATORS_OF_OLDEST).bind::<BigInt, _>(limit);
    let rows: Vec<(UserId, i64)> = oldest.returning::<(Binary, BigInt)>().load(connection)?;
    let (creators, mails): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    Ok((creators, mails.iter().sum::<i64>() < limit))
}

// Mails whose task is gone have no creator.
const CREATORS_OF_OLDEST: &str = "
SELECT creator, count(*) AS mails FROM (
    SELECT creator FROM task_mails WHERE next_attempt <= now() AND creator <> '' ORDER BY next_attempt LIMIT $1
) AS oldest GROUP BY creator ORDER BY creator";

/// Finds the next `limit` creators with due mails after a creator, or fewer if too many others have mails that are not
/// due. Each creator takes one step in an index, however many mails it has. Returns with them the last creator that was
/// looked at; `None` if no creator comes after it.
pub(super) fn scan_creators(
    connection: &mut Connection,
    after: Option<UserId>,
    limit: usize,
) -> Result<(Vec<UserId>, Option<UserId>), Error> {
    let after = after
        .as_ref()
        .map_or(&[] as &[u8], |creator| creator.as_bytes());
    let rows: Vec<(UserId, bool)> = prepared(SCAN_CREATORS)
        .bind::<Binary, _>(after)
        .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind::<BigInt, _>(SCANNED)
        .returning::<(Binary, Bool)>()
        .load(connection)?;
    let looked_at = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let last = rows.last().map(|(creator, _)| *creator);
    let due = rows.into_iter().filter(|(_, is_due)| *is_due);
    let due: Vec<_> = due.map(|(creator, _)| creator).collect();
    let is_full = looked_at >= SCANNED || due.len() >= limit;
    Ok((due, last.filter(|_| is_full)))
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
