//! What sessions and keys have in common in the database.

use audit_log::Entry;
use database::{Connection, Error};
use diesel::prelude::*;
use values::{CredentialId, Names as _, UserId};

use super::CredentialKind;
use crate::schema::credentials;

/// The table and its key, for the deletion of a user's rows.
pub(crate) const TABLE: (&str, &str) = ("credentials", "id");

/// Conditions of a credential that is valid, but for its user.
macro_rules! valid {
    ($kind:expr) => {
        credentials::table
            .filter(credentials::kind.eq($kind.name()))
            .filter(credentials::expires.gt(diesel::dsl::now))
            .filter(credentials::incarnation.eq(crate::schema::database_incarnation()))
    };
}
pub(crate) use valid;

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
    let some = credentials::table.filter(credentials::id.eq_any(some));
    Ok(diesel::update(some)
        .set(credentials::created_by.eq(None::<UserId>))
        .execute(connection)?)
}
