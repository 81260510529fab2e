use audit_log::RequestMeta;
use database::{Connection, Database};
use messaging::Publisher;
use serde_json::json;
use telemetry::RequestContext;
use values::DeliveryId;

use crate::audit::AuditAction;
use crate::deliveries::due_message;
use crate::deliveries::error::DeliveryError;
use crate::deliveries::store::{self, Delivery};
use crate::tasks::access::{AccessDenied, Actor, Permission};
use crate::tasks::{TaskError, store as task_store};

/// Sends a delivery again now, whatever its status. A delivery that is being sent at this moment is not
/// sent a second time.
///
/// # Errors
/// [`DeliveryError::NotFound`], and those of the task.
#[tracing::instrument(skip_all, fields(delivery.id = %id))]
pub(crate) async fn redeliver(
    database: &Database,
    publisher: &Publisher,
    actor: Actor,
    id: DeliveryId,
    meta: RequestMeta,
) -> Result<Delivery, DeliveryError> {
    let restart = move |connection: &mut Connection| {
        let task = store::find_task(connection, id)?.ok_or(DeliveryError::NotFound)?;
        // Its webhook is not deleted meanwhile.
        let task = task_store::lock(connection, task)?.ok_or(DeliveryError::NotFound)?;
        let allowed = actor.relations_to(&task).check(Permission::ViewDeliveries);
        allowed.map_err(|denied| match denied {
            AccessDenied::Hidden => DeliveryError::NotFound,
            AccessDenied::Forbidden => TaskError::Forbidden.into(),
        })?;
        let restarted = store::restart(connection, &[id])?;
        let identity = actor.audit_identity(&task, Permission::ViewDeliveries);
        let entry = AuditAction::DeliveryRedelivered.on_task(task.id, identity, meta);
        let entry = entry.detail(json!({ "deliveryId": id }));
        entry.record(connection)?;
        let delivery = store::find(connection, id)?.ok_or(DeliveryError::NotFound)?;
        Ok::<_, DeliveryError>((delivery, restarted))
    };
    let (delivery, restarted) = database.transaction(restart).await?;
    tracing::info!("a delivery was restarted");
    let cause = RequestContext::current_or_fresh();
    publisher.send(due_message(&restarted, cause));
    Ok(delivery)
}
