//! Statements on the user of a job.

use audit_log::Entry;
use database::{Connection, Error};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use values::UserId;

use super::store::{Job, complete};
use crate::schema::{code_requests, codes, notifications, users};
use crate::sign_in::store::delete_all_failures;

/// Loads the names by which the user signs in; none if the user no longer exists.
pub(super) fn sign_in_names(
    connection: &mut Connection,
    user: UserId,
) -> Result<Vec<String>, Error> {
    let names = users::table
        .find(user)
        .select((users::email_key, users::username_key))
        .first::<(String, String)>(connection)
        .optional()?;
    let mut names = names.map_or_else(Vec::new, |(email, username)| vec![email, username]);
    names.dedup();
    Ok(names)
}

/// Loads the e-mail address by which tasks refer to the user as their requester. An address that is not
/// confirmed does not count, because it may belong to another person, and neither does the username.
pub(super) fn confirmed_email(
    connection: &mut Connection,
    user: UserId,
) -> Result<Option<String>, Error> {
    let email = users::table
        .find(user)
        .filter(users::email_verified)
        .select(users::email_key)
        .first(connection);
    Ok(email.optional()?)
}

/// Deletes at most `batch` of the user's codes, notifications and failed sign-ins each, and removes the
/// client addresses and the identifier from the audit log; `true` when there may be more. `accounts` are
/// the hashes of the user's names.
pub(super) fn delete_sign_in_data(
    connection: &mut Connection,
    user: UserId,
    accounts: &[[u8; 32]],
    batch: i64,
) -> Result<bool, Error> {
    let (old_codes, old_messages) =
        diesel::alias!(codes as old_codes, notifications as old_messages);
    let wanted = old_codes
        .filter(old_codes.field(codes::user_id).eq(user))
        .select(old_codes.field(codes::fingerprint))
        .limit(batch);
    let mut most = diesel::delete(codes::table.filter(codes::fingerprint.eq_any(wanted)))
        .execute(connection)?;
    let wanted = old_messages
        .filter(old_messages.field(notifications::user_id).eq(user))
        .select(old_messages.field(notifications::id))
        .limit(batch);
    most = most.max(
        diesel::delete(notifications::table.filter(notifications::id.eq_any(wanted)))
            .execute(connection)?,
    );
    delete_code_requests(connection, accounts)?;
    let more_entries = audit_log::forget_addresses(connection, &[user.as_bytes()])?
        | audit_log::pseudonymise(connection, user)?;
    for account in accounts {
        // The DSL has neither LIMIT for DELETE nor an IN of two columns.
        let deleted = diesel::sql_query(
            "DELETE FROM sign_in_failures WHERE account = $1 AND client_address IN (\
                SELECT client_address FROM sign_in_failures WHERE account = $1 LIMIT $2)",
        )
        .bind::<Binary, _>(account.as_slice())
        .bind::<BigInt, _>(batch)
        .execute(connection)?;
        most = most.max(deleted);
    }
    Ok(more_entries || i64::try_from(most).is_ok_and(|most| most >= batch))
}

/// Deletes the counters of requested codes: one row for each of the user's names.
fn delete_code_requests(connection: &mut Connection, accounts: &[[u8; 32]]) -> Result<(), Error> {
    let accounts = accounts.iter().map(<[u8; 32]>::as_slice);
    let counted = code_requests::table
        .filter(code_requests::counted.eq("account"))
        .filter(code_requests::subject.eq_any(accounts));
    diesel::delete(counted).execute(connection)?;
    Ok(())
}

/// Deletes the user and completes the job, from when on the revocation feed reports all tokens of the user
/// as revoked. `false` when the claim was lost; then nothing is written.
///
/// Must run in a transaction.
pub(super) fn delete_user(
    connection: &mut Connection,
    job: Job,
    position: i32,
    accounts: &[[u8; 32]],
    entry: &Entry,
) -> Result<bool, Error> {
    // Every transaction that locks a user and its deletion locks the user first.
    users::table
        .find(job.user)
        .select(users::id)
        .for_update()
        .first::<UserId>(connection)
        .optional()?;
    if !complete(connection, job, position)? {
        return Ok(false);
    }
    // There may have been sign-ins since the previous step.
    delete_all_failures(connection, accounts)?;
    delete_code_requests(connection, accounts)?;
    while audit_log::forget_addresses(connection, &[job.user.as_bytes()])? {}
    entry.record(connection)?;
    while audit_log::pseudonymise(connection, job.user)? {}
    delete_sign_in_names(connection, job.user)?;
    diesel::delete(users::table.find(job.user)).execute(connection)?;
    Ok(true)
}

/// Deletes the user's sign-in names in the order in which every transaction locks them. The cascade of the
/// user's row has no order.
fn delete_sign_in_names(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    // The DSL has no COLLATE.
    diesel::sql_query(
        "DELETE FROM sign_in_names WHERE name IN (\
            SELECT name FROM sign_in_names WHERE user_id = $1 ORDER BY name COLLATE \"C\" FOR UPDATE)",
    )
    .bind::<Binary, _>(user)
    .execute(connection)?;
    Ok(())
}
