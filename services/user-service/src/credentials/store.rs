//! Credentials in the database.

use std::time::Duration;

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use values::{CredentialId, Fingerprint, Names as _, UserId};

use super::CredentialKind;
use crate::client_network::ClientNetwork;
use crate::schema::{credentials, database_incarnation};

/// A credential to be inserted.
pub(crate) struct NewCredential<'a> {
    pub(crate) id: CredentialId,
    pub(crate) user: UserId,
    pub(crate) kind: CredentialKind,
    /// Of the value by which the credential is found.
    pub(crate) fingerprint: Fingerprint,
    /// Of the value that each use replaces.
    pub(crate) secret: Option<Fingerprint>,
    pub(crate) lifetime: Duration,
    pub(crate) network: &'a ClientNetwork,
    pub(crate) program: &'a str,
}

/// A credential as its user sees it.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = credentials, check_for_backend(diesel::pg::Pg))]
pub(crate) struct Credential {
    pub(crate) id: CredentialId,
    pub(crate) created: DateTime<Utc>,
    pub(crate) last_used: DateTime<Utc>,
    pub(crate) expires: DateTime<Utc>,
    pub(crate) client_network: String,
    pub(crate) program: String,
}

/// Conditions of a credential that is valid, but for its user.
macro_rules! valid {
    ($kind:expr) => {
        credentials::table
            .filter(credentials::kind.eq($kind.name()))
            .filter(credentials::expires.gt(now))
            .filter(credentials::incarnation.eq(database_incarnation()))
    };
}
pub(crate) use valid;

/// Inserts a credential and its audit entry. Its user must be locked, so that what revokes the user's tokens does not miss it.
pub(crate) fn insert(
    connection: &mut Connection,
    new: &NewCredential<'_>,
    entry: Entry,
) -> Result<(), Error> {
    let secret = new.secret.as_ref().map(Fingerprint::as_bytes);
    let insert = diesel::insert_into(credentials::table)
        .values((
            credentials::id.eq(new.id),
            credentials::user_id.eq(new.user),
            credentials::kind.eq(new.kind.name()),
            credentials::fingerprint.eq(new.fingerprint.as_bytes().as_slice()),
            credentials::secret.eq(secret.map(<[u8; 32]>::as_slice)),
            credentials::incarnation.eq(database_incarnation()),
            credentials::expires.eq(now.into_sql::<Timestamptz>() + interval(new.lifetime)),
            credentials::client_network.eq(new.network.as_str()),
            credentials::program.eq(new.program),
        ))
        .returning(credentials::id);
    entry
        .record_with(insert)
        .get_result::<CredentialId>(connection)?;
    Ok(())
}

/// The valid credentials of a user and a kind, the one that was used last first.
pub(crate) fn of_user(
    connection: &mut Connection,
    user: UserId,
    kind: CredentialKind,
) -> Result<Vec<Credential>, Error> {
    Ok(valid!(kind)
        .filter(credentials::user_id.eq(user))
        .order((credentials::last_used.desc(), credentials::id))
        .select(Credential::as_select())
        .load(connection)?)
}

/// Ends the API keys of a user.
pub(crate) fn end_keys(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    diesel::delete(credentials::table)
        .filter(credentials::user_id.eq(user))
        .filter(credentials::kind.eq(CredentialKind::Key.name()))
        .execute(connection)?;
    Ok(())
}

/// Ends a user's credential of a kind, with an audit entry. `false` if it had ended before, or is another user's.
pub(crate) fn end(
    connection: &mut Connection,
    user: UserId,
    kind: CredentialKind,
    id: CredentialId,
    entry: Entry,
) -> Result<bool, Error> {
    let end = diesel::delete(credentials::table.find(id))
        .filter(credentials::kind.eq(kind.name()))
        .filter(credentials::user_id.eq(user))
        .returning(credentials::id);
    let ended = entry
        .record_with(end)
        .get_result::<CredentialId>(connection);
    Ok(ended.optional()?.is_some())
}

/// Forgets for at most `batch` keys that a user made them for others, and returns for how many.
pub(crate) fn forget_maker_batch(
    connection: &mut Connection,
    user: UserId,
    batch: i64,
) -> Result<usize, Error> {
    let made = diesel::alias!(credentials as made);
    let some = made
        .filter(made.field(credentials::created_by).eq(user))
        .select(made.field(credentials::id))
        .limit(batch);
    Ok(
        diesel::update(credentials::table.filter(credentials::id.eq_any(some)))
            .set(credentials::created_by.eq(None::<UserId>))
            .execute(connection)?,
    )
}

/// Deletes at most `batch` credentials of a user, and returns how many were deleted.
pub(crate) fn delete_batch(
    connection: &mut Connection,
    user: UserId,
    batch: i64,
) -> Result<usize, Error> {
    let of_user = diesel::alias!(credentials as of_user);
    let some = of_user
        .filter(of_user.field(credentials::user_id).eq(user))
        .select(of_user.field(credentials::id))
        .limit(batch);
    Ok(diesel::delete(credentials::table)
        .filter(credentials::id.eq_any(some))
        .execute(connection)?)
}
