use std::time::Duration;

use chrono::{DateTime, Utc};
use database::Error;
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use messaging::Message;
use telemetry::RequestContext;
use values::{Fingerprint, NotificationId, UserId};

use crate::schema::{codes, notifications, users};
use crate::sql::interval;

const PENDING: &str = "pending";

/// A message that this worker owns until its lease runs out.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) id: NotificationId,
    pub(super) kind: String,
    pub(super) channel: String,
    pub(super) created: DateTime<Utc>,
    /// Counts this attempt; every write names it, so that a worker that lost the message writes nothing.
    pub(super) attempt: i32,
}

/// Whom a message is for.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) user: UserId,
    pub(super) email: String,
    email_key: String,
    generation: i64,
}

/// The user of a message, if the message was for a user who is still there.
///
/// The user's row cannot go before the transaction ends. It is locked before the message's, in the
/// order of the deletion, which takes both.
pub(super) fn recipient(
    connection: &mut PgConnection,
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

/// Takes a message that is due and that nobody owns, and counts the attempt. `None` when there is
/// nothing to take.
pub(super) fn claim(
    connection: &mut PgConnection,
    id: NotificationId,
    lease: Duration,
) -> Result<Option<Claimed>, Error> {
    let until = now.into_sql::<Timestamptz>() + interval(lease);
    let free = notifications::lease_until
        .is_null()
        .or(notifications::lease_until.le(now.into_sql::<Timestamptz>().nullable()));
    let due = notifications::table
        .find(id)
        .filter(notifications::status.eq(PENDING))
        .filter(notifications::next_attempt.le(now))
        .filter(free.assume_not_null());
    let claimed = diesel::update(due)
        .set((
            notifications::attempts.eq(notifications::attempts + 1),
            notifications::lease_until.eq(until.nullable()),
            notifications::wake_at.eq(until),
        ))
        .returning((
            notifications::kind,
            notifications::channel,
            notifications::created,
            notifications::attempts,
        ))
        .get_result::<(String, String, DateTime<Utc>, i32)>(connection)
        .optional()?;
    Ok(claimed.map(|(kind, channel, created, attempt)| Claimed {
        id,
        kind,
        channel,
        created,
        attempt,
    }))
}

/// Stores what will recognise a code. `for_address` says that it confirms the recipient's address.
pub(super) fn insert_code(
    connection: &mut PgConnection,
    fingerprint: Fingerprint,
    recipient: &Recipient,
    purpose: &str,
    for_address: bool,
    lifetime: Duration,
) -> Result<(), Error> {
    let expires = now.into_sql::<Timestamptz>() + interval(lifetime);
    diesel::insert_into(codes::table)
        .values((
            codes::fingerprint.eq(fingerprint.as_bytes().as_slice()),
            codes::user_id.eq(recipient.user),
            codes::purpose.eq(purpose),
            codes::generation.eq(recipient.generation),
            codes::email_key.eq(for_address.then_some(recipient.email_key.as_str())),
            codes::expires.eq(expires),
        ))
        .execute(connection)?;
    Ok(())
}

/// Rows of a message only while it is pending and this attempt is the latest.
macro_rules! owned {
    ($message:expr) => {
        notifications::table
            .find($message.id)
            .filter(notifications::attempts.eq($message.attempt))
            .filter(notifications::status.eq(PENDING))
    };
}

/// Closes a message, as sent or, with an error, as failed.
pub(super) fn close(
    connection: &mut PgConnection,
    message: &Claimed,
    error: Option<&str>,
) -> Result<(), Error> {
    let status = if error.is_none() { "sent" } else { "fail" };
    diesel::update(owned!(message))
        .set((
            notifications::status.eq(status),
            notifications::last_error.eq(error),
            notifications::finished.eq(now.into_sql::<Timestamptz>().nullable()),
            notifications::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .execute(connection)?;
    Ok(())
}

/// Notes a failed attempt, and that the message is due again after `pause`.
pub(super) fn retry(
    connection: &mut PgConnection,
    message: &Claimed,
    error: &str,
    pause: Duration,
) -> Result<(), Error> {
    let due = now.into_sql::<Timestamptz>() + interval(pause);
    diesel::update(owned!(message))
        .set((
            notifications::last_error.eq(error),
            notifications::next_attempt.eq(due),
            notifications::wake_at.eq(due),
            notifications::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .execute(connection)?;
    Ok(())
}

/// Takes at most `batch` messages that are due for a wake-up, and leaves them alone for `pause`.
///
/// Must run in a transaction.
pub(super) fn due(
    connection: &mut PgConnection,
    batch: i64,
    pause: Duration,
) -> Result<Vec<Message>, Error> {
    let rows = notifications::table
        .filter(notifications::status.eq(PENDING))
        .filter(notifications::wake_at.le(now))
        .order(notifications::wake_at)
        .limit(batch)
        .select((
            notifications::id,
            notifications::request_id,
            notifications::traceparent,
        ))
        .for_update()
        .skip_locked()
        .load::<(NotificationId, String, String)>(connection)?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = rows.iter().map(|(id, _, _)| *id).collect();
    diesel::update(notifications::table.filter(notifications::id.eq_any(ids)))
        .set(notifications::wake_at.eq(now.into_sql::<Timestamptz>() + interval(pause)))
        .execute(connection)?;
    let messages = rows.into_iter().map(|(id, request_id, traceparent)| {
        let context = RequestContext::continued(Some(&request_id), Some(&traceparent));
        Message::new(id, context)
    });
    Ok(messages.collect())
}
