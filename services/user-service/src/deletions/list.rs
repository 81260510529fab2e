use database::Database;
use listing::{Page, PageLimits, Paging};

use super::error::DeletionError;
use super::store::{self, Deletion};

/// A page of all deletions of at most `bytes`, newest first.
pub(super) async fn list(
    database: Database,
    paging: Paging,
    bytes: usize,
) -> Result<Page<Deletion>, DeletionError> {
    let limits = PageLimits { paging, bytes };
    let load = move |connection: &mut _| Ok(store::load_page(connection, limits)?);
    database.run(load).await
}
