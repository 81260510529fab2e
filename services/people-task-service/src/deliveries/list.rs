use database::{Connection, Database};
use listing::{Page, PageLimits, Paging};
use values::TaskId;

use crate::deliveries::error::DeliveryError;
use crate::deliveries::requests::DeliveryQuery;
use crate::deliveries::store::{self, Delivery};
use crate::tasks::access::{Actor, Permission};
use crate::tasks::find_permitted;

/// One page of a task's deliveries of at most `bytes`, oldest first. For the task's creator and administrators.
#[tracing::instrument(skip_all, fields(task.id = %task))]
pub(crate) async fn list(
    database: Database,
    actor: Actor,
    task: TaskId,
    paging: Paging,
    bytes: usize,
) -> Result<Page<Delivery>, DeliveryError> {
    let limits = PageLimits { paging, bytes };
    database
        .run(move |connection| {
            find_permitted(connection, &actor, task, Permission::ViewDeliveries)?;
            Ok(store::load_of_task(connection, task, limits)?)
        })
        .await
}

/// One page of all deliveries of at most `bytes`, newest first. For administrators.
#[tracing::instrument(skip_all)]
pub(crate) async fn list_all(
    database: Database,
    query: DeliveryQuery,
    bytes: usize,
) -> Result<Page<Delivery>, DeliveryError> {
    let load = move |connection: &mut Connection| {
        let paging = query.paging;
        let limits = PageLimits { paging, bytes };
        Ok(store::load_page(connection, &query, limits)?)
    };
    database.run(load).await
}
