use database::{Database, RowLimit};
use listing::{Page, Paging};
use values::TaskId;

use crate::deliveries::error::DeliveryError;
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
