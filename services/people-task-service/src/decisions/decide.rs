use std::collections::{HashMap, HashSet};

use audit_log::{AuthMethod, RequestMeta};
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error};
use messaging::Publisher;
use serde_json::json;
use telemetry::RequestContext;
use values::{Names as _, TaskId};

use crate::audit::AuditAction;
use crate::columns::column;
use crate::decisions::requests::DecisionComment;
use crate::decisions::store::{self, DecidedRow, NewDecision};
use crate::deliveries::{DueDelivery, due_message};
use crate::status::TaskStatus;
use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::requests::Precondition;
use crate::tasks::{Task, TaskError, change_in_round, store as task_store};

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

/// What someone decides, and says about it.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) decision: Decision,
    pub(crate) comment: Option<DecisionComment>,
    /// The versions of the task that this is about.
    pub(crate) precondition: Precondition,
}

/// A request to decide a task.
#[derive(Debug)]
pub(crate) struct DecisionAttempt {
    actor: Actor,
    task: TaskId,
    choice: Choice,
    cause: RequestContext,
    meta: RequestMeta,
}

/// A decided task, the actor's relations to it, and the deliveries for its webhooks.
pub(crate) type DecidedTask = (Task, Relations, Vec<DueDelivery>);

/// Decides tasks. Decisions that wait for the database are taken together.
pub(crate) type Decisions = Batches<DecisionAttempt, DecidedTask, TaskError>;

/// Starts [`Decisions`]. Their deliveries are published when they are committed.
pub(crate) fn decisions(
    database: Database,
    publisher: Publisher,
    limits: BatchLimits,
) -> Decisions {
    Batches::new(
        database,
        limits,
        move |connection, attempts: &[DecisionAttempt], round| {
            let tasks = column(attempts, |attempt| attempt.task);
            let outcomes = change_in_round(connection, round, &tasks, |connection| {
                decide_together(connection, &tasks, attempts)
            })?;
            publish(&publisher, attempts, &outcomes);
            Ok(outcomes)
        },
    )
}

/// Decides a pending task: the only way for a task to leave that state.
///
/// The new state and one delivery for each webhook are committed in one transaction before this returns.
/// Publishing the deliveries may fail without harm: workers also look for them.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::AlreadyResolved`], [`TaskError::Changed`],
/// [`TaskError::CommentRequired`].
#[tracing::instrument(skip_all, fields(task.id = %id, decision = choice.decision.status().name()))]
pub(crate) async fn decide(
    decisions: &Decisions,
    actor: Actor,
    id: TaskId,
    choice: Choice,
    meta: RequestMeta,
) -> Result<(Task, Relations), TaskError> {
    let cause = RequestContext::current_or_fresh();
    let status = choice.decision.status().name();
    let attempt = DecisionAttempt {
        actor,
        task: id,
        choice,
        cause: cause.clone(),
        meta,
    };
    let (task, relations, deliveries) = decisions.run(attempt).await?;
    tracing::info!(deliveries = deliveries.len(), "a task was decided");
    metrics::counter!("task_decisions_total", "decision" => status).increment(1);
    Ok((task, relations))
}

/// Reads the tasks, judges the decisions, and makes those that are allowed, unless their task has changed since it was
/// read.
fn decide_together(
    connection: &mut Connection,
    tasks: &[TaskId],
    attempts: &[DecisionAttempt],
) -> Result<BatchOutcomes<DecidedTask, TaskError>, Error> {
    let tasks = task_store::find_all(connection, tasks)?;
    let judged: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt.judge(&tasks))
        .collect();
    // A task is decided once, by the first of its decisions that are allowed.
    let mut first = HashSet::new();
    let allowed = attempts.iter().zip(&judged);
    let allowed = allowed.filter_map(|(attempt, judged)| Some((attempt, *judged.as_ref().ok()?)));
    let new = allowed.filter(|(_, task)| first.insert(task.id));
    let new: Vec<_> = new
        .map(|(attempt, task)| attempt.new_decision(task))
        .collect();
    let mut rows = store::decide(connection, &new)?;
    let mut decided = HashMap::new();
    let outcomes = attempts.iter().zip(judged).map(|(attempt, judged)| {
        let task = match judged {
            Ok(task) => task,
            Err(refused) => return Some(Err(refused)),
        };
        if let Some(row) = rows.remove(&task.id) {
            let status = attempt.choice.decision.status();
            decided.insert(task.id, status);
            return Some(Ok(attempt.decided(task, row)));
        }
        let status = decided.get(&task.id)?;
        Some(Err(TaskError::AlreadyResolved(*status)))
    });
    Ok(outcomes.collect())
}

/// Tells the workers about new deliveries, in one message on behalf of the first decision.
fn publish(
    publisher: &Publisher,
    attempts: &[DecisionAttempt],
    outcomes: &BatchOutcomes<DecidedTask, TaskError>,
) {
    let made = attempts.iter().zip(outcomes);
    let made =
        made.filter_map(|(attempt, outcome)| Some((attempt, outcome.as_ref()?.as_ref().ok()?)));
    let (mut due, mut cause) = (Vec::new(), None);
    for (attempt, (.., deliveries)) in made {
        due.extend_from_slice(deliveries);
        cause = cause.or(Some(&attempt.cause));
    }
    if let Some(cause) = cause {
        publisher.send(due_message(&due, cause.clone()));
    }
}

impl DecisionAttempt {
    /// The task, if the actor may decide it now.
    fn judge<'a>(&self, tasks: &'a HashMap<TaskId, Task>) -> Result<&'a Task, TaskError> {
        let task = tasks.get(&self.task).ok_or(TaskError::NotFound)?;
        self.actor.relations_to(task).check(Permission::Decide)?;
        let Choice {
            decision,
            comment,
            precondition,
        } = &self.choice;
        task.check_pending(precondition)?;
        if task.comment_required && *decision == Decision::Reject && comment.is_none() {
            return Err(TaskError::CommentRequired);
        }
        Ok(task)
    }

    fn new_decision<'a>(&'a self, task: &'a Task) -> NewDecision<'a> {
        let Choice {
            decision, comment, ..
        } = &self.choice;
        let identity = self.actor.audit_identity(task, Permission::Decide);
        let by_secret = identity.1 == AuthMethod::TaskSecret;
        let approver = by_secret.then_some(task.approver.as_str());
        let mut detail = json!({
            "version": task.content_version,
            "contentSha256": task.content_hash(),
        });
        if comment.is_some() {
            detail["fields"] = json!(["comment"]);
        }
        let action = decision.audit_action();
        let entry = action.on_task(task.id, identity, self.meta.clone());
        NewDecision {
            task: task.id,
            version: task.version,
            status: decision.status(),
            decided_by: self.actor.email().or(approver),
            comment: comment.as_ref().map(DecisionComment::as_str),
            user: self.actor.user_and_incarnation(),
            cause: &self.cause,
            entry: entry.detail(detail),
        }
    }

    /// The task as the decision has left it.
    fn decided(&self, task: &Task, row: DecidedRow) -> DecidedTask {
        let comment = self.choice.comment.as_ref();
        let decided = Task {
            status: self.choice.decision.status(),
            mtime: row.decision_made,
            decision_made: Some(row.decision_made),
            decided_by: row.decided_by,
            comment: comment.map(|comment| comment.as_str().to_owned()),
            ..task.clone()
        };
        let deliveries = row.deliveries.into_iter().zip(row.hosts);
        let deliveries = deliveries.map(|(id, host)| DueDelivery { id, host });
        (decided, self.actor.relations_to(task), deliveries.collect())
    }
}
