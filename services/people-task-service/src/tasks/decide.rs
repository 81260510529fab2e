use audit_log::RequestMeta;
use database::Database;
use diesel::{Connection as _, PgConnection};
use messaging::{Message, Publisher};
use telemetry::RequestContext;
use values::{DeliveryId, TaskId};

use crate::audit;
use crate::status::TaskStatus;
use crate::tasks::access::{Action, Actor, Relations};
use crate::tasks::{Error, Task, decision_store, store};

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

    fn logged(self) -> audit::Action {
        match self {
            Self::Approve => audit::Action::TaskApproved,
            Self::Reject => audit::Action::TaskRejected,
        }
    }
}

/// A decision that somebody wants to make.
struct Wish {
    actor: Actor,
    id: TaskId,
    decision: Decision,
    cause: RequestContext,
    origin: RequestMeta,
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
    origin: RequestMeta,
) -> Result<(Task, Relations), Error> {
    let cause = RequestContext::current_or_fresh();
    let wish = Wish {
        actor,
        id,
        decision,
        cause: cause.clone(),
        origin,
    };
    let (task, relations, deliveries) = database
        .run(move |connection| wish.grant(connection))
        .await?;
    tracing::info!(deliveries = deliveries.len(), "a task was decided");
    metrics::counter!("task_decisions_total", "decision" => decision.status().as_str())
        .increment(1);
    publisher.send(
        deliveries
            .into_iter()
            .map(|id| Message::new(id, cause.clone())),
    );
    Ok((task, relations))
}

type Granted = (Task, Relations, Vec<DeliveryId>);

impl Wish {
    fn grant(&self, connection: &mut PgConnection) -> Result<Granted, Error> {
        if let Some(granted) = self.attempt(connection)? {
            return Ok(granted);
        }
        // Somebody changed the task between our two statements. Under the lock nobody can.
        connection.transaction(|connection| {
            store::lock(connection, self.id)?.ok_or(Error::NotFound)?;
            self.attempt(connection)?
                .ok_or(Error::Database(database::Error::Busy))
        })
    }

    /// `None` when the task was changed meanwhile. An approver who was replaced cannot decide any more, and
    /// no webhook that was registered is passed by.
    fn attempt(&self, connection: &mut PgConnection) -> Result<Option<Granted>, Error> {
        let seen = decision_store::see(connection, self.id)?.ok_or(Error::NotFound)?;
        let relations = self.actor.relations_to(&seen.task);
        relations.check(Action::Decide)?;
        if seen.task.status != TaskStatus::Pending {
            return Err(Error::AlreadyResolved(seen.task.status));
        }
        let logged = self.decision.logged();
        let entry = logged.entry(&self.actor, &seen.task, Action::Decide, self.origin.clone());
        let status = self.decision.status();
        let resolved = decision_store::resolve(connection, &seen, status, &self.cause, entry)?;
        Ok(resolved.map(|(task, deliveries)| (task, relations, deliveries)))
    }
}
