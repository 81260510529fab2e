use audit_log::Origin;
use database::Database;
use diesel::PgConnection;
use messaging::{Message, Publisher};
use telemetry::RequestContext;
use values::{DeliveryId, TaskId};

use crate::audit;
use crate::deliveries;
use crate::status::TaskStatus;
use crate::tasks::access::{Action, Actor, Relations};
use crate::tasks::{Error, Task, store};

/// What can be decided about a task.
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
}

/// Decides a pending task: the only way for a task to leave that state.
///
/// The new state and one delivery for each webhook are one transaction. When this returns they are
/// committed, and the queue was told, which may fail without harm.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Forbidden`], [`Error::AlreadyResolved`].
#[tracing::instrument(skip_all, fields(task.id = %id, decision = decision.status().as_str()))]
pub(crate) async fn decide(
    database: &Database,
    publisher: &Publisher,
    actor: Actor,
    id: TaskId,
    decision: Decision,
    origin: Origin,
) -> Result<(Task, Relations), Error> {
    let context = RequestContext::current_or_fresh();
    let cause = context.clone();
    let (task, relations, deliveries) = database
        .transaction(move |connection| {
            in_transaction(connection, &actor, id, decision, &cause, origin)
        })
        .await?;
    tracing::info!(deliveries = deliveries.len(), "a task was decided");
    metrics::counter!("task_decisions_total", "decision" => decision.status().as_str())
        .increment(1);
    publisher.send(
        deliveries
            .into_iter()
            .map(|id| Message::new(id, context.clone())),
    );
    Ok((task, relations))
}

fn in_transaction(
    connection: &mut PgConnection,
    actor: &Actor,
    id: TaskId,
    decision: Decision,
    cause: &RequestContext,
    origin: Origin,
) -> Result<(Task, Relations, Vec<DeliveryId>), Error> {
    // Under the lock, so that an approver who was replaced meanwhile cannot decide any more.
    let task = store::lock(connection, id)?.ok_or(Error::NotFound)?;
    let relations = actor.relations_to(&task);
    relations.check(Action::Decide)?;
    let status = decision.status();
    let logged = audit::Action::of_decision(status);
    let entry = logged.entry(actor, &task, Action::Decide, origin);
    let resolved = store::resolve(connection, id, status, entry)?
        .ok_or(Error::AlreadyResolved(task.status))?;
    let deliveries = deliveries::store::insert_for_task(connection, id, cause)?;
    Ok((resolved, relations, deliveries))
}
