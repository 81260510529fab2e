//! Statements on mails and on the wishes of recipients.

use std::time::Duration;

use database::{Connection, Error, interval, prepared};
use diesel::dsl::{exists, now};
use diesel::prelude::*;
use diesel::sql_types::{Double, Timestamptz};
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, MailId};

use crate::schema::{mail_opt_outs, task_mails};

/// The hash of an address, by which its mails, its count and its opt-out are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecipientHash(pub(crate) [u8; 32]);

impl From<&EmailAddress> for RecipientHash {
    fn from(address: &EmailAddress) -> Self {
        Self(Sha256::digest(address.normalized()).into())
    }
}

/// How many seconds ago the mail that has been due for longest should have been claimed; 0 without one.
pub(crate) fn oldest_due(connection: &mut Connection) -> Result<f64, Error> {
    let oldest = prepared(OLDEST_DUE).returning::<Double>();
    Ok(oldest.get_result(connection)?)
}

const OLDEST_DUE: &str =
    "SELECT coalesce(greatest(extract(epoch FROM now() - next_attempt), 0), 0)::float8 AS seconds
    FROM (SELECT min(next_attempt) AS next_attempt FROM task_mails) AS oldest";

/// Deletes a mail that was sent, whichever claim sent it, or that is given up.
pub(crate) fn delete(connection: &mut Connection, id: MailId) -> Result<(), Error> {
    diesel::delete(task_mails::table.find(id)).execute(connection)?;
    Ok(())
}

/// Lets a mail be claimed again after a pause. Nothing is written if the claim was lost.
pub(crate) fn postpone(
    connection: &mut Connection,
    id: MailId,
    lease: i64,
    pause: Duration,
) -> Result<(), Error> {
    let claimed = task_mails::table
        .find(id)
        .filter(task_mails::lease.eq(lease));
    diesel::update(claimed)
        .set(task_mails::next_attempt.eq(now.into_sql::<Timestamptz>() + interval(pause)))
        .execute(connection)?;
    Ok(())
}

/// Deletes at most `batch` mails that are to be sent to these addresses, except those that another transaction holds.
/// Returns how many were deleted.
pub(crate) fn delete_of_recipients(
    connection: &mut Connection,
    addresses: &[&EmailAddress],
    batch: i64,
) -> Result<usize, Error> {
    let ids: Vec<MailId> = task_mails::table
        .filter(task_mails::recipient.eq_any(hashes(addresses)))
        .select(task_mails::id)
        .limit(batch)
        .for_update()
        .skip_locked()
        .load(connection)?;
    let mails = task_mails::table.filter(task_mails::id.eq_any(ids));
    Ok(diesel::delete(mails).execute(connection)?)
}

/// Whether mails are to be sent to these addresses.
pub(crate) fn has_of_recipients(
    connection: &mut Connection,
    addresses: &[&EmailAddress],
) -> Result<bool, Error> {
    let mails = task_mails::table.filter(task_mails::recipient.eq_any(hashes(addresses)));
    Ok(diesel::select(exists(mails)).get_result(connection)?)
}

fn hashes(addresses: &[&EmailAddress]) -> Vec<Vec<u8>> {
    let hash = |address: &&EmailAddress| RecipientHash::from(*address).0.to_vec();
    addresses.iter().map(hash).collect()
}

/// Records that a recipient wants no reminders, or wants them again.
pub(crate) fn set_opt_out(
    connection: &mut Connection,
    recipient: RecipientHash,
    is_out: bool,
) -> Result<(), Error> {
    let hash = recipient.0.as_slice();
    if is_out {
        diesel::insert_into(mail_opt_outs::table)
            .values(mail_opt_outs::recipient.eq(hash))
            .on_conflict_do_nothing()
            .execute(connection)?;
    } else {
        diesel::delete(mail_opt_outs::table.find(hash)).execute(connection)?;
    }
    Ok(())
}
