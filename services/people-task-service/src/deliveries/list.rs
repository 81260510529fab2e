use database::{Connection, Error};
use listing::{Page, PageLimits};
use values::TaskId;

use crate::deliveries::requests::DeliveryQuery;
use crate::deliveries::store::{self, Delivery};
use crate::error::TaskError;
use crate::tasks::access::{Actor, Permission};
use crate::tasks::find_permitted;

/// One page of a task's deliveries, oldest first. For the task's creator and administrators.
#[tracing::instrument(skip_all, fields(task.id = %task))]
pub(super) fn list(
    connection: &mut Connection,
    actor: &Actor,
    task: TaskId,
    limits: PageLimits,
) -> Result<Page<Delivery>, TaskError> {
    find_permitted(connection, actor, task, Permission::ViewDeliveries)?;
    Ok(store::load_of_task(connection, task, limits)?)
}

/// One page of all deliveries, newest first. For administrators.
#[tracing::instrument(skip_all)]
pub(super) fn list_all(
    connection: &mut Connection,
    query: &DeliveryQuery,
    limits: PageLimits,
) -> Result<Page<Delivery>, Error> {
    store::load_page(connection, query, limits)
}
