use std::collections::{BTreeMap, HashMap};

use audit_log::{AuthMethod, RequestMeta};
use auth::Caller;
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, column};
use messaging::Publisher;
use serde_json::{Map, json};
use telemetry::RequestContext;
use tokio::sync::mpsc;
use values::{Names as _, TaskId};

use crate::audit::AuditAction;
use crate::decisions::requests::DecisionComment;
use crate::decisions::store::{self, CancelPreview, DecidedRow, NewDecision};
use crate::deliveries::{DueDelivery, GATHERING, announce};
use crate::error::TaskError;
use crate::status::TaskStatus;
use crate::tasks::{
    Actor, DecidedVia, Permission, Precondition, Relations, Task, change_in_round, find_permitted,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision {
    status: TaskStatus,
    action: AuditAction,
    permission: Permission,
    /// The field of requests that has the comment.
    pub(super) comment_field: &'static str,
}

impl Decision {
    pub(super) const APPROVE: Self = Self {
        status: TaskStatus::Approved,
        action: AuditAction::TaskApproved,
        permission: Permission::Decide,
        comment_field: "comment",
    };
    pub(super) const REJECT: Self = Self {
        status: TaskStatus::Rejected,
        action: AuditAction::TaskRejected,
        ..Self::APPROVE
    };
    /// A person on the other side withdraws the task, so that there is nothing to decide any more.
    pub(super) const CANCEL: Self = Self {
        status: TaskStatus::Cancelled,
        action: AuditAction::TaskCancelled,
        permission: Permission::Cancel,
        comment_field: "reason",
    };
}

pub(crate) struct DecisionAttempt {
    pub(super) actor: Actor,
    pub(super) task: TaskId,
    pub(super) decision: Decision,
    pub(super) comment: Option<DecisionComment>,
    pub(super) precondition: Precondition,
    pub(super) cause: RequestContext,
    pub(super) meta: RequestMeta,
}

/// With eight, decisions use the time of another batch's commit, and batches are not much smaller than with one at a time.
const LIMITS: BatchLimits = BatchLimits {
    beside: 8,
    ..BatchLimits::SERVICE
};

/// A decided task, the actor's relations to it, and the deliveries for its webhooks.
pub(crate) type DecidedTask = (Task, Relations, Vec<DueDelivery>);

/// Decides tasks. Decisions that wait for the database are taken together.
pub(crate) type Decisions = Batches<DecisionAttempt, DecidedTask, TaskError>;

/// Starts [`Decisions`]. Their deliveries are announced when they are committed.
pub(crate) fn decisions(database: Database, publisher: Publisher) -> Decisions {
    let (committing, committed) = mpsc::unbounded_channel();
    let publish = move |message| publisher.send([message]);
    tokio::spawn(announce(committed, GATHERING, publish));
    let decide = move |connection: &mut _, attempts: &[DecisionAttempt], round| {
        let tasks = column(attempts, |attempt| attempt.task);
        let outcomes = change_in_round(connection, round, &tasks, |connection| {
            decide_together(connection, &tasks, attempts)
        })?;
        let decided = outcomes.iter().flatten().flatten();
        let due: Vec<_> = decided.flat_map(|(.., due)| due).cloned().collect();
        if let Some(first) = attempts.first()
            && !due.is_empty()
            && committing.send((due, first.cause.clone())).is_err()
        {
            tracing::warn!("workers are not told of deliveries; they find them a second later");
        }
        Ok(outcomes)
    };
    Batches::new(database, LIMITS, decide)
}

/// Decides or withdraws a pending task: the only way for a task to leave that state.
///
/// The new state and one delivery for each webhook are committed in one transaction before this returns.
/// Publishing the deliveries may fail without harm: workers also look for them.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::AlreadyResolved`], [`TaskError::Changed`],
/// [`TaskError::CommentRequired`].
#[tracing::instrument(skip_all, fields(task.id = %attempt.task, decision = attempt.decision.status.name()))]
pub(super) async fn decide(
    decisions: &Decisions,
    attempt: DecisionAttempt,
) -> Result<(Task, Relations), TaskError> {
    let status = attempt.decision.status;
    let (task, relations, deliveries) = decisions.run(attempt).await?;
    if status == TaskStatus::Cancelled {
        tracing::info!(deliveries = deliveries.len(), "a task was withdrawn");
        metrics::counter!("tasks_cancelled_total").increment(1);
    } else {
        tracing::info!(deliveries = deliveries.len(), "a task was decided");
        metrics::counter!("task_decisions_total", "decision" => status.name()).increment(1);
    }
    Ok((task, relations))
}

/// How many webhooks hear of it when an actor withdraws a pending task.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::AlreadyResolved`].
pub(super) async fn preview_cancel(
    database: &Database,
    actor: Actor,
    id: TaskId,
) -> Result<CancelPreview, TaskError> {
    let count = move |connection: &mut Connection| {
        let (task, _) = find_permitted(connection, &actor, id, Permission::Cancel)?;
        task.check_pending(&Precondition::default())?;
        Ok::<_, TaskError>(store::preview_cancel(connection, id)?)
    };
    database.run(count).await
}

/// Makes the decisions that are allowed, unless their task has changed since it was read.
fn decide_together(
    connection: &mut Connection,
    tasks: &[TaskId],
    attempts: &[DecisionAttempt],
) -> Result<BatchOutcomes<DecidedTask, TaskError>, Error> {
    let (mut tasks, have_reminders) = store::find_all(connection, tasks)?;
    let (mut outcomes, mut new) = (Vec::new(), BTreeMap::new());
    for attempt in attempts {
        let judged = attempt.judge(&tasks);
        if let Ok(task) = judged {
            // A task is decided once, by the first of its decisions that are allowed.
            let decision = || attempt.new_decision(task);
            new.entry(task.id).or_insert_with(decision);
        }
        outcomes.push(judged.err().map(Err));
    }
    let new: Vec<_> = new.into_values().collect();
    let mut rows = store::decide(connection, &new, have_reminders)?;
    let allowed = attempts.iter().zip(&mut outcomes);
    for (attempt, outcome) in allowed.filter(|(_, outcome)| outcome.is_none()) {
        *outcome = match rows.remove(&attempt.task) {
            Some(row) => attempt.apply(&mut tasks, row).map(Ok),
            // It may have lost to an earlier one of this batch.
            None => attempt.judge(&tasks).err().map(Err),
        };
    }
    Ok(outcomes)
}

impl DecisionAttempt {
    /// The task, if the actor may decide it now.
    fn judge<'a>(&self, tasks: &'a HashMap<TaskId, Task>) -> Result<&'a Task, TaskError> {
        let task = tasks.get(&self.task).ok_or(TaskError::NotFound("task"))?;
        let relations = self.actor.relations_to(task);
        relations.check(self.decision.permission)?;
        task.check_pending(&self.precondition)?;
        let is_rejected = self.decision.status == TaskStatus::Rejected;
        if task.comment_required && is_rejected && self.comment.is_none() {
            return Err(TaskError::CommentRequired);
        }
        Ok(task)
    }

    fn new_decision<'a>(&'a self, task: &'a Task) -> NewDecision<'a> {
        let (decision, comment) = (self.decision, self.comment.as_ref());
        let identity = self.actor.audit_identity(task, decision.permission);
        let by_secret = identity.1 == AuthMethod::TaskSecret;
        let holder = match decision.status {
            TaskStatus::Cancelled => &task.requester,
            _ => &task.approver,
        };
        let holder = by_secret.then_some(holder.as_str());
        let (version, hash) = (task.content_version, task.content_hash());
        let mut detail = Map::from_iter([
            ("version".to_owned(), version.into()),
            ("contentSha256".to_owned(), hash.into()),
        ]);
        if comment.is_some() {
            detail.insert("fields".to_owned(), json!([decision.comment_field]));
        }
        let via = DecidedVia::of(&self.actor, task, decision.permission);
        if via.r#override {
            detail.insert("override".to_owned(), true.into());
        }
        let caller = self.actor.caller.as_ref();
        let entry = decision
            .action
            .on_task(task.id, identity, self.meta.clone());
        NewDecision {
            task: task.id,
            version: task.version,
            status: decision.status,
            decided_by: caller.and_then(Caller::email).or(holder),
            comment: comment.map(DecisionComment::as_str),
            via: serde_json::to_value(&via).unwrap_or_default(),
            user: caller.map(|caller| (caller.id(), caller.incarnation())),
            cause: &self.cause,
            entry: entry.detail(detail.into()),
        }
    }

    /// Changes the task as the decision has changed it.
    fn apply(&self, tasks: &mut HashMap<TaskId, Task>, row: DecidedRow) -> Option<DecidedTask> {
        let task = tasks.get_mut(&self.task)?;
        let comment = self.comment.as_ref();
        task.status = self.decision.status;
        task.mtime = row.decision_made;
        task.decision_made = Some(row.decision_made);
        task.decided_by = row.decided_by;
        task.decided_via = Some(row.decided_via);
        task.comment = comment.map(|comment| comment.as_str().to_owned());
        let deliveries = row.deliveries.into_iter().zip(row.lanes);
        let deliveries = deliveries.map(|(id, lane)| DueDelivery { id, lane });
        let relations = self.actor.relations_to(task);
        Some((task.clone(), relations, deliveries.collect()))
    }
}
