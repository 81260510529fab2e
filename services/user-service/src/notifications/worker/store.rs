use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::now;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use jobs::{Claim, Lease};
use values::{Names as _, NotificationId, UserId};

use super::notification::Code;
use crate::notifications::JOBS;
use crate::notifications::Kind;
use crate::notifications::store::{DAY, VALID_REQUESTS};
use crate::schema::{codes, notifications, users};

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = notifications, check_for_backend(Pg))]
pub(super) struct ClaimedRow {
    pub(super) kind: String,
    pub(super) channel: String,
    pub(super) created: DateTime<Utc>,
    code_generation: Option<i64>,
    /// What a mail about an API key says of it.
    pub(super) key_name: Option<String>,
    pub(super) key_expires: Option<DateTime<Utc>>,
}

impl ClaimedRow {
    /// Whether the code would be invalid already: newer ones were requested, or the password or the address was changed.
    pub(super) fn is_superseded(&self, recipient: &Recipient) -> bool {
        self.code_generation
            .is_some_and(|generation| generation <= recipient.code_generation - VALID_REQUESTS)
    }
}

#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = users, check_for_backend(Pg))]
pub(super) struct Recipient {
    #[diesel(column_name = id)]
    pub(super) user: UserId,
    pub(super) email: String,
    email_key: String,
    code_generation: i64,
}

/// Loads the user of a notification, if it has a user who still exists.
/// The lock keeps the user's row until the end of the transaction. It must be taken before the
/// notification's row is locked, as a deletion does, which locks both.
pub(super) fn lock_recipient(
    connection: &mut Connection,
    id: NotificationId,
) -> Result<Option<Recipient>, Error> {
    let notification = notifications::table.find(id);
    let user = notification.select(notifications::user_id).single_value();
    let recipient = users::table
        .filter(users::id.nullable().eq(user))
        .select(Recipient::as_select())
        .for_key_share()
        .first(connection)
        .optional();
    Ok(recipient?)
}

/// A notification, and whether it was requested more than a day ago.
type Claimed = (ClaimedRow, bool);

/// Claims a notification. The number of the lease is the number of the attempt.
pub(super) fn claim(
    connection: &mut Connection,
    claim: Claim<NotificationId>,
) -> Result<Option<(Lease<NotificationId>, Claimed)>, Error> {
    let Some(lease) = JOBS.claim(connection, claim)? else {
        return Ok(None);
    };
    let claimed = notifications::table.find(lease.id);
    let day_ago = now.into_sql::<Timestamptz>() - interval(DAY);
    let is_late = notifications::created.lt(day_ago);
    let row = claimed.select((ClaimedRow::as_select(), is_late));
    Ok(Some((lease, row.first(connection)?)))
}

/// Stores the hash of a notification's code. It is valid at the generation that the request raised. Only a code of
/// [`Kind::VerifyEmail`] depends on the user's present e-mail address.
pub(super) fn insert_code(
    connection: &mut Connection,
    row: &ClaimedRow,
    recipient: &Recipient,
    code: &Code,
) -> Result<(), Error> {
    let fingerprint = code.code.fingerprint();
    let for_address = code.kind == Kind::VerifyEmail;
    diesel::insert_into(codes::table)
        .values((
            codes::fingerprint.eq(fingerprint.as_bytes().as_slice()),
            codes::user_id.eq(recipient.user),
            codes::purpose.eq(code.kind.name()),
            codes::code_generation.eq(row.code_generation.unwrap_or(recipient.code_generation)),
            codes::email_key.eq(for_address.then_some(recipient.email_key.as_str())),
            codes::expires.eq(now.into_sql::<Timestamptz>() + interval(code.lifetime)),
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
/// was lost. Must run in a transaction.
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
