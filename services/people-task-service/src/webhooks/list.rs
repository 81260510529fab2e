use database::Database;
use values::TaskId;

use crate::tasks::access::{Actor, Permission};
use crate::tasks::find_permitted;
use crate::webhooks::error::WebhookError;
use crate::webhooks::store::{self, Webhook};

/// The webhooks of a task, oldest first.
///
/// # Errors
/// Those of the task.
pub(crate) async fn list(
    database: &Database,
    actor: Actor,
    task: TaskId,
) -> Result<Vec<Webhook>, WebhookError> {
    database
        .run(move |connection| {
            find_permitted(connection, &actor, task, Permission::Read)?;
            Ok(store::load_of_task(connection, task)?)
        })
        .await
}
