use database::Connection;
use listing::{Page, Paging};

use super::error::DeletionError;
use super::store::{self, Deletion};
use crate::context::Context;

/// A page of all deletions, newest first.
pub(super) async fn list(
    context: &Context,
    paging: Paging,
) -> Result<Page<Deletion>, DeletionError> {
    let load = move |connection: &mut Connection| {
        Ok::<_, DeletionError>(store::load_page(connection, paging)?)
    };
    Ok(paging.page(context.database.run(load).await?))
}
