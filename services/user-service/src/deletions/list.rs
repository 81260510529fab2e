use database::{Connection, Database, RowLimit};
use listing::{Page, Paging};

use super::error::DeletionError;
use super::store::{self, Deletion};

/// A page of all deletions of at most `max_bytes`, newest first.
pub(super) async fn list(
    database: Database,
    paging: Paging,
    max_bytes: usize,
) -> Result<Page<Deletion>, DeletionError> {
    let limit = RowLimit::new(paging.limit, max_bytes);
    let load = move |connection: &mut Connection| {
        let deletions = store::load_page(connection, paging, limit)?;
        Ok(paging.page(deletions.rows, deletions.found))
    };
    database.run(load).await
}
