//! Sign-in in the database: names, failures, the time of the last sign-in.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::Timestamptz;
use diesel::upsert::excluded;
use values::UserId;

use super::back_off::Counted;
use super::{Attempt, Candidate};
use crate::accounts::User;
use crate::schema::{sign_in_failures, sign_in_names, users};
use crate::sql::interval;

/// The client address of the row that counts failures from anywhere.
const ANYWHERE: &str = "";

/// The user who signs in by a name.
pub(super) fn candidate(
    connection: &mut PgConnection,
    attempt: &Attempt,
) -> Result<Option<Candidate>, DieselError> {
    sign_in_names::table
        .inner_join(users::table)
        .filter(sign_in_names::name.eq(attempt.name.key()))
        .select((
            users::id,
            users::password_hash,
            users::is_active,
            users::epoch,
        ))
        .first::<(UserId, String, bool, i64)>(connection)
        .optional()
        .map(|found| {
            found.map(|(id, password_hash, is_active, epoch)| Candidate {
                id,
                password_hash,
                is_active,
                epoch,
            })
        })
}

/// How long this attempt must wait, by the database's clock.
pub(super) fn wait(
    connection: &mut PgConnection,
    attempt: &Attempt,
) -> Result<Option<Duration>, DieselError> {
    let account = attempt.name.account();
    let rows = sign_in_failures::table
        .filter(sign_in_failures::account.eq(account.as_slice()))
        .filter(
            sign_in_failures::client_address.eq_any([attempt.client_address.as_str(), ANYWHERE]),
        )
        .filter(sign_in_failures::blocked_until.gt(now))
        .select((
            sign_in_failures::blocked_until.assume_not_null(),
            now.into_sql::<Timestamptz>(),
        ))
        .load::<(DateTime<Utc>, DateTime<Utc>)>(connection)?;
    let waits = rows
        .into_iter()
        .map(|(until, clock)| (until - clock).to_std());
    Ok(waits.filter_map(Result::ok).max())
}

/// Counts a failure, for a known and an unknown name alike.
pub(super) fn count_failure(
    connection: &mut PgConnection,
    attempt: &Attempt,
) -> Result<(), DieselError> {
    // Always in this order, so that two transactions do not wait for each other.
    count(connection, attempt, ANYWHERE, Counted::FromAnywhere)?;
    let address = attempt.client_address.as_str();
    count(connection, attempt, address, Counted::FromOneAddress)
}

fn count(
    connection: &mut PgConnection,
    attempt: &Attempt,
    client_address: &str,
    counted: Counted,
) -> Result<(), DieselError> {
    let account = attempt.name.account();
    let failures: i32 = diesel::insert_into(sign_in_failures::table)
        .values((
            sign_in_failures::account.eq(account.as_slice()),
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
        .returning(sign_in_failures::failures)
        .get_result(connection)?;
    let Some(pause) = counted.pause_after(failures) else {
        return Ok(());
    };
    let row = sign_in_failures::table.find((account.as_slice(), client_address));
    let until = now.into_sql::<Timestamptz>() + interval(pause);
    diesel::update(row)
        .set(sign_in_failures::blocked_until.eq(until.nullable()))
        .execute(connection)?;
    Ok(())
}

/// Ends the row of failures that a right password ends: those from this client address and those from
/// anywhere. Failures from other addresses stay, for they may be somebody else's.
pub(super) fn forget_failures(
    connection: &mut PgConnection,
    attempt: &Attempt,
) -> Result<(), DieselError> {
    let account = attempt.name.account();
    diesel::delete(sign_in_failures::table)
        .filter(sign_in_failures::account.eq(account.as_slice()))
        .filter(
            sign_in_failures::client_address.eq_any([attempt.client_address.as_str(), ANYWHERE]),
        )
        .execute(connection)?;
    Ok(())
}

/// Ends every row of failures of these accounts.
pub(crate) fn forget_all_failures(
    connection: &mut PgConnection,
    accounts: &[[u8; 32]],
) -> Result<(), DieselError> {
    let accounts = accounts.iter().map(|account| account.to_vec());
    diesel::delete(sign_in_failures::table)
        .filter(sign_in_failures::account.eq_any(accounts))
        .execute(connection)?;
    Ok(())
}

/// Notes a sign-in, unless the account was changed since its password was read. A renewed hash goes
/// in at the same time.
pub(super) fn note_sign_in(
    connection: &mut PgConnection,
    candidate: &Candidate,
    renewed_hash: Option<&str>,
) -> Result<Option<User>, DieselError> {
    let unchanged = users::table
        .find(candidate.id)
        .filter(users::epoch.eq(candidate.epoch))
        .filter(users::is_active);
    diesel::update(unchanged)
        .set((
            users::last_sign_in.eq(now),
            renewed_hash.map(|hash| users::password_hash.eq(hash)),
        ))
        .returning(User::as_returning())
        .get_result(connection)
        .optional()
}
