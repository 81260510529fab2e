//! Changes of deliveries: of one, and of many of a host, a limited number in each call.

use audit_log::{AuthMethod, RequestMeta};
use auth::Caller;
use database::{Connection, Database, Error};
use messaging::Publisher;
use serde_json::json;
use telemetry::RequestContext;
use values::{DeliveryId, TaskId};

use crate::audit::{AuditAction, AuditIdentity};
use crate::deliveries::requests::Host;
use crate::deliveries::store::{self, Delivery, FAILED, PENDING};
use crate::deliveries::{DueDelivery, due_message};
use crate::error::TaskError;
use crate::tasks::{Actor, Permission, Task, store as task_store};

/// How many transactions a call has at most.
const BATCHES: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Cause {
    identity: AuditIdentity,
    meta: RequestMeta,
}

impl Cause {
    pub(crate) fn new(admin: &Caller, meta: RequestMeta) -> Self {
        let identity = (admin.into(), AuthMethod::Token);
        Self { identity, meta }
    }

    fn record(
        self,
        connection: &mut Connection,
        action: AuditAction,
        changed: &[(DeliveryId, TaskId)],
    ) -> Result<(), Error> {
        let entry = |(id, task): &(DeliveryId, TaskId)| {
            let entry = action.on_task(*task, self.identity, self.meta.clone());
            entry.detail(json!({ "deliveryId": id })).to_json()
        };
        let entries: Vec<_> = changed.iter().map(entry).collect();
        store::record(connection, &entries)
    }
}

/// Ends a pending delivery as failed. If it is being sent at this moment, the receiver may get it, but it is not tried
/// again.
///
/// # Errors
/// [`TaskError::NotFound`], and [`TaskError::DeliveryEnded`] if it is not pending.
#[tracing::instrument(skip_all, fields(delivery.id = %id))]
pub(crate) async fn cancel(
    database: &Database,
    id: DeliveryId,
    cause: Cause,
) -> Result<Delivery, TaskError> {
    let cancel = move |connection: &mut Connection| {
        let task = lock_task_of(connection, id)?;
        if store::cancel(connection, &[id])?.is_empty() {
            return Err(TaskError::DeliveryEnded);
        }
        cause.record(connection, AuditAction::DeliveryCancelled, &[(id, task.id)])?;
        store::find(connection, id)?.ok_or(TaskError::NotFound("delivery"))
    };
    let delivery = database.transaction(cancel).await?;
    tracing::info!("a delivery was cancelled");
    Ok(delivery)
}

/// Sends a delivery again now, whatever its status. A delivery that is being sent at this moment is not
/// sent a second time.
///
/// # Errors
/// [`TaskError::NotFound`], and those of the task.
#[tracing::instrument(skip_all, fields(delivery.id = %id))]
pub(crate) async fn redeliver(
    database: &Database,
    publisher: &Publisher,
    actor: Actor,
    id: DeliveryId,
    meta: RequestMeta,
) -> Result<Delivery, TaskError> {
    let restart = move |connection: &mut Connection| {
        let task = lock_task_of(connection, id)?;
        let relations = actor.relations_to(&task);
        relations.check_on("delivery", Permission::ViewDeliveries, TaskError::Forbidden)?;
        // A worker may be ending it: the statement that restarts it would find it neither waiting nor finished.
        store::lock_waiting(connection, id)?;
        let restarted = store::restart(connection, &[id])?;
        let identity = actor.audit_identity(&task, Permission::ViewDeliveries);
        let cause = Cause { identity, meta };
        let action = AuditAction::DeliveryRedelivered;
        cause.record(connection, action, &[(id, task.id)])?;
        let delivery = store::find(connection, id)?.ok_or(TaskError::NotFound("delivery"))?;
        Ok::<_, TaskError>((delivery, restarted))
    };
    let (delivery, restarted) = database.transaction(restart).await?;
    tracing::info!("a delivery was restarted");
    publish(publisher, &restarted);
    Ok(delivery)
}

/// Locks the task of a delivery, so that its webhook is not deleted meanwhile.
fn lock_task_of(connection: &mut Connection, id: DeliveryId) -> Result<Task, TaskError> {
    let task = store::find_task(connection, id)?.ok_or(TaskError::NotFound("delivery"))?;
    task_store::lock(connection, task)?.ok_or(TaskError::NotFound("delivery"))
}

fn publish(publisher: &Publisher, restarted: &[DueDelivery]) {
    let cause = RequestContext::current_or_fresh();
    publisher.send(due_message(restarted, cause));
}

/// Ends pending deliveries of a host as failed. Returns how many, and how many are left, as [`store::count`] does.
#[tracing::instrument(name = "cancel", skip_all)]
pub(crate) async fn cancel_of_host(
    database: &Database,
    host: Host,
    cause: Cause,
) -> Result<(usize, i64), Error> {
    let cancelled = in_batches(database, host, cause, cancel_pending, drop, PENDING).await;
    cancelled.inspect(|(deliveries, remaining)| {
        tracing::info!(deliveries, remaining, "deliveries of a host were cancelled");
    })
}

/// Sends failed deliveries of a host again. Returns how many, and how many are left, as [`store::count`] does.
#[tracing::instrument(name = "redeliver", skip_all)]
pub(crate) async fn redeliver_of_host(
    database: &Database,
    publisher: &Publisher,
    host: Host,
    cause: Cause,
) -> Result<(usize, i64), Error> {
    let publish = |restarted: Vec<DueDelivery>| publish(publisher, &restarted);
    let restarted = in_batches(database, host, cause, restart_failed, publish, FAILED).await;
    restarted.inspect(|(deliveries, remaining)| {
        tracing::info!(deliveries, remaining, "deliveries of a host were restarted");
    })
}

/// Changes deliveries of a host in transactions of their own, until there are none or there were enough. What each has
/// changed goes to `then`. Returns how many were changed, and how many are `left`, as [`store::count`] does.
async fn in_batches<T: Send + 'static>(
    database: &Database,
    host: Host,
    cause: Cause,
    change: fn(&mut Connection, &Host, Cause) -> Result<Vec<T>, Error>,
    then: impl Fn(Vec<T>),
    left: &'static str,
) -> Result<(usize, i64), Error> {
    let mut changed = 0;
    for _ in 0..BATCHES {
        let (host, cause) = (host.clone(), cause.clone());
        let change = move |connection: &mut Connection| change(connection, &host, cause);
        let batch = database.transaction(change).await?;
        if batch.is_empty() {
            break;
        }
        changed += batch.len();
        then(batch);
    }
    let count = move |connection: &mut Connection| store::count(connection, left, host.as_str());
    let remaining = database.run(count).await?;
    Ok((changed, remaining))
}

fn cancel_pending(
    connection: &mut Connection,
    host: &Host,
    cause: Cause,
) -> Result<Vec<DeliveryId>, Error> {
    let locked = store::lock_pending(connection, host.as_str())?;
    let ids: Vec<_> = locked.iter().map(|(id, _)| *id).collect();
    let cancelled = store::cancel(connection, &ids)?;
    cause.record(connection, AuditAction::DeliveryCancelled, &locked)?;
    Ok(cancelled)
}

fn restart_failed(
    connection: &mut Connection,
    host: &Host,
    cause: Cause,
) -> Result<Vec<DueDelivery>, Error> {
    let mut failed = store::lock_failed(connection, host.as_str())?;
    let tasks: Vec<_> = failed.iter().map(|(_, task)| *task).collect();
    // Their webhooks are not deleted meanwhile.
    let tasks = task_store::lock_free(connection, &tasks)?;
    failed.retain(|(_, task)| tasks.contains(task));
    let ids: Vec<_> = failed.iter().map(|(id, _)| *id).collect();
    let restarted = store::restart(connection, &ids)?;
    failed.retain(|(id, _)| restarted.iter().any(|due| due.id == *id));
    cause.record(connection, AuditAction::DeliveryRedelivered, &failed)?;
    Ok(restarted)
}
