//! The statements that find the creators whose turn it is. They are raw SQL because they must follow an index: each uses the
//! one that matches its condition, whatever Postgres knew of the table when it was planned.

use database::{Connection, Error, composed};
use diesel::RunQueryDsl as _;
use diesel::sql_types::{BigInt, Binary, Bool};
use values::UserId;

const SCANNED: i64 = 1_024;

/// A table with a column `creator`, which is empty in rows that have no turn, and with a column `due_at` that tells when a
/// row is due. It needs an index of the latter, and one of both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTable {
    pub(crate) name: &'static str,
    pub(crate) due_at: &'static str,
}

/// Finds the creators of the `limit` rows that have been due for longest, in their order. Returns with them whether no row
/// of another one is due.
pub(super) fn creators_of_oldest(
    connection: &mut Connection,
    TurnTable { name, due_at }: TurnTable,
    limit: i64,
) -> Result<(Vec<UserId>, bool), Error> {
    let oldest = format!(
        "SELECT creator, count(*) AS number FROM (
            SELECT creator FROM {name} WHERE {due_at} <= now() AND creator <> '' ORDER BY {due_at} LIMIT $1
        ) AS oldest GROUP BY creator ORDER BY creator"
    );
    let oldest = composed(oldest, (), true).bind::<BigInt, _>(limit);
    let rows: Vec<(UserId, i64)> = oldest.returning::<(Binary, BigInt)>().load(connection)?;
    let (creators, numbers): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    Ok((creators, numbers.iter().sum::<i64>() < limit))
}

/// Finds the next `limit` creators with due rows after a creator, or fewer if too many others have rows that are not due.
/// Each creator takes one step in an index, however many rows it has. Returns with them the last creator that was looked
/// at; `None` if no creator comes after it.
pub(super) fn scan_creators(
    connection: &mut Connection,
    TurnTable { name, due_at }: TurnTable,
    after: Option<UserId>,
    limit: usize,
) -> Result<(Vec<UserId>, Option<UserId>), Error> {
    let after = after
        .as_ref()
        .map_or(&[] as &[u8], |creator| creator.as_bytes());
    let scan = format!(
        "WITH RECURSIVE step AS (
            (SELECT creator, {due_at} <= now() AS is_due, ({due_at} <= now())::int AS due
            FROM {name} WHERE creator > $1 ORDER BY creator, {due_at} LIMIT 1)
            UNION ALL
            SELECT following.creator, following.at <= now(), due + (following.at <= now())::int
            FROM step CROSS JOIN LATERAL (
                SELECT creator, {due_at} AS at FROM {name} AS own WHERE own.creator > step.creator
                ORDER BY creator, {due_at} LIMIT 1
            ) AS following
            WHERE due < $2
        )
        SELECT creator, is_due FROM step LIMIT $3"
    );
    let rows: Vec<(UserId, bool)> = composed(scan, (), true)
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
