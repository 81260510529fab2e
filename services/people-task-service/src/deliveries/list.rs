use database::Database;
use listing::{Page, Paging};
use values::TaskId;

use crate::deliveries::error::DeliveryError;
use crate::deliveries::store::{self, DeliveryWithAttempts};
use crate::tasks::access::{Actor, Permission};
use crate::tasks::find_permitted;

/// One page of a task's deliveries, oldest first. For the task's creator and administrators.
///
/// # Errors
/// Those of the task.
#[tracing::instrument(skip_all, fields(task.id = %task))]
pub(crate) async fn list(
    database: &Database,
    actor: Actor,
    task: TaskId,
    paging: Paging,
) -> Result<Page<DeliveryWithAttempts>, DeliveryError> {
    let rows = database
        .run(move |connection| {
            find_permitted(connection, &actor, task, Permission::ViewDeliveries)?;
            let deliveries = store::load_of_task(connection, task, paging)?;
            Ok::<_, DeliveryError>(store::load_attempts(connection, deliveries)?)
        })
        .await?;
    Ok(paging.page(rows))
}
