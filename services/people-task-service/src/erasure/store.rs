use database::{Connection, Error};
use diesel::prelude::*;
use values::{TaskId, UserId};

use crate::schema;

/// Keeps tokens of this incarnation from adding rows for a user; without an incarnation, all tokens. It waits for
/// transactions that are adding some.
pub(crate) fn record_erased_user(
    connection: &mut Connection,
    user: UserId,
    incarnation: Option<&str>,
) -> Result<(), Error> {
    let record = schema::record_erased_user(user, incarnation);
    diesel::select(record).execute(connection)?;
    Ok(())
}

/// Removes client addresses from the audit log's rows about the user and about these tasks. Returns whether
/// rows about the user may be left.
pub(crate) fn forget_addresses(
    connection: &mut Connection,
    user: UserId,
    tasks: &[TaskId],
) -> Result<bool, Error> {
    // The holder of a task's secret may have been the user. The tasks' ids are not known after this.
    let tasks: Vec<&[u8]> = tasks
        .iter()
        .map(|task| task.as_bytes().as_slice())
        .collect();
    while !tasks.is_empty() && audit_log::forget_addresses(connection, &tasks)? {}
    Ok(audit_log::forget_addresses(connection, &[user.as_bytes()])?)
}
