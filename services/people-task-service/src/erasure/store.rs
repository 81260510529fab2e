use database::{Connection, Error};
use values::{TaskId, UserId};

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
