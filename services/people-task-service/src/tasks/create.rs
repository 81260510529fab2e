use audit_log::RequestMeta;
use auth::Caller;
use database::Database;
use values::{Secret, TaskId};

use crate::audit::AuditAction;
use crate::tasks::error::TaskError;
use crate::tasks::requests::CreateTaskRequest;
use crate::tasks::store::{self, Task};

/// A new task with its secrets, which only this response shows.
pub(crate) struct CreatedTask {
    pub(crate) task: Task,
    pub(crate) approver_secret: Secret,
    pub(crate) requester_secret: Secret,
}

/// Creates a task for a signed-in user.
///
/// # Errors
/// [`TaskError::CallerErased`].
#[tracing::instrument(skip_all, fields(user.id = %caller.id(), task.id))]
pub(crate) async fn create(
    database: &Database,
    caller: &Caller,
    new: CreateTaskRequest,
    meta: RequestMeta,
) -> Result<CreatedTask, TaskError> {
    let (id, creator) = (TaskId::generate(), caller.clone());
    tracing::Span::current().record("task.id", tracing::field::display(id));
    let by_creator = (caller.into(), audit_log::AuthMethod::Token);
    let entry = AuditAction::TaskCreated.on_task(id, by_creator, meta);
    let (approver_secret, requester_secret) = (Secret::random(), Secret::random());
    let secrets = [
        approver_secret.fingerprint(),
        requester_secret.fingerprint(),
    ];
    let insert = move |connection: &mut _| {
        store::insert(connection, id, &creator, &new, &secrets, entry)?
            .ok_or(TaskError::CallerErased)
    };
    let task = database.run(insert).await?;
    tracing::info!("a task was created");
    metrics::counter!("tasks_created_total").increment(1);
    Ok(CreatedTask {
        task,
        approver_secret,
        requester_secret,
    })
}
