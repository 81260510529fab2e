//! The revocation feed, the lifetimes of tokens and the generation of tokens in the database.

use std::time::Duration;

use audit_log::{Actor, RequestMeta};
use auth::RevocationFeed;
use database::{Connection, Error, prepared};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::upsert::excluded;
use values::RevocableId;

use super::cursor::{FeedCursor, Scan};
use crate::audit::AuditAction;
use crate::schema::{token_generation, token_lifetimes};

/// A user's current epoch, or a credential that has ended.
#[derive(Queryable)]
pub(super) struct Entry {
    /// Its position in the order of the scan.
    pub(super) at: i64,
    pub(super) id: RevocableId,
    pub(super) epoch: i64,
}

/// What both scans have in common: `state` holds the row of facts, and `since` the time before which raised epochs
/// do not matter. The margin of an hour allows for different clocks, long transactions, and lifetimes that were
/// last recorded a while ago.
///
/// No transaction below `resume` is unfinished, and none with at least this number is left out of the changes since it.
/// It is also at most one more than the highest number seen: a server that crashes may assign the numbers of
/// unfinished transactions again. Rows from another cluster may have numbers that this one has not reached.
macro_rules! feed {
    ($entries:literal) => {
        concat!(
            "WITH snapshot AS MATERIALIZED (
                SELECT pg_snapshot_xmin(taken)::text::bigint AS oldest,
                    pg_snapshot_xmax(taken)::text::bigint AS next
                FROM pg_current_snapshot() AS taken
            ), state AS MATERIALIZED (
                SELECT database_incarnation() AS incarnation, lifetime.longest AS max_lifetime, next,
                    least(oldest, 1 + greatest(
                        (SELECT max(epoch_transaction) FROM users WHERE epoch_transaction < next),
                        (SELECT max(epoch_transaction) FROM deleted_users WHERE epoch_transaction < next),
                        (SELECT max(end_transaction) FROM ended_credentials WHERE end_transaction < next),
                        0
                    )) AS resume,
                    now() - coalesce(lifetime.longest, 0) * interval '1 second' - interval '1 hour' AS since
                FROM snapshot, (
                    SELECT max(seconds) AS longest FROM token_lifetimes
                    WHERE last_used > now() - seconds * interval '1 second' - interval '1 hour'
                ) AS lifetime
            )
            SELECT state.incarnation, state.max_lifetime, state.resume, entry.at, entry.id, entry.epoch
            FROM state LEFT JOIN (",
            $entries,
            " ORDER BY 1, 2 LIMIT $3) AS entry ON true
            ORDER BY entry.at, entry.id"
        )
    };
}

/// A deleted user has the highest epoch, which no token has, and so has a credential that has ended. A user that was
/// inserted again is not deleted. Tokens that are issued for a credential are valid for at most five minutes. The list goes
/// back 70 minutes, so it still has them when the clock is set forward by an hour.
///
/// Both conditions on the time are one, because Postgres would start at the position alone: it would read every epoch
/// that was ever raised.
const ALL: &str = feed!(
    "(SELECT (extract(epoch FROM epoch_raised) * 1000000)::bigint AS at, id, epoch FROM users
        WHERE epoch_raised IS NOT NULL AND (epoch_raised, id) >= ((
            SELECT greatest(since, timestamptz 'epoch' + $1 * interval '1 microsecond') FROM state), $2)
        ORDER BY epoch_raised, id LIMIT $3)
    UNION ALL
    (SELECT (extract(epoch FROM deleted) * 1000000)::bigint, user_id, 9223372036854775807 FROM deleted_users
        WHERE (deleted, user_id) >= ((
            SELECT greatest(since, timestamptz 'epoch' + $1 * interval '1 microsecond') FROM state), $2)
            AND NOT EXISTS (SELECT FROM users WHERE id = user_id)
        ORDER BY deleted, user_id LIMIT $3)
    UNION ALL
    (SELECT (extract(epoch FROM ended) * 1000000)::bigint, credential_id, 9223372036854775807 FROM ended_credentials
        WHERE (ended, credential_id) >= ((
            SELECT greatest(now() - interval '70 minutes', timestamptz 'epoch' + $1 * interval '1 microsecond')), $2)
        ORDER BY ended, credential_id LIMIT $3)"
);

const CHANGES: &str = feed!(
    "(SELECT epoch_transaction AS at, id, epoch FROM users
        WHERE epoch_transaction < (SELECT next FROM state) AND (epoch_transaction, id) >= ($1, $2)
            AND epoch_raised > (SELECT since FROM state)
        ORDER BY epoch_transaction, id LIMIT $3)
    UNION ALL
    (SELECT epoch_transaction, user_id, 9223372036854775807 FROM deleted_users
        WHERE epoch_transaction < (SELECT next FROM state) AND (epoch_transaction, user_id) >= ($1, $2)
            AND deleted > (SELECT since FROM state)
            AND NOT EXISTS (SELECT FROM users WHERE id = user_id)
        ORDER BY epoch_transaction, user_id LIMIT $3)
    UNION ALL
    (SELECT end_transaction, credential_id, 9223372036854775807 FROM ended_credentials
        WHERE end_transaction < (SELECT next FROM state) AND (end_transaction, credential_id) >= ($1, $2)
            AND ended > now() - interval '70 minutes'
        ORDER BY end_transaction, credential_id LIMIT $3)"
);

/// Loads a page. diesel has no snapshot functions, and all of a page must come from the same snapshot and therefore from one
/// statement.
pub(super) fn load_page(
    connection: &mut Connection,
    cursor: FeedCursor,
    limit: u32,
) -> Result<RevocationFeed, Error> {
    let statement = match cursor.scan {
        Scan::All => ALL,
        Scan::Changes => CHANGES,
    };
    let id = cursor.id.map_or(Vec::new(), |id| id.as_bytes().to_vec());
    let rows: Vec<(String, Option<i64>, i64, Option<Entry>)> = prepared(statement)
        .bind::<BigInt, _>(cursor.at)
        .bind::<Binary, _>(id)
        .bind::<BigInt, _>(i64::from(limit) + 1)
        .returning::<(
            Text,
            Nullable<BigInt>,
            BigInt,
            Nullable<(BigInt, Binary, BigInt)>,
        )>()
        .load(connection)?;
    let first = rows.first().ok_or(diesel::result::Error::NotFound)?;
    let (incarnation, longest, resume, _) = first;
    let resume = cursor.resume.unwrap_or(*resume);
    let entries: Vec<_> = rows
        .iter()
        .filter_map(|(.., entry)| entry.as_ref())
        .collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (next, more) = cursor.after(entries.get(limit).map(|entry| (entry.at, entry.id)), resume);
    let page = entries.iter().take(limit);
    Ok(RevocationFeed {
        cursor: resume,
        epochs: page.map(|entry| (entry.id, entry.epoch)).collect(),
        next,
        more,
        incarnation: incarnation.clone(),
        max_token_lifetime: longest.and_then(|longest| longest.try_into().ok()),
    })
}

pub(super) fn record_lifetime(
    connection: &mut Connection,
    lifetime: Duration,
) -> Result<(), Error> {
    let seconds = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    diesel::insert_into(token_lifetimes::table)
        .values(token_lifetimes::seconds.eq(seconds))
        .on_conflict(token_lifetimes::seconds)
        .do_update()
        .set(token_lifetimes::last_used.eq(now))
        .execute(connection)?;
    Ok(())
}

/// Starts a new generation of tokens, and with it a new incarnation of the database. Its entry has no subject: it is about all
/// users.
pub(super) fn start_generation(connection: &mut Connection) -> Result<(), Error> {
    let random = diesel::dsl::sql::<Text>("gen_random_uuid()::text");
    let insert = diesel::insert_into(token_generation::table)
        .values((
            token_generation::one_row.eq(true),
            token_generation::generation.eq(random),
        ))
        .on_conflict(token_generation::one_row)
        .do_update()
        .set(token_generation::generation.eq(excluded(token_generation::generation)))
        .returning(token_generation::generation);
    let meta = RequestMeta::internal();
    let entry = AuditAction::TokensRevoked.entry(Actor::Service, None, meta);
    entry.record_with(insert).get_result::<String>(connection)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use database::Connection;
    use diesel::connection::SimpleConnection as _;
    use testkit::{TestConnection, TestDatabase, lines};

    use super::{FeedCursor, RevocationFeed, load_page};

    const PAGE: u32 = 20;

    /// Users whose epochs were raised by one transaction: `{old}` of them before the longest lifetime of any token, and
    /// 100 within it.
    const PREPARE: &str = "
        SET search_path = users;
        INSERT INTO token_lifetimes (seconds) VALUES (86400);
        INSERT INTO users (id, username, username_key, email, email_key, password_hash, plan, scope, epoch_transaction,
            epoch_raised)
        SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), n, n, n, n, 'x', 'free', '{user}',
            pg_current_xact_id()::text::bigint,
            now() - CASE WHEN n <= {old} THEN interval '30 days' ELSE interval '1 hour' END - n * interval '1 second'
        FROM generate_series(1, {old} + 100) AS n;
        ANALYZE users;";

    fn prepared(old: i64) -> (TestDatabase, TestConnection) {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let mut connection = database.admin();
        connection
            .batch_execute(&PREPARE.replace("{old}", &old.to_string()))
            .unwrap();
        (database, connection)
    }

    /// A page, and how many rows and entries of indexes of users were read for it.
    fn read(connection: &mut Connection, cursor: FeedCursor) -> (RevocationFeed, i64) {
        let rows_read = |connection: &mut Connection| -> i64 {
            // A connection reports what it has read after a statement, but only once in a while without this.
            connection
                .batch_execute("SELECT pg_stat_force_next_flush()")
                .unwrap();
            let read =
                "SELECT (seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes AS i
                WHERE i.relid = t.relid))::text AS line
                FROM pg_stat_user_tables AS t WHERE relid = 'users'::regclass";
            lines(connection, read)[0].parse().unwrap()
        };
        let before = rows_read(connection);
        let page = load_page(connection, cursor, PAGE).unwrap();
        (page, rows_read(connection) - before)
    }

    /// The transaction that raised an epoch last. A page says to resume earlier while any transaction of the server
    /// is unfinished, those of other tests included.
    fn last_change(connection: &mut Connection) -> i64 {
        let last = "SELECT max(epoch_transaction)::text AS line FROM users";
        lines(connection, last)[0].parse().unwrap()
    }

    /// What a page reads: its rows, the first of the next page, and the ends of indexes.
    const MAX_READ: i64 = PAGE as i64 + 1 + 10;

    #[test]
    fn a_full_read_does_not_read_epochs_that_were_raised_long_ago() {
        let (_database, mut connection) = prepared(5_000);
        let (page, read) = read(&mut connection, FeedCursor::ALL);
        assert_eq!((page.epochs.len(), page.more), (20, true));
        assert!(read <= MAX_READ, "{read}");
    }

    #[test]
    fn a_poll_without_changes_reads_no_user() {
        let (_database, mut connection) = prepared(5_000);
        let changes = FeedCursor::changes_since(last_change(&mut connection) + 1);
        let (page, read) = read(&mut connection, changes);
        assert_eq!((page.epochs.len(), page.more), (0, false));
        assert!(read <= 10, "{read}");
    }

    #[test]
    fn a_page_of_changes_reads_its_own_rows_of_a_large_transaction() {
        let (_database, mut connection) = prepared(0);
        connection
            .batch_execute("UPDATE users SET epoch = epoch + 1")
            .unwrap();
        let changes = FeedCursor::changes_since(last_change(&mut connection));
        let (page, read) = read(&mut connection, changes);
        assert_eq!((page.epochs.len(), page.more), (20, true));
        assert!(read <= MAX_READ, "{read}");
    }
}
