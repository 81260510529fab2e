//! Passwords and codes in the database.

use std::time::Duration;

use audit_log::Entry;
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::{BigInt, Binary, Double, Text};
use values::{EmailAddress, Fingerprint, UserId};

use super::limits::Counted;
use crate::accounts::User;
use crate::schema::{codes, users};

const FORGOT_PASSWORD: &str = "forgot-password";

/// The hash of a user's password, and the epoch at which it was read.
pub(super) fn password(
    connection: &mut PgConnection,
    id: UserId,
) -> Result<Option<(String, i64)>, DieselError> {
    users::table
        .find(id)
        .select((users::password_hash, users::epoch))
        .first(connection)
        .optional()
}

/// The user with an e-mail address.
pub(super) fn user_with_email(
    connection: &mut PgConnection,
    email: &EmailAddress,
) -> Result<Option<UserId>, DieselError> {
    users::table
        .filter(users::email_key.eq(email.key()))
        .select(users::id)
        .first(connection)
        .optional()
}

/// Gives a user a new password, which ends all earlier tokens and codes; the entry says how. With `epoch`, only if nothing
/// has ended the tokens of that epoch meanwhile.
pub(super) fn set_password(
    connection: &mut PgConnection,
    id: UserId,
    epoch: Option<i64>,
    hash: &str,
    entry: Entry,
) -> Result<Option<User>, DieselError> {
    let mut update = diesel::update(users::table.find(id)).into_boxed();
    if let Some(epoch) = epoch {
        update = update.filter(users::epoch.eq(epoch));
    }
    let update = update
        .set((
            users::password_hash.eq(hash),
            users::epoch.eq(users::epoch + 1),
            users::code_generation.eq(users::code_generation + 1),
            users::mtime.eq(now),
        ))
        .returning(User::as_returning());
    entry.with(update).get_result(connection).optional()
}

/// Makes all earlier codes of the user with this e-mail address invalid, if there is such a user.
pub(super) fn begin_recovery(
    connection: &mut PgConnection,
    email: &EmailAddress,
) -> Result<Option<UserId>, DieselError> {
    diesel::update(users::table.filter(users::email_key.eq(email.key())))
        .set(users::code_generation.eq(users::code_generation + 1))
        .returning(users::id)
        .get_result(connection)
        .optional()
}

/// The user whom a valid code was sent to.
pub(super) fn user_of_code(
    connection: &mut PgConnection,
    code: Fingerprint,
) -> Result<Option<UserId>, DieselError> {
    codes::table
        .inner_join(users::table)
        .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
        .filter(codes::purpose.eq(FORGOT_PASSWORD))
        .filter(codes::generation.eq(users::code_generation))
        .filter(codes::expires.gt(now))
        .select(users::id)
        .first(connection)
        .optional()
}

/// Removes every code of a user, valid or not.
pub(super) fn delete_codes(connection: &mut PgConnection, id: UserId) -> Result<(), DieselError> {
    diesel::delete(codes::table)
        .filter(codes::user_id.eq(id))
        .filter(codes::purpose.eq(FORGOT_PASSWORD))
        .execute(connection)?;
    Ok(())
}

#[derive(QueryableByName)]
struct Excess {
    #[diesel(sql_type = Double)]
    seconds: f64,
}

/// Counts a request for a code, of which there may be `an_hour` at once and then one more as often as
/// that makes; how long to wait when it was one too many.
pub(super) fn count_code_request(
    connection: &mut PgConnection,
    counted: Counted,
    subject: [u8; 32],
    an_hour: u32,
) -> Result<Option<Duration>, DieselError> {
    // The DSL knows neither `greatest` nor `extract`. The clock is read after a wait for the row.
    let excess: Excess = diesel::sql_query(
        "INSERT INTO code_requests AS r (counted, subject, forgotten_at)
        VALUES ($1, $2, clock_timestamp() + interval '1 hour' / $3)
        ON CONFLICT (counted, subject) DO UPDATE
        SET forgotten_at = greatest(r.forgotten_at, clock_timestamp()) + interval '1 hour' / $3
        RETURNING extract(epoch FROM
            forgotten_at - clock_timestamp() - interval '1 hour')::double precision AS seconds",
    )
    .bind::<Text, _>(counted.name())
    .bind::<Binary, _>(subject.as_slice())
    .bind::<BigInt, _>(i64::from(an_hour))
    .get_result(connection)?;
    let wait = Duration::try_from_secs_f64(excess.seconds).ok();
    Ok(wait.filter(|wait| !wait.is_zero()))
}
