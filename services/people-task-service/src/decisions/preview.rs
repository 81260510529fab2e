use database::{Connection, Database};
use values::TaskId;

use crate::decisions::store::{self, WebhookCounts};
use crate::tasks::access::{Actor, Permission};
use crate::tasks::requests::Precondition;
use crate::tasks::{TaskError, find_permitted};

/// How many webhooks hear of it when an actor withdraws a pending task.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::AlreadyResolved`].
pub(super) async fn preview(
    database: &Database,
    actor: Actor,
    id: TaskId,
) -> Result<WebhookCounts, TaskError> {
    let count = move |connection: &mut Connection| {
        let (task, _) = find_permitted(connection, &actor, id, Permission::Cancel)?;
        task.check_pending(&Precondition::default())?;
        Ok::<_, TaskError>(store::count_webhooks(connection, id)?)
    };
    database.run(count).await
}
