use std::time::Duration;

use audit_log::Entry;
use database::{Connection, Error, interval};
use diesel::dsl::{now, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};
use serde::Serialize;
use utoipa::ToSchema;
use values::{CredentialId, Fingerprint, Names as _, Timestamp, UserId};

use super::requests::{Browser, CookieValues};
use crate::accounts::TokenSubject;
use crate::credentials::CredentialKind;
use crate::credentials::store::valid;
use crate::schema::{clock_timestamp, credentials, database_incarnation, users};
use crate::settings::SessionSettings;

/// A browser that stays signed in.
#[derive(Debug, Queryable, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session {
    #[schema(inline)]
    pub(super) id: CredentialId,
    #[schema(inline)]
    created: Timestamp,
    /// When a page was opened with it last.
    #[schema(value_type = String, format = DateTime)]
    last_used: Timestamp,
    /// When it ends if it is not used.
    #[schema(value_type = String, format = DateTime)]
    expires: Timestamp,
    /// The address of its last use: an IPv4 address or an IPv6 /64 network.
    #[schema(example = "203.0.113.7")]
    network: String,
    /// What the browser calls itself: its `User-Agent`.
    #[schema(example = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")]
    program: String,
    /// Whether the token of this request was issued for it.
    current: bool,
}

/// The valid sessions of a user, the one that was used last first. `current` is the one of the request.
pub(super) fn of_user(
    connection: &mut Connection,
    user: UserId,
    current: Option<CredentialId>,
) -> Result<Vec<Session>, Error> {
    Ok(valid!(CredentialKind::Session)
        .filter(credentials::user_id.eq(user))
        .order((credentials::last_used.desc(), credentials::id))
        .select((
            credentials::id,
            credentials::created,
            credentials::last_used,
            credentials::expires,
            credentials::client_network,
            credentials::program,
            credentials::id.nullable().is_not_distinct_from(current),
        ))
        .load(connection)?)
}

pub(super) struct NewSession {
    pub(super) id: CredentialId,
    pub(super) cookie: CookieValues,
    pub(super) browser: Browser,
    pub(super) lifetime: Duration,
}

/// Inserts a session and its audit entry. Its user must be locked, so that what revokes the user's tokens does not miss it.
pub(super) fn insert(
    connection: &mut Connection,
    user: UserId,
    new: &NewSession,
    entry: Entry,
) -> Result<(), Error> {
    let (fingerprint, secret) = (new.cookie.fingerprint(), new.cookie.secret());
    let insert = diesel::insert_into(credentials::table)
        .values((
            credentials::id.eq(new.id),
            credentials::user_id.eq(user),
            credentials::kind.eq(CredentialKind::Session.name()),
            credentials::fingerprint.eq(fingerprint.as_bytes().as_slice()),
            credentials::secret.eq(secret.as_bytes().as_slice()),
            credentials::incarnation.eq(database_incarnation()),
            credentials::expires.eq(now.into_sql::<Timestamptz>() + interval(new.lifetime)),
            credentials::client_network.eq(new.browser.network.as_str()),
            credentials::program.eq(&new.browser.program),
        ))
        .returning(credentials::id);
    entry
        .record_with(insert)
        .get_result::<CredentialId>(connection)?;
    Ok(())
}

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
    /// Whether a value is the one that the next exchange replaces; or the one that the last exchange replaced, and `attempt`
    /// the name of that exchange.
    pub(super) fn accepts(&self, secret: Fingerprint, attempt: Option<Fingerprint>) -> bool {
        let is = |given: Fingerprint, stored: &Option<Vec<u8>>| {
            stored.as_ref().is_some_and(|stored| given.matches(stored))
        };
        is(secret, &self.secret)
            || is(secret, &self.earlier_secret)
                && attempt.is_some_and(|attempt| is(attempt, &self.attempt))
    }
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

#[diesel::declare_sql_function]
extern "SQL" {
    fn least(one: Timestamptz, other: Timestamptz) -> Timestamptz;
}

/// Replaces the value `given` of a session by `next`, and returns for how many seconds it is still valid.
pub(super) fn exchange(
    connection: &mut Connection,
    id: CredentialId,
    (given, next): (Fingerprint, Fingerprint),
    attempt: Option<Fingerprint>,
    browser: &Browser,
    settings: SessionSettings,
) -> Result<i64, Error> {
    let attempt = attempt.as_ref().map(Fingerprint::as_bytes);
    let expires = least(
        now.into_sql::<Timestamptz>() + interval(settings.unused),
        credentials::created + interval(settings.longest),
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
            credentials::client_network.eq(browser.network.as_str()),
            credentials::program.eq(&browser.program),
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
