//! Changes of users that the people-task service has not been told, in the database. A trigger writes the rows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval, prepared};
use diesel::dsl::{case_when, min, now};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Interval, Nullable, Timestamptz};
use serde::Serialize;
use values::{EmailAddress, UserId};

use crate::people_tasks::with_microseconds;
use crate::schema::{deletion_settings, user_changes, users};

/// The pause after the first failed call about a user, and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// What the people-task service knows of a user.
#[derive(Debug, Clone, Queryable, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserState {
    #[serde(skip)]
    pub(super) user: UserId,
    /// The time of the latest change that the state contains.
    #[serde(serialize_with = "with_microseconds")]
    changed: DateTime<Utc>,
    is_active: bool,
    is_admin: bool,
    /// The address, if it gives access to tasks.
    email: Option<EmailAddress>,
}

#[diesel::declare_sql_function]
extern "SQL" {
    /// The later time, or the only one.
    fn greatest(one: Timestamptz, other: Nullable<Timestamptz>) -> Timestamptz;
}

/// Claims at most `limit` due changes for a time, and loads the present states of their users. `None` while the
/// user-service has not said which addresses give access to tasks. Must run in a transaction. It waits for no lock.
pub(super) fn claim(
    connection: &mut Connection,
    limit: i64,
    lease: Duration,
) -> Result<Vec<UserState>, Error> {
    let settings = deletion_settings::table.select(deletion_settings::confirmation_required);
    let confirmation_required = settings.first::<Option<bool>>(connection).optional()?;
    let Some(confirmation_required) = confirmation_required.flatten() else {
        return Ok(Vec::new());
    };
    // The DSL has no subquery that locks rows.
    let claimed: Vec<UserId> = prepared(
        "UPDATE user_changes SET attempts = attempts + 1, next_attempt = now() + $2
         WHERE user_id = ANY(ARRAY(
            SELECT user_id FROM user_changes WHERE next_attempt <= now()
            ORDER BY next_attempt LIMIT $1 FOR UPDATE SKIP LOCKED))
         RETURNING user_id",
    )
    .bind::<BigInt, _>(limit)
    .bind::<Interval, _>(interval(lease))
    .returning::<Binary>()
    .load(connection)?;
    let is_trusted = users::email_confirmed
        .is_not_null()
        .or((!confirmation_required).into_sql::<Bool>());
    Ok(user_changes::table
        .inner_join(users::table)
        .filter(user_changes::user_id.eq_any(claimed))
        .select((
            user_changes::user_id,
            // A user who was inactive before changes were noted has no time of a change.
            greatest(user_changes::changed, users::access_changed),
            users::is_active,
            users::scope.contains(vec![auth::ADMIN_SCOPE]),
            case_when(is_trusted, users::email),
        ))
        .load(connection)?)
}

pub(super) fn delete(connection: &mut Connection, told: &UserState) -> Result<(), Error> {
    let change = user_changes::table
        .find(told.user)
        .filter(user_changes::changed.le(told.changed));
    diesel::delete(change).execute(connection)?;
    Ok(())
}

/// Makes changes that were not told due again after a pause that doubles with every attempt. Later changes of the same
/// users are due already.
pub(super) fn retry(connection: &mut Connection, states: &[UserState]) -> Result<(), Error> {
    let users = states.iter().map(|state| state.user.as_bytes().to_vec());
    let times = states.iter().map(|state| state.changed);
    // The DSL has neither `least` nor a join in an UPDATE.
    diesel::sql_query(
        "UPDATE user_changes AS c
         SET next_attempt = now() + least($3 * 2 ^ least(c.attempts - 1, 20), $4)
         FROM unnest($1, $2) AS told (user_id, changed)
         WHERE c.user_id = told.user_id AND c.changed <= told.changed",
    )
    .bind::<Array<Binary>, _>(users.collect::<Vec<_>>())
    .bind::<Array<Timestamptz>, _>(times.collect::<Vec<_>>())
    .bind::<Interval, _>(interval(FIRST_RETRY))
    .bind::<Interval, _>(interval(LONGEST_RETRY))
    .execute(connection)?;
    Ok(())
}

pub(super) fn oldest_age(connection: &mut Connection) -> Result<Duration, Error> {
    let (oldest, clock): (Option<DateTime<Utc>>, DateTime<Utc>) = user_changes::table
        .select((min(user_changes::changed), now.into_sql::<Timestamptz>()))
        .first(connection)?;
    let age = oldest.and_then(|oldest| (clock - oldest).to_std().ok());
    Ok(age.unwrap_or_default())
}
