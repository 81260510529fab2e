//! Failed attempts, and the client networks from which users have signed in. Of these only hashes are stored, so that a dump
//! of the database shows no addresses. Every transaction that changes a user's networks locks the user first.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::{exists, not, now};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Timestamptz};
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, UserId};

use super::{AttemptKey, CountedAttempt, FailureScope, name_hash};
use crate::client_network::ClientNetwork;
use crate::error::UserError;
use crate::schema::{known_networks, sign_in_failures};

macro_rules! row {
    ($key:expr, $scope:expr) => {
        sign_in_failures::table.find(($key.name_hash.as_slice(), $key.network_of($scope)))
    };
}

/// Counts an attempt as a failure before its password is checked, so that concurrent guesses count each
/// other; the right password deletes the failures. If the attempt must wait instead, the caller must roll
/// back the transaction.
pub(crate) fn count(
    connection: &mut Connection,
    key: AttemptKey,
) -> Result<CountedAttempt, UserError> {
    let mut pauses = Vec::new();
    let mut wait = None;
    for scope in key.scopes() {
        match count_in(connection, &key, *scope)? {
            Err(time) => wait = wait.max(Some(time)),
            Ok(pause) => pauses.extend(pause.map(|until| (*scope, until))),
        }
    }
    match wait {
        Some(wait) => Err(UserError::TooManyAttempts(wait)),
        None => Ok(CountedAttempt { key, pauses }),
    }
}

/// Counts an attempt in one scope. Returns until when it starts a pause, if it does, or how long it must wait. Times are by
/// the database's clock.
fn count_in(
    connection: &mut Connection,
    key: &AttemptKey,
    scope: FailureScope,
) -> Result<Result<Option<DateTime<Utc>>, Duration>, Error> {
    // RETURNING reads under the row's lock, so it includes every other attempt.
    let (failures, blocked_until, clock) = diesel::insert_into(sign_in_failures::table)
        .values((
            sign_in_failures::name_hash.eq(key.name_hash.as_slice()),
            sign_in_failures::client_network.eq(key.network_of(scope)),
            sign_in_failures::failures.eq(1),
        ))
        .on_conflict((
            sign_in_failures::name_hash,
            sign_in_failures::client_network,
        ))
        .do_update()
        .set((
            sign_in_failures::failures.eq(sign_in_failures::failures + 1),
            sign_in_failures::last_failure.eq(now),
        ))
        .returning((
            sign_in_failures::failures,
            sign_in_failures::blocked_until,
            now.into_sql::<Timestamptz>(),
        ))
        .get_result::<(i32, Option<DateTime<Utc>>, DateTime<Utc>)>(connection)?;
    if let Some(wait) = blocked_until.and_then(|until| (until - clock).to_std().ok()) {
        return Ok(Err(wait));
    }
    let Some(pause) = scope.pause_after(failures) else {
        return Ok(Ok(None));
    };
    let until = now.into_sql::<Timestamptz>() + interval(pause);
    let until = diesel::update(row!(key, scope))
        .set(sign_in_failures::blocked_until.eq(until.nullable()))
        .returning(sign_in_failures::blocked_until)
        .get_result(connection)?;
    Ok(Ok(until))
}

/// Takes back an attempt whose password could not be checked. Ends only the pauses that it started itself:
/// another attempt's pause stays.
pub(super) fn refund(connection: &mut Connection, attempt: &CountedAttempt) -> Result<(), Error> {
    let key = &attempt.key;
    for scope in key.scopes() {
        // An attempt that was never checked leaves no row, however many names are tried.
        let only = row!(key, *scope).filter(sign_in_failures::failures.eq(1));
        let only = only.filter(sign_in_failures::blocked_until.is_null());
        if diesel::delete(only).execute(connection)? > 0 {
            continue;
        }
        // A concurrent success may have deleted the attempt already.
        diesel::update(row!(key, *scope).filter(sign_in_failures::failures.gt(0)))
            .set(sign_in_failures::failures.eq(sign_in_failures::failures - 1))
            .execute(connection)?;
    }
    for (scope, until) in &attempt.pauses {
        diesel::update(row!(key, *scope).filter(sign_in_failures::blocked_until.eq(until)))
            .set(sign_in_failures::blocked_until.eq(None::<DateTime<Utc>>))
            .execute(connection)?;
    }
    Ok(())
}

/// Deletes the failures that the right password clears: those of the counts that the attempt is part of.
/// Failures from other networks can be an attacker's, so they stay.
pub(crate) fn delete_failures(
    connection: &mut Connection,
    attempt: &CountedAttempt,
) -> Result<(), Error> {
    for scope in attempt.key.scopes() {
        diesel::delete(row!(attempt.key, *scope)).execute(connection)?;
    }
    Ok(())
}

pub(crate) fn delete_all_failures(
    connection: &mut Connection,
    names: &[&EmailAddress],
) -> Result<(), Error> {
    let hashes = names
        .iter()
        .map(|name| name_hash(name.normalized()).to_vec());
    let rows = sign_in_failures::name_hash.eq_any(hashes);
    // In the order of `AttemptKey::scopes`, where the empty network comes first. A DELETE has no order.
    let _locked: Vec<i32> = sign_in_failures::table
        .filter(rows.clone())
        .order((
            sign_in_failures::name_hash,
            sign_in_failures::client_network,
        ))
        .for_update()
        .select(sign_in_failures::failures)
        .load(connection)?;
    diesel::delete(sign_in_failures::table.filter(rows)).execute(connection)?;
    Ok(())
}

/// Deletes at most `batch` failures of each name, and returns the largest number that was deleted.
pub(crate) fn delete_failures_batch(
    connection: &mut Connection,
    names: &[&EmailAddress],
    batch: i64,
) -> Result<usize, Error> {
    let mut most = 0;
    for name in names {
        // In the order of `AttemptKey::scopes`. The DSL has no LIMIT for DELETE.
        let deleted = diesel::sql_query(
            "DELETE FROM sign_in_failures WHERE account = $1 AND client_address = ANY(ARRAY(\
                SELECT client_address FROM sign_in_failures WHERE account = $1 \
                ORDER BY client_address LIMIT $2 FOR UPDATE))",
        )
        .bind::<Binary, _>(name_hash(name.normalized()).as_slice())
        .bind::<BigInt, _>(batch)
        .execute(connection)?;
        most = most.max(deleted);
    }
    Ok(most)
}

/// The networks that are kept for each user: those of the latest sign-ins.
const MAX_NETWORKS: i64 = 20;

/// Differs from user to user, so that the rows do not show who shares a network.
fn network_hash(user: UserId, client: &ClientNetwork) -> [u8; 32] {
    let hash = Sha256::new().chain_update(user.as_bytes());
    hash.chain_update(client.as_str()).finalize().into()
}

/// Whether the user has signed in from a network. The same statement runs if there is no user.
pub(crate) fn is_known_network(
    connection: &mut Connection,
    user: Option<UserId>,
    client: &ClientNetwork,
) -> Result<bool, Error> {
    // A new identifier belongs to no user.
    let user = user.unwrap_or_else(UserId::generate);
    let row = known_networks::table.find((user, network_hash(user, client).to_vec()));
    Ok(diesel::select(exists(row)).get_result(connection)?)
}

pub(crate) fn record_network(
    connection: &mut Connection,
    user: UserId,
    client: &ClientNetwork,
) -> Result<(), Error> {
    diesel::insert_into(known_networks::table)
        .values((
            known_networks::user_id.eq(user),
            known_networks::network_hash.eq(network_hash(user, client).as_slice()),
        ))
        .on_conflict((known_networks::user_id, known_networks::network_hash))
        .do_update()
        .set(known_networks::last_sign_in.eq(now))
        .execute(connection)?;
    // The DSL has no OFFSET in a DELETE's subquery of the same table.
    diesel::sql_query(
        "DELETE FROM known_networks WHERE user_id = $1 AND network_hash IN (\
            SELECT network_hash FROM known_networks WHERE user_id = $1 \
            ORDER BY last_sign_in DESC, network_hash OFFSET $2)",
    )
    .bind::<Binary, _>(user)
    .bind::<BigInt, _>(MAX_NETWORKS)
    .execute(connection)?;
    Ok(())
}

pub(crate) fn forget_networks(
    connection: &mut Connection,
    user: UserId,
    kept: Option<&ClientNetwork>,
) -> Result<(), Error> {
    let kept = kept.map(|client| network_hash(user, client).to_vec());
    let forgotten = known_networks::table
        .filter(known_networks::user_id.eq(user))
        .filter(not(known_networks::network_hash.eq_any(kept)));
    diesel::delete(forgotten).execute(connection)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use diesel::{Connection as _, QueryDsl as _, RunQueryDsl as _};
    use testkit::{TestDatabase, eventually, lines};
    use values::{EmailAddress, FromText as _};

    use super::super::{AttemptKey, CountedAttempt, name_hash};
    use super::{count, delete_failures_batch, refund};
    use crate::client_network::ClientNetwork;
    use crate::error::UserError;
    use crate::schema::sign_in_failures;

    /// Attempts under one name that no user has.
    struct Attempts {
        database: TestDatabase,
        connection: database::Connection,
    }

    impl Attempts {
        fn new() -> Self {
            let database = TestDatabase::users(crate::MIGRATIONS);
            let url = database.users_url();
            Self {
                connection: database::Connection::establish(url.expose()).unwrap(),
                database,
            }
        }

        /// `None` if the attempt must wait.
        fn count(&mut self, network: &str) -> Option<CountedAttempt> {
            let client = ClientNetwork::from(network);
            let name = name_hash("nobody@example.com");
            let key = AttemptKey::load(&mut self.connection, name, None, &client).unwrap();
            database::transaction(&mut self.connection, |connection| {
                match count(connection, key) {
                    Err(UserError::TooManyAttempts(_)) => Ok(None),
                    counted => counted.map(Some),
                }
            })
            .unwrap()
        }

        fn refund(&mut self, attempt: &CountedAttempt) {
            refund(&mut self.connection, attempt).unwrap();
        }
    }

    #[test]
    fn a_refunded_attempt_leaves_no_pause() {
        let mut attempts = Attempts::new();
        for _ in 0..4 {
            attempts.count("a").unwrap();
        }
        for _ in 0..3 {
            let fifth = attempts.count("a").unwrap();
            attempts.refund(&fifth);
        }
        attempts.count("a").unwrap();
        assert!(attempts.count("a").is_none());
    }

    #[test]
    fn a_refunded_attempt_under_a_new_name_leaves_no_row() {
        let mut attempts = Attempts::new();
        let first = attempts.count("a").unwrap();
        attempts.refund(&first);
        let rows = sign_in_failures::table.count();
        let rows: i64 = rows.get_result(&mut attempts.connection).unwrap();
        assert_eq!(rows, 0);
    }

    #[test]
    fn a_refund_does_not_end_the_pause_that_another_attempt_started() {
        let mut attempts = Attempts::new();
        for _ in 0..3 {
            attempts.count("a").unwrap();
        }
        let fourth = attempts.count("a").unwrap();
        attempts.count("a").unwrap();
        attempts.refund(&fourth);
        assert!(attempts.count("a").is_none());
    }

    /// Failures of two hundred networks and, as the last row, those from anywhere.
    const FAILURES: &str = "
        INSERT INTO users.sign_in_failures (account, client_address, failures)
        SELECT sha256('nobody@example.com'), network, 1
        FROM (SELECT n, CASE WHEN n < 200 THEN n::text ELSE '' END AS network
            FROM generate_series(0, 200) AS n ORDER BY n) AS networks";

    #[tokio::test]
    async fn failures_from_anywhere_are_locked_before_those_of_a_network() {
        let mut attempts = Attempts::new();
        let database = &attempts.database;
        let (mut first, mut other) = (database.admin(), database.admin());
        first.batch_execute(FAILURES).unwrap();
        let lock = "BEGIN; SELECT FROM users.sign_in_failures WHERE client_address = '' FOR UPDATE";
        first.batch_execute(lock).unwrap();
        let deleting = std::thread::spawn(move || {
            let name = EmailAddress::from_text("nobody@example.com").unwrap();
            delete_failures_batch(&mut attempts.connection, &[&name], 1_000).unwrap()
        });
        eventually("the deletion to wait", async || {
            let waiting = "SELECT query AS line FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (lines(&mut other, waiting).len() == 1).then_some(())
        })
        .await;
        let free = "SELECT count(*)::text AS line FROM
            (SELECT FROM users.sign_in_failures FOR UPDATE SKIP LOCKED) AS free";
        assert_eq!(lines(&mut other, free), ["200"]);
        first.batch_execute("ROLLBACK").unwrap();
        assert_eq!(deleting.join().unwrap(), 201);
    }

    #[test]
    fn a_refund_does_not_end_the_pause_that_another_network_started_for_all() {
        let mut attempts = Attempts::new();
        let first = attempts.count("a").unwrap();
        for number in 0..49 {
            attempts.count(&format!("b{number}")).unwrap();
        }
        attempts.refund(&first);
        assert!(attempts.count("c").is_none());
    }
}
