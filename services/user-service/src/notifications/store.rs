//! Notifications, and the codes that some of them have, from the first attempt to send them until they are used. The worker
//! inserts the codes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::{exists, not, now};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Timestamptz};
use jobs::REPUBLISH_GRACE;
use messaging::Message;
use telemetry::RequestContext;
use values::{Fingerprint, Names as _, NotificationId, UserId};

use super::{Channel, Kind, Notice};
use crate::schema::{codes, notifications, users};
use crate::settings::EmailVerification;

/// The tables and their keys, for the deletion of a user's rows.
pub(crate) const TABLES: [(&str, &str); 2] = [("codes", "fingerprint"), ("notifications", "id")];

/// The codes of this many requests for a forgotten password are valid at once, so that requests of a stranger do not
/// invalidate the code that its user is about to use. A change that ends all codes raises the user's `code_generation` by
/// as much, a request by one.
pub(crate) const VALID_REQUESTS: i64 = 3;

/// The mails about API keys that a user gets within a day, of each kind.
const NOTICES_PER_DAY: i64 = 10;
pub(super) const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Clone)]
pub(crate) struct QueuedNotification {
    pub(crate) id: NotificationId,
    pub(crate) channel: Channel,
    pub(crate) created: DateTime<Utc>,
}

/// Inserts a notification. `key` is the name and the end of the API key that it is about, if it is about one.
pub(super) fn insert(
    connection: &mut Connection,
    context: &RequestContext,
    kind: &str,
    channel: Channel,
    user: Option<UserId>,
    generation: Option<i64>,
    key: Option<(&str, Option<DateTime<Utc>>)>,
) -> Result<QueuedNotification, Error> {
    let id = NotificationId::generate();
    let (key_name, key_expires) = key.unzip();
    let created = diesel::insert_into(notifications::table)
        .values((
            notifications::id.eq(id),
            notifications::user_id.eq(user),
            notifications::code_generation.eq(generation),
            notifications::kind.eq(kind),
            notifications::channel.eq(channel.name()),
            notifications::key_name.eq(key_name),
            notifications::key_expires.eq(key_expires.flatten()),
            notifications::request_id.eq(&context.request_id),
            notifications::traceparent.eq(context.trace.to_string()),
            notifications::republish_at
                .eq(now.into_sql::<Timestamptz>() + interval(REPUBLISH_GRACE)),
        ))
        .returning(notifications::created)
        .get_result(connection)?;
    Ok(QueuedNotification {
        id,
        channel,
        created,
    })
}

/// Inserts a mail about an API key, which ends at `expires`, if ever. The caller sends the message after its commit. `None` for a
/// user who is inactive or whose address may be a stranger's, and for one who has had [`NOTICES_PER_DAY`] of the kind within a day: the user
/// chooses the keys and their names.
pub(crate) fn insert_notice(
    connection: &mut Connection,
    verification: EmailVerification,
    notice: Notice,
    user: UserId,
    name: &str,
    expires: Option<DateTime<Utc>>,
) -> Result<Option<Message>, Error> {
    let all_are_trusted = (verification == EmailVerification::Off).into_sql::<Bool>();
    // The user may have been deleted since the key was made.
    let recipients = users::table
        .find(user)
        .filter(users::is_active)
        .filter(users::email_confirmed.is_not_null().or(all_are_trusted));
    let is_recipient: bool = diesel::select(exists(recipients)).get_result(connection)?;
    if !is_recipient || wait_for_notice(connection, notice, user)?.is_some() {
        return Ok(None);
    }
    let (context, kind) = (RequestContext::current_or_fresh(), notice.name());
    let (user, key) = (Some(user), Some((name, expires)));
    let queued = insert(connection, &context, kind, Channel::Mail, user, None, key)?;
    Ok(Some(Message::new(queued.id, context)))
}

/// How long a user who has had [`NOTICES_PER_DAY`] of the kind within a day gets no other one.
pub(crate) fn wait_for_notice(
    connection: &mut Connection,
    notice: Notice,
    user: UserId,
) -> Result<Option<Duration>, Error> {
    let recent = notifications::table
        .filter(notifications::user_id.eq(user))
        .filter(notifications::kind.eq(notice.name()))
        .filter(notifications::created.gt(now.into_sql::<Timestamptz>() - interval(DAY)));
    let first_of_most = recent
        .order(notifications::created.desc())
        .offset(NOTICES_PER_DAY - 1)
        .select((notifications::created, now.into_sql::<Timestamptz>()))
        .first::<(DateTime<Utc>, DateTime<Utc>)>(connection)
        .optional()?;
    Ok(first_of_most.map(|(created, time)| (created + DAY - time).to_std().unwrap_or_default()))
}

/// The user who was sent a code of a kind that is still valid. With `sets_password`, the password must not have changed since,
/// nor newer codes have been requested: a person who saw an earlier code must not take the account.
pub(crate) fn find_user_by_code(
    connection: &mut Connection,
    kind: Kind,
    code: Fingerprint,
    sets_password: bool,
) -> Result<Option<UserId>, Error> {
    let is_newest = codes::code_generation.gt(users::code_generation - VALID_REQUESTS);
    let valid = codes::table
        .inner_join(users::table)
        .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
        .filter(codes::purpose.eq(kind.name()))
        .filter(codes::expires.gt(now))
        .filter(is_newest.or((!sets_password).into_sql::<Bool>()))
        .filter(not(users::is_service))
        .select(users::id);
    let found = match kind {
        Kind::ForgotPassword => valid.first::<UserId>(connection),
        // The code also sets a password, so it ends with the confirmation of the address.
        Kind::VerifyEmail => valid
            .filter(codes::email_key.eq(users::email_key.nullable()))
            .filter(users::email_confirmed.is_null())
            .first::<UserId>(connection),
    };
    Ok(found.optional()?)
}

/// Deletes every code of a user and these kinds, valid or not, and the notifications that would still bring one.
pub(crate) fn delete_codes(
    connection: &mut Connection,
    user: UserId,
    kinds: &[Kind],
) -> Result<(), Error> {
    let names = kinds.iter().map(|kind| kind.name());
    let codes = codes::table
        .filter(codes::user_id.eq(user))
        .filter(codes::purpose.eq_any(names.clone()));
    diesel::delete(codes).execute(connection)?;
    let pending = notifications::table
        .filter(notifications::user_id.eq(user))
        .filter(notifications::finished.is_null())
        .filter(notifications::kind.eq_any(names));
    diesel::delete(pending).execute(connection)?;
    Ok(())
}
