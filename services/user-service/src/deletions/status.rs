use database::Connection;
use values::{Secret, UserId};

use super::error::DeletionError;
use super::store::{self, Deletion};
use crate::context::Context;

/// The progress of a deletion.
pub(super) async fn status(
    context: &Context,
    user: UserId,
    ticket: Secret,
) -> Result<Deletion, DeletionError> {
    let find = move |connection: &mut Connection| {
        store::find(connection, user, &ticket)?.ok_or(DeletionError::UnknownTicket)
    };
    context.database.run(find).await
}
