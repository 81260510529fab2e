//! Addresses that gave a user access to tasks until the user got another one.

use chrono::{DateTime, Utc};
use database::{Connection, Error};
use diesel::dsl::{max, min};
use diesel::prelude::*;
use serde::Serialize;
use values::{EmailAddress, Timestamp, UserId};

use crate::accounts::User;
use crate::schema::{deletions, former_emails, users};

/// An address that was a user's. Tasks that were created before or after that time may be of another person.
#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = former_emails)]
pub(crate) struct FormerEmail {
    #[serde(skip)]
    id: i64,
    #[diesel(column_name = email_key)]
    email: EmailAddress,
    since: DateTime<Utc>,
    until: DateTime<Utc>,
}

/// Records that the user gives up the present address now.
pub(crate) fn insert_present(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    let present = users::table
        .find(user)
        .select((users::id, users::email_key, users::email_since));
    present
        .insert_into(former_emails::table)
        .into_columns((
            former_emails::user_id,
            former_emails::email_key,
            former_emails::since,
        ))
        .execute(connection)?;
    Ok(())
}

/// Keeps failed deletions from erasing tasks that were requested under the user's new address, which no one has confirmed: they
/// may be started again, and were to erase those of the former one. The caller has locked the user, of whom no deletion is in
/// progress.
pub(crate) fn distrust_new(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    diesel::update(deletions::table.filter(deletions::user_id.eq(user)))
        .set(deletions::email_trusted.eq(false))
        .execute(connection)?;
    Ok(())
}

pub(crate) fn load(
    connection: &mut Connection,
    user: UserId,
    limit: i64,
) -> Result<Vec<FormerEmail>, Error> {
    Ok(former_emails::table
        .filter(former_emails::user_id.eq(user))
        .order(former_emails::id)
        .limit(limit)
        .select(FormerEmail::as_select())
        .load(connection)?)
}

/// The times at which a user has the present address and no other user had it; none if no other user ever had it.
pub(crate) fn times_of_present(
    connection: &mut Connection,
    user: &User,
) -> Result<Vec<FormerEmail>, Error> {
    let times: (Option<DateTime<Utc>>, Option<DateTime<Utc>>) = former_emails::table
        .filter(former_emails::email_key.eq(user.email.normalized()))
        .filter(former_emails::user_id.ne(user.id))
        .select((min(former_emails::since), max(former_emails::until)))
        .first(connection)?;
    let (Some(first), Some(last)) = times else {
        return Ok(Vec::new());
    };
    let times = [(DateTime::UNIX_EPOCH, first), (last, Timestamp::MAX.0)];
    let present = |(since, until)| FormerEmail {
        id: 0,
        email: user.email.clone(),
        since,
        until,
    };
    Ok(times.map(present).into())
}

/// Deletes addresses that were loaded, and returns their number.
pub(crate) fn delete(
    connection: &mut Connection,
    user: UserId,
    emails: &[FormerEmail],
) -> Result<usize, Error> {
    let ids = emails.iter().map(|email| email.id);
    let rows = former_emails::table
        .filter(former_emails::user_id.eq(user))
        .filter(former_emails::id.eq_any(ids));
    Ok(diesel::delete(rows).execute(connection)?)
}
