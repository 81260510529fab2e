use std::collections::{HashMap, HashSet};

use audit_log::{AuthMethod, RequestMeta};
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, transaction};
use messaging::Publisher;
use telemetry::RequestContext;
use values::{Names as _, TaskId};

use crate::audit::{AuditAction, AuditIdentity};
use crate::decisions::requests::DecisionComment;
use crate::decisions::store::{self, DecidedRow, NewDecision};
use crate::deliveries::{DueDelivery, due_message};
use crate::status::TaskStatus;
use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::requests::Precondition;
use crate::tasks::{Grant, Task, TaskError, store as task_store};

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
        move |connection, attempt| decide_alone(connection, &other, attempt),
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
    tracing::info!(deliveries, "a task was decided");
    metrics::counter!("task_decisions_total", "decision" => status).increment(1);
    Ok((task, relations))
}

/// Decides tasks in one round trip. What it does not decide is repeated alone: a task that changes meanwhile, a further
/// decision about the same task, and one that its actor may not make.
fn decide_together(
    connection: &mut Connection,
    publisher: &Publisher,
    attempts: &[DecisionAttempt],
) -> Result<BatchOutcomes<DecidedTask, TaskError>, Error> {
    let mut tasks = HashSet::new();
    let new: Vec<_> = (0..)
        .zip(attempts)
        .filter_map(|(number, attempt)| attempt.by_grant(number))
        .filter(|decision| tasks.insert(decision.task))
        .collect();
    let mut rows = HashMap::new();
    if let Some(first) = new.first() {
        let decided = store::decide(connection, &new)?;
        publish(publisher, &decided, first.cause);
        rows.extend(decided.into_iter().map(|row| (row.number, row)));
    }
    let outcomes = (0..).zip(attempts).map(|(number, attempt)| {
        let row = rows.remove(&number)?;
        Some(Ok(attempt.decided(row)))
    });
    Ok(outcomes.collect())
}

/// Decides one task under its lock, so that it cannot change meanwhile.
fn decide_alone(
    connection: &mut Connection,
    publisher: &Publisher,
    attempt: &DecisionAttempt,
) -> Result<DecidedTask, TaskError> {
    // Most of these may not decide, which needs no lock.
    attempt.judge(task_store::find(connection, attempt.task)?)?;
    let row = transaction(connection, |connection| {
        let task = attempt.judge(task_store::lock(connection, attempt.task)?)?;
        let mut rows = store::decide(connection, &[attempt.judged(&task)])?;
        rows.pop().ok_or(TaskError::CallerErased)
    })?;
    publish(publisher, std::slice::from_ref(&row), &attempt.cause);
    Ok(attempt.decided(row))
}

/// Tells the workers about new deliveries, in one message on behalf of the first request.
fn publish(publisher: &Publisher, rows: &[DecidedRow], cause: &RequestContext) {
    let deliveries = rows
        .iter()
        .flat_map(|row| row.deliveries.iter().zip(&row.hosts));
    let due = deliveries.map(|(&id, host)| DueDelivery {
        id,
        host: host.clone(),
    });
    let due: Vec<_> = due.collect();
    publisher.send(due_message(&due, cause.clone()));
}

impl DecisionAttempt {
    /// Whether the actor may decide this task now.
    fn judge(&self, task: Option<Task>) -> Result<Task, TaskError> {
        let task = task.ok_or(TaskError::NotFound)?;
        self.actor.relations_to(&task).check(Permission::Decide)?;
        let Choice {
            decision,
            comment,
            precondition,
        } = &self.choice;
        let task = task.check_pending(precondition)?;
        if task.comment_required && *decision == Decision::Reject && comment.is_none() {
            return Err(TaskError::CommentRequired);
        }
        Ok(task)
    }

    /// The decision, if the statement can judge it.
    fn by_grant(&self, number: i32) -> Option<NewDecision<'_>> {
        let (grant, identity) = Grant::of(&self.actor, Permission::Decide)?;
        let version = self.choice.precondition.single()?;
        // An approver's secret decides as the approver, whom the statement knows.
        let decision = self.new_decision(number, grant, identity, self.actor.email());
        Some(NewDecision {
            version,
            ..decision
        })
    }

    /// The decision about a task that was judged under its lock.
    fn judged<'a>(&'a self, task: &'a Task) -> NewDecision<'a> {
        let identity = self.actor.audit_identity(task, Permission::Decide);
        let by_secret = identity.1 == AuthMethod::TaskSecret;
        let approver = by_secret.then_some(task.approver.as_str());
        let decided_by = self.actor.email().or(approver);
        self.new_decision(0, Grant::any_task(), identity, decided_by)
    }

    fn new_decision<'a>(
        &'a self,
        number: i32,
        grant: Grant,
        identity: AuditIdentity,
        decided_by: Option<&'a str>,
    ) -> NewDecision<'a> {
        let Choice {
            decision, comment, ..
        } = &self.choice;
        let mut entry = decision
            .audit_action()
            .on_task(self.task, identity, self.meta.clone());
        if comment.is_some() {
            entry = entry.fields(&["comment"]);
        }
        NewDecision {
            number,
            task: self.task,
            version: None,
            status: decision.status(),
            decided_by,
            comment: comment.as_ref().map(DecisionComment::as_str),
            grant,
            user: self.actor.user_and_incarnation(),
            cause: &self.cause,
            entry,
        }
    }

    fn decided(&self, row: DecidedRow) -> DecidedTask {
        let relations = self.actor.relations_to(&row.task);
        (row.task, relations, row.deliveries.len())
    }
}
