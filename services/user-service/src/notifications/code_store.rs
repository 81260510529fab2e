//! Codes in the database, from the first attempt to send them until they are used. The worker inserts them.

use database::{Connection, Error};
use diesel::dsl::now;
use diesel::prelude::*;
use values::{Fingerprint, Names as _, UserId};

use super::kind::Kind;
use crate::schema::{codes, users};

/// The user who was sent a code that is still valid and sets a new password.
pub(crate) fn find_user_of_reset(
    connection: &mut Connection,
    code: Fingerprint,
) -> Result<Option<UserId>, Error> {
    Ok(codes::table
        .inner_join(users::table)
        .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
        .filter(codes::purpose.eq(Kind::ForgotPassword.name()))
        .filter(codes::generation.eq(users::code_generation))
        .filter(codes::expires.gt(now))
        .select(users::id)
        .first(connection)
        .optional()?)
}

/// The user who was sent a code that is still valid and confirms an e-mail address, and the key of the address.
pub(crate) fn find_user_of_verification(
    connection: &mut Connection,
    code: Fingerprint,
) -> Result<Option<(UserId, String)>, Error> {
    Ok(codes::table
        .inner_join(users::table)
        .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
        .filter(codes::purpose.eq(Kind::VerifyEmail.name()))
        .filter(codes::email_key.eq(users::email_key.nullable()))
        .filter(codes::expires.gt(now))
        .select((users::id, users::email_key))
        .first(connection)
        .optional()?)
}

/// Deletes every code of a user and kind, valid or not, and returns how many there were.
pub(crate) fn delete_of_kind(
    connection: &mut Connection,
    user: UserId,
    kind: Kind,
) -> Result<usize, Error> {
    let codes = codes::table
        .filter(codes::user_id.eq(user))
        .filter(codes::purpose.eq(kind.name()));
    Ok(diesel::delete(codes).execute(connection)?)
}

/// Deletes at most `batch` codes of a user, for any purpose, and returns how many were deleted.
pub(crate) fn delete_batch(
    connection: &mut Connection,
    user: UserId,
    batch: i64,
) -> Result<usize, Error> {
    let of_user = diesel::alias!(codes as of_user);
    let fingerprints = of_user
        .filter(of_user.field(codes::user_id).eq(user))
        .select(of_user.field(codes::fingerprint))
        .limit(batch);
    let codes = codes::table.filter(codes::fingerprint.eq_any(fingerprints));
    Ok(diesel::delete(codes).execute(connection)?)
}
