//! Addresses that gave a user access to tasks until the user got another one.

use chrono::{DateTime, Utc};
use database::{Connection, Error};
use diesel::alias;
use diesel::dsl::{exists, not, now};
use diesel::prelude::*;
use values::UserId;

use crate::schema::{former_emails, users};

/// An address that the user gave up.
#[derive(Debug, Clone, Queryable)]
pub(crate) struct FormerEmail {
    /// In lower case.
    pub(crate) email: String,
    pub(crate) until: DateTime<Utc>,
}

/// Records that the user gives up an address now.
pub(crate) fn insert(
    connection: &mut Connection,
    user: UserId,
    email_key: &str,
) -> Result<(), Error> {
    diesel::insert_into(former_emails::table)
        .values((
            former_emails::user_id.eq(user),
            former_emails::email_key.eq(email_key),
        ))
        .on_conflict((former_emails::user_id, former_emails::email_key))
        .do_update()
        .set(former_emails::until.eq(now))
        .execute(connection)?;
    Ok(())
}

/// Loads at most `limit` former addresses of a user that are no present address of any user.
pub(crate) fn load(
    connection: &mut Connection,
    user: UserId,
    limit: i64,
) -> Result<Vec<FormerEmail>, Error> {
    let holder = alias!(users as holder);
    let held = holder.filter(holder.field(users::email_key).eq(former_emails::email_key));
    Ok(former_emails::table
        .filter(former_emails::user_id.eq(user))
        .filter(not(exists(held)))
        .order(former_emails::email_key)
        .limit(limit)
        .select((former_emails::email_key, former_emails::until))
        .load(connection)?)
}

/// Deletes former addresses of a user.
pub(crate) fn delete(
    connection: &mut Connection,
    user: UserId,
    emails: &[FormerEmail],
) -> Result<(), Error> {
    let keys = emails.iter().map(|email| email.email.as_str());
    let rows = former_emails::table
        .filter(former_emails::user_id.eq(user))
        .filter(former_emails::email_key.eq_any(keys));
    diesel::delete(rows).execute(connection)?;
    Ok(())
}
