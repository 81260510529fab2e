//! Sign-in in the database: names, failures, the time of the last sign-in.

use std::time::Duration;

use audit_log::Entry;
use chrono::{DateTime, Utc};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::Timestamptz;
use diesel::upsert::excluded;
use values::UserId;

use super::back_off::Counted;
use super::{Attempt, Candidate, SignInName, Tally};
use crate::accounts::User;
use crate::schema::{sign_in_failures, sign_in_names, users};
use crate::sql::interval;

/// The client address of the row that counts failures from anywhere.
const ANYWHERE: &str = "";

impl Tally {
    /// The client addresses of the rows in which an attempt counts: from anywhere, and from its own. Everybody
    /// takes them in this order, so that two transactions do not wait for each other.
    fn client_addresses(&self) -> [&str; 2] {
        [ANYWHERE, &self.client_address]
    }
}

/// The user who signs in by a name, and the rows in which this attempt counts.
///
/// Both names of an account count together: its rows go by the username. A name that nobody has has
/// rows of its own, so that it looks like any other.
pub(super) fn candidate(
    connection: &mut PgConnection,
    attempt: &Attempt,
) -> Result<(Option<Candidate>, Tally), DieselError> {
    let found = sign_in_names::table
        .inner_join(users::table)
        .filter(sign_in_names::name.eq(attempt.name.key()))
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
    let counted_by = username.map_or_else(|| attempt.name.clone(), |name| SignInName::new(&name));
    let tally = Tally {
        account: counted_by.account(),
        client_address: attempt.client_address.clone(),
    };
    Ok((candidate, tally))
}

/// Counts an attempt as a failure before it is judged, so that guesses that come side by side find each
/// other; a right password takes it back. Returns how long the attempt must wait instead, by the
/// database's clock; then the transaction must be rolled back.
pub(super) fn count_attempt(
    connection: &mut PgConnection,
    tally: &Tally,
) -> Result<Option<Duration>, DieselError> {
    let [anywhere, own] = tally.client_addresses();
    let anywhere = count(connection, tally, anywhere, Counted::FromAnywhere)?;
    let own = count(connection, tally, own, Counted::FromOneAddress)?;
    Ok(anywhere.max(own))
}

fn count(
    connection: &mut PgConnection,
    tally: &Tally,
    client_address: &str,
    counted: Counted,
) -> Result<Option<Duration>, DieselError> {
    // What is returned was read under the row's lock, so no other attempt is missed.
    let (failures, blocked_until, clock) = diesel::insert_into(sign_in_failures::table)
        .values((
            sign_in_failures::account.eq(tally.account.as_slice()),
            sign_in_failures::client_address.eq(client_address),
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
    if let Some(pause) = counted.pause_after(failures) {
        let row = sign_in_failures::table.find((tally.account.as_slice(), client_address));
        let until = now.into_sql::<Timestamptz>() + interval(pause);
        diesel::update(row)
            .set(sign_in_failures::blocked_until.eq(until.nullable()))
            .execute(connection)?;
    }
    Ok(None)
}

/// Takes an attempt back that could not be judged.
pub(super) fn uncount_attempt(
    connection: &mut PgConnection,
    tally: &Tally,
) -> Result<(), DieselError> {
    for client_address in tally.client_addresses() {
        let row = sign_in_failures::table.find((tally.account.as_slice(), client_address));
        diesel::update(row)
            .set((
                sign_in_failures::failures.eq(sign_in_failures::failures - 1),
                sign_in_failures::blocked_until.eq(None::<DateTime<Utc>>),
            ))
            .execute(connection)?;
    }
    Ok(())
}

/// Ends the row of failures that a right password ends: those from this client address and those from
/// anywhere. Failures from other addresses stay, for they may be somebody else's.
pub(super) fn forget_failures(
    connection: &mut PgConnection,
    tally: &Tally,
) -> Result<(), DieselError> {
    for client_address in tally.client_addresses() {
        let row = sign_in_failures::table.find((tally.account.as_slice(), client_address));
        diesel::delete(row).execute(connection)?;
    }
    Ok(())
}

/// Ends every row of failures of these accounts.
pub(crate) fn forget_all_failures(
    connection: &mut PgConnection,
    accounts: &[[u8; 32]],
) -> Result<(), DieselError> {
    let rows = sign_in_failures::account.eq_any(accounts.iter().map(<[u8; 32]>::as_slice));
    // In the order of `client_addresses`, where the empty one comes first: a DELETE has none.
    let _locked: Vec<i32> = sign_in_failures::table
        .filter(rows.clone())
        .order((sign_in_failures::account, sign_in_failures::client_address))
        .for_update()
        .select(sign_in_failures::failures)
        .load(connection)?;
    diesel::delete(sign_in_failures::table.filter(rows)).execute(connection)?;
    Ok(())
}

/// Notes a sign-in, unless the account was changed since its password was read. A renewed hash goes
/// in at the same time.
pub(super) fn note_sign_in(
    connection: &mut PgConnection,
    candidate: &Candidate,
    renewed_hash: Option<&str>,
    entry: Entry,
) -> Result<Option<User>, DieselError> {
    let unchanged = users::table
        .find(candidate.id)
        .filter(users::epoch.eq(candidate.epoch))
        .filter(users::is_active);
    let note = diesel::update(unchanged)
        .set((
            users::last_sign_in.eq(now),
            renewed_hash.map(|hash| users::password_hash.eq(hash)),
        ))
        .returning(User::as_returning());
    entry.with(note).get_result(connection).optional()
}

/// The user, if still there, who stays until the transaction ends: the deletion of a user waits for what
/// is written about the user, and finds it.
pub(super) fn stays(
    connection: &mut PgConnection,
    user: UserId,
) -> Result<Option<UserId>, DieselError> {
    users::table
        .find(user)
        .select(users::id)
        .for_key_share()
        .first(connection)
        .optional()
}
