use std::collections::{HashMap, HashSet};

use audit_log::RequestMeta;
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, transaction};
use messaging::Publisher;
use telemetry::RequestContext;
use values::{Names as _, TaskId};

use crate::audit::AuditAction;
use crate::decisions::store::{self, DecidedRow, PermittedDecision};
use crate::deliveries::{DueDelivery, due_message};
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

/// A request to decide a task.
#[derive(Debug)]
pub(crate) struct DecisionAttempt {
    actor: Actor,
    task: TaskId,
    decision: Decision,
    cause: RequestContext,
    meta: RequestMeta,
}

/// A decided task, the actor's relations to it, and the number of deliveries for its webhooks.
pub(crate) type DecidedTask = (Task, Relations, usize);

/// Decides tasks. Decisions that wait for the database are taken together.
pub(crate) type Decisions = Batches<DecisionAttempt, DecidedTask, TaskError>;

/// Starts [`Decisions`]. Their deliveries are published when they are committed.
pub(crate) fn decisions(
    database: Database,
    publisher: Publisher,
    limits: BatchLimits,
) -> Decisions {
    let other = publisher.clone();
    Batches::new(
        database,
        limits,
        move |connection, attempts| decide_together(connection, &publisher, attempts),
        move |connection, attempt| {
            let (decided, rows) = decide_locked(connection, attempt)?;
            publish(&other, &rows);
            Ok(decided)
        },
    )
}

/// Decides a pending task: the only way for a task to leave that state.
///
/// The new state and one delivery for each webhook are committed in one transaction before this returns.
/// Publishing the deliveries may fail without harm: workers also look for them.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::AlreadyResolved`].
#[tracing::instrument(skip_all, fields(task.id = %id, decision = decision.status().name()))]
pub(crate) async fn decide(
    decisions: &Decisions,
    actor: Actor,
    id: TaskId,
    decision: Decision,
    meta: RequestMeta,
) -> Result<(Task, Relations), TaskError> {
    let cause = RequestContext::current_or_fresh();
    let attempt = DecisionAttempt {
        actor,
        task: id,
        decision,
        cause: cause.clone(),
        meta,
    };
    let (task, relations, deliveries) = decisions.run(attempt).await?;
    tracing::info!(deliveries, "a task was decided");
    let status = decision.status().name();
    metrics::counter!("task_decisions_total", "decision" => status).increment(1);
    Ok((task, relations))
}

/// Decides tasks in two round trips. A task that changes between them is not decided, so an approver who has just been
/// replaced cannot decide, and a webhook that has just been registered is not missed. Such a decision is repeated
/// alone, and so are further ones about the same task.
fn decide_together(
    connection: &mut Connection,
    publisher: &Publisher,
    attempts: &[DecisionAttempt],
) -> Result<BatchOutcomes<DecidedTask, TaskError>, Error> {
    let ids: Vec<_> = attempts.iter().map(|attempt| attempt.task).collect();
    let tasks = store::load(connection, &ids)?;
    let judged = judge_first_of_each_task(attempts, tasks);
    let permitted = attempts
        .iter()
        .zip(&judged)
        .filter_map(|(attempt, judged)| {
            let (task, _) = judged.as_ref()?.as_ref().ok()?;
            Some(attempt.permitted(task))
        });
    let permitted: Vec<_> = permitted.collect();
    let mut rows = Vec::new();
    if !permitted.is_empty() {
        rows = store::record(connection, &permitted)?;
        publish(publisher, &rows);
    }
    let outcomes = attempts.iter().zip(judged).map(|(attempt, judged)| {
        let judged = match judged? {
            Ok(judged) => judged,
            Err(error) => return Some(Err(error)),
        };
        attempt.decided(judged, &rows).map(Ok)
    });
    Ok(outcomes.collect())
}

/// Judges the first attempt of each task, and none of the others.
fn judge_first_of_each_task(
    attempts: &[DecisionAttempt],
    tasks: Vec<Task>,
) -> Vec<Option<Result<(Task, Relations), TaskError>>> {
    let mut tasks: HashMap<_, _> = tasks.into_iter().map(|task| (task.id, task)).collect();
    let mut seen = HashSet::new();
    let judged = attempts.iter().map(|attempt| {
        let is_first = seen.insert(attempt.task);
        is_first.then(|| attempt.judge(tasks.remove(&attempt.task)))
    });
    judged.collect()
}

/// Decides one task under its lock, so that it cannot change meanwhile.
fn decide_locked(
    connection: &mut Connection,
    attempt: &DecisionAttempt,
) -> Result<(DecidedTask, Vec<DecidedRow>), TaskError> {
    transaction(connection, |connection| {
        let task = task_store::lock(connection, attempt.task)?;
        let judged = attempt.judge(task)?;
        let rows = store::record(connection, &[attempt.permitted(&judged.0)])?;
        let decided = attempt.decided(judged, &rows);
        let decided = decided.ok_or(TaskError::Database(Error::Busy))?;
        Ok((decided, rows))
    })
}

/// Tells the workers about new deliveries, in one message.
fn publish(publisher: &Publisher, rows: &[DecidedRow]) {
    let due = rows.iter().filter_map(|row| {
        Some(DueDelivery {
            id: row.delivery_id?,
            host: row.host.clone()?,
        })
    });
    publisher.send(due_message(&due.collect::<Vec<_>>()));
}

impl DecisionAttempt {
    /// Whether the actor may decide this task now.
    fn judge(&self, task: Option<Task>) -> Result<(Task, Relations), TaskError> {
        let task = task.ok_or(TaskError::NotFound)?;
        let relations = self.actor.relations_to(&task);
        relations.check(Permission::Decide)?;
        if task.status != TaskStatus::Pending {
            return Err(TaskError::AlreadyResolved(task.status));
        }
        Ok((task, relations))
    }

    fn permitted(&self, task: &Task) -> PermittedDecision<'_> {
        let identity = self.actor.audit_identity(task, Permission::Decide);
        let action = self.decision.audit_action();
        PermittedDecision {
            task: task.id,
            version: task.version,
            status: self.decision.status(),
            cause: &self.cause,
            entry: action.on_task(task.id, identity, self.meta.clone()),
        }
    }

    /// The task as it is after the decision; `None` if no row says that it was decided.
    fn decided(
        &self,
        (mut task, relations): (Task, Relations),
        rows: &[DecidedRow],
    ) -> Option<DecidedTask> {
        let own = || rows.iter().filter(|row| row.task_id == task.id);
        let made = own().next()?.decision_made;
        let deliveries = own().filter(|row| row.delivery_id.is_some()).count();
        task.status = self.decision.status();
        task.decision_made = Some(made);
        task.mtime = made;
        Some((task, relations, deliveries))
    }
}
