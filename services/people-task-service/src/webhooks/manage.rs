use audit_log::RequestMeta;
use database::{Connection, Database};
use serde_json::json;
use values::{TaskId, WebhookId};

use crate::audit::AuditAction;
use crate::deliveries::{scheme_and_host, store as delivery_store};
use crate::error::TaskError;
use crate::tasks::{
    Actor, AuthenticatedUser, Permission, Task, find_permitted, store as task_store,
};
use crate::webhooks::store::{self, Webhook};

/// The webhooks of a task, oldest first. Who may not see the URL of one sees its scheme and host.
pub(crate) async fn list(
    database: &Database,
    actor: Actor,
    task: TaskId,
) -> Result<Vec<Webhook>, TaskError> {
    database
        .run(move |connection| {
            let (_, mut relations) = find_permitted(connection, &actor, task, Permission::Read)?;
            let mut webhooks = store::load_of_task(connection, task)?;
            for webhook in &mut webhooks {
                relations.registrant = actor.user() == Some(webhook.registered_by);
                if !relations.allow(Permission::SeeWebhookUrl) {
                    webhook.url = scheme_and_host(&webhook.url);
                    webhook.options = None;
                    webhook.events = None;
                }
            }
            Ok(webhooks)
        })
        .await
}

/// Deletes a webhook with its delivery.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::NotManager`].
#[tracing::instrument(skip_all, fields(webhook.id = %id))]
pub(crate) async fn delete(
    database: &Database,
    user: AuthenticatedUser,
    id: WebhookId,
    meta: RequestMeta,
) -> Result<(), TaskError> {
    let delete = move |connection: &mut Connection| {
        let webhook = store::find(connection, id)?.ok_or(TaskError::NotFound("webhook"))?;
        let task =
            task_store::lock(connection, webhook.task_id)?.ok_or(TaskError::NotFound("webhook"))?;
        check_manager(&user, &webhook, &task, "delete")?;
        // The worker locks a delivery before its webhook. Locking in the same order here avoids deadlocks.
        delivery_store::lock_of_webhooks(connection, task.id, &[id])?;
        // Another request may have deleted it meanwhile.
        if store::delete(connection, &[id])? > 0 {
            let identity = user.actor.audit_identity(&task, Permission::DeleteWebhook);
            let entry = AuditAction::WebhookRemoved.on_task(task.id, identity, meta);
            let entry = entry.detail(json!({ "webhookId": id }));
            entry.record(connection)?;
        }
        Ok::<_, TaskError>(())
    };
    database.transaction(delete).await?;
    tracing::info!("a webhook was deleted");
    Ok(())
}

/// Whether the user may manage a webhook: `what` is to `delete` or to `try` it.
///
/// # Errors
/// [`TaskError::NotFound`], or [`TaskError::NotManager`] for a user who may read the task.
pub(super) fn check_manager(
    user: &AuthenticatedUser,
    webhook: &Webhook,
    task: &Task,
    what: &'static str,
) -> Result<(), TaskError> {
    let mut relations = user.actor.relations_to(task);
    relations.registrant = webhook.registered_by == user.caller.id();
    let forbidden = TaskError::NotManager(what);
    relations.check_on("webhook", Permission::DeleteWebhook, forbidden)
}
