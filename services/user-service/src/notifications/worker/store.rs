use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use jobs::{Claim, Lease};
use values::{Names as _, NotificationId, UserId};

use super::notification::Notification;
use crate::notifications::JOBS;
use crate::notifications::Kind;
use crate::notifications::code_store::VALID_REQUESTS;
use crate::schema::{codes, notifications, users};

/// A claimed notification. The lease's number is the number of the attempt.
#[derive(Debug, Clone)]
pub(super) struct ClaimedRow {
    pub(super) lease: Lease<NotificationId>,
    pub(super) kind: String,
    pub(super) channel: String,
    pub(super) created: DateTime<Utc>,
    generation: Option<i64>,
    /// What a mail about an API key says of it.
    pub(super) key: (Option<String>, Option<DateTime<Utc>>),
}

impl ClaimedRow {
    /// Whether the code would be invalid already: newer ones were requested, or the password or the address was changed.
    pub(super) fn is_superseded(&self, recipient: &Recipient) -> bool {
        self.generation
            .is_some_and(|generation| generation <= recipient.generation - VALID_REQUESTS)
    }
}

/// The user whom a notification is for.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) user: UserId,
    pub(super) email: String,
    email_key: String,
    generation: i64,
}

/// Loads the user of a notification, if it has a user who still exists.
///
/// The lock keeps the user's row until the end of the transaction. It must be taken before the
/// notification's row is locked, as a deletion does, which locks both.
pub(super) fn lock_recipient(
    connection: &mut Connection,
    id: NotificationId,
) -> Result<Option<Recipient>, Error> {
    let user = notifications::table
        .find(id)
        .select(notifications::user_id)
        .first::<Option<UserId>>(connection)
        .optional()?
        .flatten();
    let Some(user) = user else { return Ok(None) };
    let found = users::table
        .find(user)
        .select((users::email, users::email_key, users::code_generation))
        .for_key_share()
        .first::<(String, String, i64)>(connection)
        .optional()?;
    Ok(found.map(|(email, email_key, generation)| Recipient {
        user,
        email,
        email_key,
        generation,
    }))
}

pub(super) fn claim(
    connection: &mut Connection,
    claim: Claim<NotificationId>,
) -> Result<Option<ClaimedRow>, Error> {
    let Some(lease) = JOBS.claim(connection, claim)? else {
        return Ok(None);
    };
    let (kind, channel, created, generation, key) = notifications::table
        .find(lease.id)
        .select((
            notifications::kind,
            notifications::channel,
            notifications::created,
            notifications::code_generation,
            (notifications::key_name, notifications::key_expires),
        ))
        .first(connection)?;
    Ok(Some(ClaimedRow {
        lease,
        kind,
        channel,
        created,
        generation,
        key,
    }))
}

/// Stores the hash of a notification's code. It is valid at the generation that the request raised. Only a code of
/// [`Kind::VerifyEmail`] depends on the user's present e-mail address.
pub(super) fn insert_code(
    connection: &mut Connection,
    row: &ClaimedRow,
    recipient: &Recipient,
    notification: &Notification,
) -> Result<(), Error> {
    let fingerprint = notification.code.fingerprint();
    let for_address = notification.kind == Kind::VerifyEmail;
    diesel::insert_into(codes::table)
        .values((
            codes::fingerprint.eq(fingerprint.as_bytes().as_slice()),
            codes::user_id.eq(recipient.user),
            codes::purpose.eq(notification.kind.name()),
            codes::code_generation.eq(row.generation.unwrap_or(recipient.generation)),
            codes::email_key.eq(for_address.then_some(recipient.email_key.as_str())),
            codes::expires.eq(now.into_sql::<Timestamptz>() + interval(notification.lifetime)),
        ))
        .execute(connection)?;
    Ok(())
}

/// Ends a notification: as sent or, with an error, as failed. Nothing is written if the claim was lost.
pub(super) fn close(
    connection: &mut Connection,
    lease: Lease<NotificationId>,
    error: Option<&str>,
) -> Result<(), Error> {
    let status = if error.is_none() { "sent" } else { "fail" };
    let claimed = notifications::table
        .find(lease.id)
        .filter(notifications::lease.eq(lease.number))
        .filter(notifications::finished.is_null());
    diesel::update(claimed)
        .set((
            notifications::status.eq(status),
            notifications::last_error.eq(error),
            notifications::finished.eq(now.into_sql::<Timestamptz>().nullable()),
            notifications::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .execute(connection)?;
    Ok(())
}

/// Records a failed attempt; the notification is due again after `pause`. Nothing is written if the claim
/// was lost.
///
/// Must run in a transaction.
pub(super) fn retry(
    connection: &mut Connection,
    lease: Lease<NotificationId>,
    error: &str,
    pause: Duration,
) -> Result<(), Error> {
    if JOBS.release(connection, lease, pause)? {
        diesel::update(notifications::table.find(lease.id))
            .set(notifications::last_error.eq(error))
            .execute(connection)?;
    }
    Ok(())
}
