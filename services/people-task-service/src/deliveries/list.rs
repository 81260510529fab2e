use database::{Connection, Database, RowLimit};
use listing::{Page, Paging};
use values::TaskId;

use crate::deliveries::all_store;
use crate::deliveries::error::DeliveryError;
use crate::deliveries::requests::DeliveryQuery;
use crate::deliveries::store::{self, Delivery};
use crate::tasks::access::{Actor, Permission};
use crate::tasks::find_permitted;

/// One page of a task's deliveries of at most `max_bytes`, oldest first. For the task's creator and administrators.
///
/// # Errors
/// Those of the task.
#[tracing::instrument(skip_all, fields(task.id = %task))]
pub(crate) async fn list(
    database: Database,
    actor: Actor,
    task: TaskId,
    paging: Paging,
    max_bytes: usize,
) -> Result<Page<Delivery>, DeliveryError> {
    let limit = RowLimit::new(paging.limit, max_bytes);
    database
        .run(move |connection| {
            find_permitted(connection, &actor, task, Permission::ViewDeliveries)?;
            let found = store::load_of_task(connection, task, paging, limit)?;
            Ok(paging.page(found.rows, found.found))
        })
        .await
}

/// One page of all deliveries of at most `max_bytes`, newest first. For administrators.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all)]
pub(crate) async fn list_all(
    database: Database,
    query: DeliveryQuery,
    max_bytes: usize,
) -> Result<Page<Delivery>, DeliveryError> {
    let (paging, limit) = (query.paging, RowLimit::new(query.paging.limit, max_bytes));
    let load = move |connection: &mut Connection| all_store::load_page(connection, &query, limit);
    let found = database.run(load).await?;
    Ok(paging.page(found.rows, found.found))
}
