//! Changes of users that the people-task service has not been told, in the database. A trigger writes the rows.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval, prepared};
use diesel::dsl::{case_when, min, now};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Interval, Nullable, Timestamptz};
use serde::Serialize;
use values::{EmailAddress, UserId};

use crate::schema::{deletion_settings, user_changes, users};

/// The time from the first call about a user to the next one if the first fails, and the longest. A usual call is much
/// shorter, so no other worker repeats it meanwhile.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// What the people-task service knows of a user.
#[derive(Debug, Clone, Queryable, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserState {
    #[serde(skip)]
    pub(super) user: UserId,
    /// The time of the latest change that the state contains.
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

/// Claims at most `limit` due changes, and loads the present states of their users. Unless they are told, they are due again
/// after a pause that doubles with every claim. None while the user-service has not said which addresses give access to
/// tasks. Must run in a transaction. It waits for no lock.
pub(super) fn claim(connection: &mut Connection, limit: i64) -> Result<Vec<UserState>, Error> {
    let settings = deletion_settings::table.select(deletion_settings::confirmation_required);
    let confirmation_required = settings.first::<Option<bool>>(connection).optional()?;
    let Some(confirmation_required) = confirmation_required.flatten() else {
        return Ok(Vec::new());
    };
    // The DSL has no subquery that locks rows.
    let claimed: Vec<UserId> = prepared(
        "UPDATE user_changes SET attempts = attempts + 1,
            next_attempt = now() + least($2 * 2 ^ least(attempts, 20), $3)
         WHERE user_id = ANY(ARRAY(
            SELECT user_id FROM user_changes WHERE next_attempt <= now()
            ORDER BY next_attempt LIMIT $1 FOR UPDATE SKIP LOCKED))
         RETURNING user_id",
    )
    .bind::<BigInt, _>(limit)
    .bind::<Interval, _>(interval(FIRST_RETRY))
    .bind::<Interval, _>(interval(LONGEST_RETRY))
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

pub(super) fn oldest_age(connection: &mut Connection) -> Result<Duration, Error> {
    let (oldest, clock): (Option<DateTime<Utc>>, DateTime<Utc>) = user_changes::table
        .select((min(user_changes::changed), now.into_sql::<Timestamptz>()))
        .first(connection)?;
    let age = oldest.and_then(|oldest| (clock - oldest).to_std().ok());
    Ok(age.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use testkit::{TestDatabase, lines};

    use super::{claim, delete};

    const ONE_CHANGE: &str = "
        SET search_path = users;
        INSERT INTO deletion_settings (with_engine, confirmation_required) VALUES (true, false);
        INSERT INTO users (id, username, username_key, email, email_key, password_hash, plan, scope)
        VALUES ('\\x65b8f0a2c3d4e5f601234567', 'a@b.c', 'a@b.c', 'a@b.c', 'a@b.c', 'x', 'free', '{user}');
        INSERT INTO user_changes (user_id, changed) SELECT id, now() FROM users;
        BEGIN";

    #[test]
    fn the_pause_after_a_claim_doubles_up_to_a_minute() {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let mut connection = database.admin();
        connection.batch_execute(ONE_CHANGE).unwrap();
        for expected in ["1", "2", "4", "8", "16", "32", "60", "60"] {
            let states = claim(&mut connection, 1).unwrap();
            assert_eq!(states.len(), 1);
            let pause = "SELECT extract(epoch FROM next_attempt - now())::int::text AS line FROM user_changes";
            assert_eq!(lines(&mut connection, pause), [expected]);
            let end = "UPDATE user_changes SET next_attempt = now()";
            connection.batch_execute(end).unwrap();
        }
    }

    #[test]
    fn a_change_while_an_earlier_one_is_told_is_kept() {
        let database = TestDatabase::users(crate::MIGRATIONS);
        let mut connection = database.admin();
        connection.batch_execute(ONE_CHANGE).unwrap();
        let count = "SELECT count(*)::text AS line FROM user_changes";
        for (meanwhile, left) in [("changed + interval '1 ms'", "1"), ("changed", "0")] {
            let told = claim(&mut connection, 1).unwrap().remove(0);
            let change =
                format!("UPDATE user_changes SET changed = {meanwhile}, next_attempt = now()");
            connection.batch_execute(&change).unwrap();
            delete(&mut connection, &told).unwrap();
            assert_eq!(lines(&mut connection, count), [left], "{meanwhile}");
        }
    }
}
