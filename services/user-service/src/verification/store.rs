//! The credentials of a user who confirms an address with the password.

use database::{Connection, Error};
use diesel::prelude::*;
use values::{EmailAddress, UserId};

use crate::schema::users;

/// What the password of a request is compared with.
#[derive(Debug, Clone, Queryable)]
pub(super) struct Credentials {
    pub(super) id: UserId,
    pub(super) username: EmailAddress,
    pub(super) password_hash: String,
    epoch: i64,
}

pub(super) fn find_credentials(
    connection: &mut Connection,
    id: UserId,
) -> Result<Option<Credentials>, Error> {
    Ok(users::table
        .find(id)
        .select((
            users::id,
            users::username,
            users::password_hash,
            users::epoch,
        ))
        .first(connection)
        .optional()?)
}

/// Whether the user still has the password. A new password changes both the epoch and the hash; the revocation of tokens
/// changes only the epoch, and a hash of another cost only the hash.
pub(super) fn has_credentials(
    connection: &mut Connection,
    credentials: &Credentials,
) -> Result<bool, Error> {
    let current = find_credentials(connection, credentials.id)?;
    Ok(current.is_some_and(|current| {
        current.epoch == credentials.epoch || current.password_hash == credentials.password_hash
    }))
}
