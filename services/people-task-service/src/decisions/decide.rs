use audit_log::RequestMeta;
use database::{Connection, Database, transaction};
use messaging::{Message, Publisher};
use telemetry::RequestContext;
use values::{DeliveryId, Names as _, TaskId};

use crate::audit::AuditAction;
use crate::deliveries::decision_store;
use crate::status::TaskStatus;
use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::{Task, TaskError, store as task_store};

/// A decision about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The approver agrees.
    Approve,
    /// The approver refuses.
    Reject,
}

impl Decision {
    fn status(self) -> TaskStatus {
        match self {
            Self::Approve => TaskStatus::Approved,
            Self::Reject => TaskStatus::Rejected,
        }
    }

    fn audit_action(self) -> AuditAction {
        match self {
            Self::Approve => AuditAction::TaskApproved,
            Self::Reject => AuditAction::TaskRejected,
        }
    }
}

/// A decided task, the actor's relations to it, and the deliveries for its webhooks.
type DecidedTask = (Task, Relations, Vec<DeliveryId>);

/// Decides a pending task: the only way for a task to leave that state.
///
/// The new state and one delivery for each webhook are committed in one transaction before this returns.
/// Publishing the deliveries may fail without harm: a sweep of the worker finds them.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::AlreadyResolved`].
#[tracing::instrument(skip_all, fields(task.id = %id, decision = decision.status().name()))]
pub(crate) async fn decide(
    database: &Database,
    publisher: &Publisher,
    actor: Actor,
    id: TaskId,
    decision: Decision,
    meta: RequestMeta,
) -> Result<(Task, Relations), TaskError> {
    let cause = RequestContext::current_or_fresh();
    let context = cause.clone();
    let (task, relations, deliveries) = database
        .run(move |connection| {
            let attempt = |connection: &mut Connection| {
                try_decide(connection, &actor, id, decision, &context, meta.clone())
            };
            if let Some(decided) = attempt(connection)? {
                return Ok(decided);
            }
            // The task changed between the two statements. Under its lock it cannot.
            transaction(connection, |connection| {
                task_store::lock(connection, id)?.ok_or(TaskError::NotFound)?;
                attempt(connection)?.ok_or(TaskError::Database(database::Error::Busy))
            })
        })
        .await?;
    tracing::info!(deliveries = deliveries.len(), "a task was decided");
    let status = decision.status().name();
    metrics::counter!("task_decisions_total", "decision" => status).increment(1);
    let messages = deliveries
        .into_iter()
        .map(|id| Message::new(id, cause.clone()));
    publisher.send(messages);
    Ok((task, relations))
}

/// Decides a task unless it changes meanwhile, in which case the result is `None`. So an approver who has
/// just been replaced cannot decide, and a webhook that has just been registered is not missed.
fn try_decide(
    connection: &mut Connection,
    actor: &Actor,
    id: TaskId,
    decision: Decision,
    cause: &RequestContext,
    meta: RequestMeta,
) -> Result<Option<DecidedTask>, TaskError> {
    let snapshot = decision_store::load_snapshot(connection, id)?.ok_or(TaskError::NotFound)?;
    let relations = actor.relations_to(&snapshot.task);
    relations.check(Permission::Decide)?;
    if snapshot.task.status != TaskStatus::Pending {
        return Err(TaskError::AlreadyResolved(snapshot.task.status));
    }
    let identity = actor.audit_identity(&snapshot.task, Permission::Decide);
    let entry = decision.audit_action().on_task(id, identity, meta);
    let status = decision.status();
    let decided = decision_store::record_decision(connection, &snapshot, status, cause, &entry)?;
    Ok(decided.map(|(task, deliveries)| (task, relations, deliveries)))
}
