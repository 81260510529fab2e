use audit_log::{Changes, Entry};
use database::{Connection, Error};
use values::UserId;

use super::progress::{BLOCKED_PAUSE, Progress};
use super::store::{self, Job};
use crate::{accounts, back_off, credentials, notifications, passwords};

/// The hashes by which the service counts things about a user.
#[derive(Debug)]
pub(super) struct UserHashes {
    /// Of the names that failed sign-ins are counted by.
    pub(super) names: Vec<[u8; 32]>,
    /// Of the mailboxes that requests for codes are counted by.
    pub(super) mailboxes: Vec<[u8; 32]>,
}

/// Deletes at most `batch` of the user's codes, notifications, sessions and failed sign-ins each, all networks of sign-ins, and the
/// client addresses and the identifier in a batch of the audit log.
///
/// Must run in a transaction.
pub(super) fn delete_sign_in_data(
    connection: &mut Connection,
    user: UserId,
    hashes: &UserHashes,
    batch: i64,
) -> Result<Progress, Error> {
    let codes = notifications::code_store::delete_batch(connection, user, batch)?;
    let notifications = notifications::store::delete_batch(connection, user, batch)?;
    let sessions = credentials::store::delete_batch(connection, user, batch)?;
    passwords::store::delete_code_requests(connection, &hashes.mailboxes)?;
    let entries = audit_log::pseudonymise(connection, user)?;
    back_off::forget_networks(connection, user, None)?;
    let failures = back_off::delete_failures_batch(connection, &hashes.names, batch)?;
    let most = codes.max(notifications).max(sessions).max(failures);
    if i64::try_from(most).is_ok_and(|most| most >= batch) {
        return Ok(Progress::More);
    }
    Ok(unfinished(entries).unwrap_or(Progress::Done))
}

/// Deletes the user and completes the job, unless there are entries of the audit log left to change. From then on
/// the revocation feed reports all tokens of the user as revoked.
///
/// Must run in a transaction.
pub(super) fn delete_user(
    connection: &mut Connection,
    job: Job,
    position: i32,
    hashes: &UserHashes,
    entry: &Entry,
) -> Result<Progress, Error> {
    // Every transaction that locks a user and its deletion locks the user first.
    accounts::store::lock(connection, job.user)?;
    // There may have been sign-ins since the previous step. The lock prevents more of them.
    let entries = audit_log::pseudonymise(connection, job.user)?;
    if let Some(progress) = unfinished(entries) {
        return Ok(progress);
    }
    if !store::complete(connection, job, position)? {
        return Ok(Progress::Lost);
    }
    back_off::delete_all_failures(connection, &hashes.names)?;
    passwords::store::delete_code_requests(connection, &hashes.mailboxes)?;
    entry.record(connection)?;
    audit_log::pseudonymise(connection, job.user)?;
    accounts::store::delete(connection, job.user)?;
    Ok(Progress::Completed)
}

/// The progress of a step that has entries of the audit log left to change.
fn unfinished(entries: Changes) -> Option<Progress> {
    entries.more.then_some(if entries.rows > 0 {
        Progress::More
    } else {
        Progress::Waiting(BLOCKED_PAUSE)
    })
}
