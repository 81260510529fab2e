//! Sessions in the database.

use std::time::Duration;

use database::{Connection, Error, interval};
use diesel::dsl::{now, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};
use values::{CredentialId, Fingerprint, Names as _, UserId};

use super::requests::browser::Browser;
use crate::accounts::TokenSubject;
use crate::credentials::CredentialKind;
use crate::credentials::store::valid;
use crate::schema::{clock_timestamp, credentials, database_incarnation, users};

/// A session that is locked until the transaction ends.
#[derive(Debug, Queryable)]
pub(super) struct Locked {
    pub(super) id: CredentialId,
    pub(super) user: UserId,
    secret: Option<Vec<u8>>,
    earlier_secret: Option<Vec<u8>>,
    attempt: Option<Vec<u8>>,
    /// Whether it was exchanged after this transaction had begun.
    pub(super) is_being_exchanged: bool,
}

impl Locked {
    /// Whether a value is the one that the next exchange replaces.
    pub(super) fn has_secret(&self, secret: Fingerprint) -> bool {
        is(secret, self.secret.as_deref())
    }

    /// Whether a value is the one that the last exchange replaced, and `attempt` the name of that exchange.
    pub(super) fn was_exchanged(&self, secret: Fingerprint, attempt: Option<Fingerprint>) -> bool {
        is(secret, self.earlier_secret.as_deref())
            && attempt.is_some_and(|attempt| is(attempt, self.attempt.as_deref()))
    }
}

fn is(given: Fingerprint, stored: Option<&[u8]>) -> bool {
    stored.is_some_and(|stored| given.matches(stored))
}

/// Finds the session of a cookie and locks it.
pub(super) fn lock(
    connection: &mut Connection,
    fingerprint: Fingerprint,
) -> Result<Option<Locked>, Error> {
    let columns = (
        credentials::id,
        credentials::user_id,
        credentials::secret,
        credentials::earlier_secret,
        credentials::attempt,
        credentials::last_used.gt(now),
    );
    Ok(valid!(CredentialKind::Session)
        .filter(credentials::fingerprint.eq(fingerprint.as_bytes().as_slice()))
        .select(columns)
        .for_update()
        .first(connection)
        .optional()?)
}

/// What an exchange writes.
pub(super) struct Exchange<'a> {
    /// The value that was given, and the one that replaces it.
    pub(super) secrets: (Fingerprint, Fingerprint),
    pub(super) attempt: Option<Fingerprint>,
    pub(super) browser: &'a Browser,
    /// From now on, and from the beginning of the session on.
    pub(super) lifetimes: (Duration, Duration),
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn least(one: Timestamptz, other: Timestamptz) -> Timestamptz;
}

/// Replaces the value of a session, and returns for how many seconds it is still valid.
pub(super) fn exchange(
    connection: &mut Connection,
    id: CredentialId,
    exchange: &Exchange<'_>,
) -> Result<i64, Error> {
    let (given, next) = &exchange.secrets;
    let attempt = exchange.attempt.as_ref().map(Fingerprint::as_bytes);
    let (unused, longest) = exchange.lifetimes;
    let expires = least(
        now.into_sql::<Timestamptz>() + interval(unused),
        credentials::created + interval(longest),
    );
    // The DSL has no `extract`.
    let remaining = sql::<BigInt>("extract(epoch FROM expires - clock_timestamp())::bigint");
    Ok(diesel::update(credentials::table.find(id))
        .set((
            credentials::secret.eq(Some(next.as_bytes().as_slice())),
            credentials::earlier_secret.eq(Some(given.as_bytes().as_slice())),
            credentials::attempt.eq(attempt.map(<[u8; 32]>::as_slice)),
            // Later than the beginning of every transaction that waits for this one.
            credentials::last_used.eq(clock_timestamp()),
            credentials::expires.eq(expires),
            credentials::client_network.eq(exchange.browser.network.as_str()),
            credentials::program.eq(&exchange.browser.program),
        ))
        .returning(remaining)
        .get_result(connection)?)
}

/// The active user for whom a token can be signed.
pub(super) fn find_subject(
    connection: &mut Connection,
    user: UserId,
) -> Result<Option<TokenSubject>, Error> {
    Ok(users::table
        .find(user)
        .filter(users::is_active)
        .select(TokenSubject::as_select())
        .first(connection)
        .optional()?)
}

/// Locks a user whose password was checked, unless the user's tokens were revoked since.
pub(super) fn lock_subject(
    connection: &mut Connection,
    checked: &TokenSubject,
) -> Result<Option<TokenSubject>, Error> {
    Ok(users::table
        .find(checked.user.id)
        .filter(users::epoch.eq(checked.user.epoch))
        .filter(users::is_active)
        .select(TokenSubject::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()?)
}
