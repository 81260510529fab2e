use audit_log::Entry;
use database::{Connection, Error};
use values::UserId;

use super::store::{self, Job};
use crate::{accounts, back_off, notifications, passwords};

/// Deletes at most `batch` of the user's codes, notifications and failed sign-ins each, all networks of sign-ins, and the
/// client addresses and the identifier in the audit log; `true` when there may be more.
///
/// Must run in a transaction.
pub(super) fn delete_sign_in_data(
    connection: &mut Connection,
    user: UserId,
    name_hashes: &[[u8; 32]],
    batch: i64,
) -> Result<bool, Error> {
    let codes = notifications::code_store::delete_batch(connection, user, batch)?;
    let notifications = notifications::store::delete_batch(connection, user, batch)?;
    passwords::store::delete_code_requests(connection, name_hashes)?;
    let more_entries = audit_log::forget_addresses(connection, &[user.as_bytes()])?
        | audit_log::pseudonymise(connection, user)?;
    back_off::forget_networks(connection, user, None)?;
    let failures = back_off::delete_failures_batch(connection, name_hashes, batch)?;
    let most = codes.max(notifications).max(failures);
    Ok(more_entries || i64::try_from(most).is_ok_and(|most| most >= batch))
}

/// Deletes the user and completes the job. From then on the revocation feed reports all tokens of the user
/// as revoked. `false` when the claim was lost; then nothing is written.
///
/// Must run in a transaction.
pub(super) fn delete_user(
    connection: &mut Connection,
    job: Job,
    position: i32,
    name_hashes: &[[u8; 32]],
    entry: &Entry,
) -> Result<bool, Error> {
    // Every transaction that locks a user and its deletion locks the user first.
    accounts::store::lock(connection, job.user)?;
    if !store::complete(connection, job, position)? {
        return Ok(false);
    }
    // There may have been sign-ins since the previous step.
    back_off::delete_all_failures(connection, name_hashes)?;
    passwords::store::delete_code_requests(connection, name_hashes)?;
    while audit_log::forget_addresses(connection, &[job.user.as_bytes()])? {}
    entry.record(connection)?;
    while audit_log::pseudonymise(connection, job.user)? {}
    accounts::store::delete(connection, job.user)?;
    Ok(true)
}
