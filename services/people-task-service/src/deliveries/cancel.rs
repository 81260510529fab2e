use audit_log::{AuthMethod, RequestMeta};
use auth::Caller;
use database::{Connection, Database};
use serde_json::json;
use values::DeliveryId;

use crate::audit::AuditAction;
use crate::deliveries::all_store;
use crate::deliveries::error::DeliveryError;
use crate::deliveries::store::{self, Delivery};
use crate::tasks::store as task_store;

/// Ends a pending delivery as failed. If it is being sent at this moment, the receiver may get it, but it is not tried
/// again.
///
/// # Errors
/// [`DeliveryError::NotFound`], and [`DeliveryError::Ended`] if it is not pending.
#[tracing::instrument(skip_all, fields(delivery.id = %id))]
pub(crate) async fn cancel(
    database: &Database,
    admin: &Caller,
    id: DeliveryId,
    meta: RequestMeta,
) -> Result<Delivery, DeliveryError> {
    let identity = (admin.into(), AuthMethod::Token);
    let cancel = move |connection: &mut Connection| {
        let task = store::find_task(connection, id)?.ok_or(DeliveryError::NotFound)?;
        // Its webhook is not deleted meanwhile.
        let task = task_store::lock(connection, task)?.ok_or(DeliveryError::NotFound)?;
        if all_store::cancel(connection, &[id])?.is_empty() {
            return Err(DeliveryError::Ended);
        }
        let entry = AuditAction::DeliveryCancelled.on_task(task.id, identity, meta);
        let entry = entry.detail(json!({ "deliveryId": id }));
        entry.record(connection)?;
        store::find(connection, id)?.ok_or(DeliveryError::NotFound)
    };
    let delivery = database.transaction(cancel).await?;
    tracing::info!("a delivery was cancelled");
    Ok(delivery)
}
