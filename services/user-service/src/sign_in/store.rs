//! Sign-in in the database: names, failures, the time of the last sign-in.
//!
//! The columns `account` and `client_address` hold the hash of a name and a client network.

use std::time::Duration;

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Timestamptz};
use diesel::upsert::excluded;
use values::UserId;

use super::attempt::{Attempt, AttemptKey};
use super::back_off::FailureScope;
use super::name::SignInName;
use crate::accounts::User;
use crate::schema::{sign_in_failures, sign_in_names, users};

/// The client network of the row that counts failures from anywhere.
const ANYWHERE: &str = "";

/// The user with the given name, before the password is checked.
#[derive(Debug, Clone, Queryable)]
pub(super) struct Candidate {
    pub(super) id: UserId,
    pub(super) password_hash: String,
    pub(super) is_active: bool,
    pub(super) epoch: i64,
}

impl AttemptKey {
    /// The client networks of the rows that count an attempt: anywhere, and its own. Every transaction
    /// locks them in this order, so that two of them cannot deadlock.
    fn client_networks(&self) -> [&str; 2] {
        [ANYWHERE, self.client_network.as_str()]
    }
}

/// The user with the name of an attempt, and the key of the rows that count it.
///
/// Both names of a user count together, by the username. An unknown name has its own rows, so that it
/// looks like any other.
pub(super) fn find_candidate(
    connection: &mut Connection,
    attempt: &Attempt,
) -> Result<(Option<Candidate>, AttemptKey), Error> {
    let found = sign_in_names::table
        .inner_join(users::table)
        .filter(sign_in_names::name.eq(attempt.name.as_str()))
        .select((
            users::username_key,
            (
                users::id,
                users::password_hash,
                users::is_active,
                users::epoch,
            ),
        ))
        .first::<(String, Candidate)>(connection)
        .optional()?;
    let (username, candidate) = found.unzip();
    let name = username.map_or_else(|| attempt.name.clone(), |name| SignInName::new(&name));
    let key = AttemptKey {
        name_hash: name.name_hash(),
        client_network: attempt.client_network.clone(),
    };
    Ok((candidate, key))
}

/// Counts an attempt as a failure before its password is checked, so that concurrent guesses count each
/// other; a correct password deletes the failures. If the attempt must wait instead, returns for how long
/// by the database's clock, and the caller must roll back the transaction.
pub(super) fn count_attempt(
    connection: &mut Connection,
    key: &AttemptKey,
) -> Result<Option<Duration>, Error> {
    let [anywhere, own] = key.client_networks();
    let anywhere = count(connection, key, anywhere, FailureScope::Anywhere)?;
    let own = count(connection, key, own, FailureScope::OneNetwork)?;
    Ok(anywhere.max(own))
}

fn count(
    connection: &mut Connection,
    key: &AttemptKey,
    client_network: &str,
    scope: FailureScope,
) -> Result<Option<Duration>, Error> {
    // RETURNING reads under the row's lock, so it includes every other attempt.
    let (failures, blocked_until, clock) = diesel::insert_into(sign_in_failures::table)
        .values((
            sign_in_failures::account.eq(key.name_hash.as_slice()),
            sign_in_failures::client_address.eq(client_network),
            sign_in_failures::failures.eq(1),
        ))
        .on_conflict((sign_in_failures::account, sign_in_failures::client_address))
        .do_update()
        .set((
            sign_in_failures::failures
                .eq(sign_in_failures::failures + excluded(sign_in_failures::failures)),
            sign_in_failures::last_failure.eq(now),
        ))
        .returning((
            sign_in_failures::failures,
            sign_in_failures::blocked_until,
            now.into_sql::<Timestamptz>(),
        ))
        .get_result::<(i32, Option<DateTime<Utc>>, DateTime<Utc>)>(connection)?;
    if let Some(wait) = blocked_until.and_then(|until| (until - clock).to_std().ok()) {
        return Ok(Some(wait));
    }
    if let Some(pause) = scope.pause_after(failures) {
        let row = sign_in_failures::table.find((key.name_hash.as_slice(), client_network));
        let until = now.into_sql::<Timestamptz>() + interval(pause);
        diesel::update(row)
            .set(sign_in_failures::blocked_until.eq(until.nullable()))
            .execute(connection)?;
    }
    Ok(None)
}

/// Takes back an attempt whose password could not be checked.
pub(super) fn refund_attempt(connection: &mut Connection, key: &AttemptKey) -> Result<(), Error> {
    for client_network in key.client_networks() {
        let row = sign_in_failures::table.find((key.name_hash.as_slice(), client_network));
        diesel::update(row)
            .set((
                sign_in_failures::failures.eq(sign_in_failures::failures - 1),
                sign_in_failures::blocked_until.eq(None::<DateTime<Utc>>),
            ))
            .execute(connection)?;
    }
    Ok(())
}

/// Deletes the failures that a correct password clears: those from this client network and those from
/// anywhere. Failures from other networks can be an attacker's, so they stay.
pub(super) fn delete_failures(connection: &mut Connection, key: &AttemptKey) -> Result<(), Error> {
    for client_network in key.client_networks() {
        let row = sign_in_failures::table.find((key.name_hash.as_slice(), client_network));
        diesel::delete(row).execute(connection)?;
    }
    Ok(())
}

/// Deletes all failures of these names.
pub(crate) fn delete_all_failures(
    connection: &mut Connection,
    name_hashes: &[[u8; 32]],
) -> Result<(), Error> {
    let rows = sign_in_failures::account.eq_any(name_hashes.iter().map(<[u8; 32]>::as_slice));
    // In the order of `client_networks`, where the empty one comes first. A DELETE has no order.
    let _locked: Vec<i32> = sign_in_failures::table
        .filter(rows.clone())
        .order((sign_in_failures::account, sign_in_failures::client_address))
        .for_update()
        .select(sign_in_failures::failures)
        .load(connection)?;
    diesel::delete(sign_in_failures::table.filter(rows)).execute(connection)?;
    Ok(())
}

/// Deletes at most `batch` failures of each name, and returns the largest number that was deleted.
pub(crate) fn delete_failures_batch(
    connection: &mut Connection,
    name_hashes: &[[u8; 32]],
    batch: i64,
) -> Result<usize, Error> {
    let mut most = 0;
    for name_hash in name_hashes {
        // The DSL has neither LIMIT for DELETE nor an IN of two columns.
        let deleted = diesel::sql_query(
            "DELETE FROM sign_in_failures WHERE account = $1 AND client_address IN (\
                SELECT client_address FROM sign_in_failures WHERE account = $1 LIMIT $2)",
        )
        .bind::<Binary, _>(name_hash.as_slice())
        .bind::<BigInt, _>(batch)
        .execute(connection)?;
        most = most.max(deleted);
    }
    Ok(most)
}

/// Records a sign-in and its new hash, unless the account was changed since its password was read.
pub(super) fn record_sign_in(
    connection: &mut Connection,
    candidate: &Candidate,
    new_hash: Option<&str>,
    entry: Entry,
) -> Result<Option<User>, Error> {
    let unchanged = users::table
        .find(candidate.id)
        .filter(users::epoch.eq(candidate.epoch))
        .filter(users::is_active);
    let record = diesel::update(unchanged)
        .set((
            users::last_sign_in.eq(now),
            new_hash.map(|hash| users::password_hash.eq(hash)),
        ))
        .returning(User::as_returning());
    Ok(entry
        .record_with(record)
        .get_result(connection)
        .optional()?)
}

/// Locks a user against deletion until the transaction ends, so that a concurrent deletion sees the rows
/// about the user that the transaction writes. `None` if the user does not exist.
pub(super) fn lock_user(
    connection: &mut Connection,
    user: UserId,
) -> Result<Option<UserId>, Error> {
    Ok(users::table
        .find(user)
        .select(users::id)
        .for_key_share()
        .first(connection)
        .optional()?)
}
