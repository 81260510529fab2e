//! Codes in the database, from the first attempt to send them until they are used. The worker inserts them.

use database::{Connection, Error};
use diesel::dsl::now;
use diesel::prelude::*;
use values::{Fingerprint, Names as _, UserId};

use super::Kind;
use crate::schema::{codes, users};

/// The table and its key, for the deletion of a user's rows.
pub(crate) const TABLE: (&str, &str) = ("codes", "fingerprint");

/// The codes of this many requests for a forgotten password are valid at once, so that requests of a stranger do not
/// invalidate the code that its user is about to use. A change that ends all codes raises the user's `code_generation` by
/// as much, a request by one.
pub(crate) const VALID_REQUESTS: i64 = 3;

/// The user who was sent a code of a kind that is still valid.
pub(crate) fn find_user(
    connection: &mut Connection,
    kind: Kind,
    code: Fingerprint,
) -> Result<Option<UserId>, Error> {
    let valid = codes::table
        .inner_join(users::table)
        .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
        .filter(codes::purpose.eq(kind.name()))
        .filter(codes::expires.gt(now))
        .select(users::id);
    let found = match kind {
        Kind::ForgotPassword => valid
            .filter(codes::code_generation.gt(users::code_generation - VALID_REQUESTS))
            .first::<UserId>(connection),
        // The code also sets a password, so it ends with the confirmation of the address.
        Kind::VerifyEmail => valid
            .filter(codes::email_key.eq(users::email_key.nullable()))
            .filter(users::email_confirmed.is_null())
            .first::<UserId>(connection),
    };
    Ok(found.optional()?)
}

/// Deletes every code of a user and these kinds, valid or not.
pub(crate) fn delete(
    connection: &mut Connection,
    user: UserId,
    kinds: &[Kind],
) -> Result<(), Error> {
    let codes = codes::table
        .filter(codes::user_id.eq(user))
        .filter(codes::purpose.eq_any(kinds.iter().map(|kind| kind.name())));
    diesel::delete(codes).execute(connection)?;
    Ok(())
}
