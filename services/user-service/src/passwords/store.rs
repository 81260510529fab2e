use audit_log::Entry;
use database::{Connection, Error};
use diesel::dsl::now;
use diesel::prelude::*;
use values::{EmailAddress, UserId};

use crate::accounts::TokenSubject;
use crate::notifications::store::VALID_REQUESTS;
use crate::schema::users;

/// What the password of a request is compared with.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = users)]
pub(crate) struct Credentials {
    pub(crate) id: UserId,
    pub(crate) username: EmailAddress,
    pub(crate) password_hash: String,
    pub(crate) epoch: i64,
}

pub(crate) fn find_credentials(
    connection: &mut Connection,
    id: UserId,
) -> Result<Option<Credentials>, Error> {
    Ok(users::table
        .find(id)
        .select(Credentials::as_select())
        .first(connection)
        .optional()?)
}

/// Whether the user still has the password. A new password changes both the epoch and the hash; the revocation of tokens
/// changes only the epoch, and a hash of another cost only the hash.
pub(crate) fn has_credentials(
    connection: &mut Connection,
    credentials: &Credentials,
) -> Result<bool, Error> {
    let current = find_credentials(connection, credentials.id)?;
    Ok(current.is_some_and(|current| {
        current.epoch == credentials.epoch || current.password_hash == credentials.password_hash
    }))
}

/// The user with an e-mail address, whether the address is confirmed, and whether it is a service account.
pub(super) fn find_user_by_email(
    connection: &mut Connection,
    email: &EmailAddress,
) -> Result<Option<(UserId, bool, bool)>, Error> {
    Ok(users::table
        .filter(users::email_key.eq(email.normalized()))
        .select((
            users::id,
            users::email_confirmed.is_not_null(),
            users::is_service,
        ))
        .first(connection)
        .optional()?)
}

/// Updates a password, and revokes all earlier tokens and the codes that set one.
pub(super) fn update_password(
    connection: &mut Connection,
    id: UserId,
    hash: &str,
    entry: Entry,
) -> Result<Option<TokenSubject>, Error> {
    let update = diesel::update(users::table.find(id))
        .set((
            users::password_hash.eq(hash),
            users::epoch.eq(users::epoch + 1),
            users::code_generation.eq(users::code_generation + VALID_REQUESTS),
            users::mtime.eq(now),
        ))
        .returning(TokenSubject::as_returning());
    Ok(entry
        .record_with(update)
        .get_result(connection)
        .optional()?)
}

/// Begins a request for a code by the person with this e-mail address, if there is one who is not being deleted. The codes
/// of earlier requests than the last few become invalid. Returns the user, and the generation of the code.
pub(super) fn begin_code_request(
    connection: &mut Connection,
    email: &EmailAddress,
) -> Result<Option<(UserId, i64)>, Error> {
    let user = users::table
        .filter(users::email_key.eq(email.normalized()))
        .filter(diesel::dsl::not(users::is_service))
        .filter(diesel::dsl::not(users::deletion_in_progress));
    Ok(diesel::update(user)
        .set(users::code_generation.eq(users::code_generation + 1))
        .returning((users::id, users::code_generation))
        .get_result(connection)
        .optional()?)
}
