use audit_log::RequestMeta;
use database::Connection;
use messaging::Message;
use telemetry::RequestContext;
use values::DeliveryId;

use crate::audit::AuditAction;
use crate::context::Context;
use crate::deliveries::store as delivery_store;
use crate::status::TaskStatus;
use crate::tasks::access::Permission;
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::{TaskError, find_permitted, store as task_store};
use crate::webhooks::error::WebhookError;
use crate::webhooks::requests::{RegisterWebhookRequest, WebhookUrl};
use crate::webhooks::store::{self, Webhook};

/// How many webhooks a task can have at a time.
const MAX_PER_TASK: i64 = 20;
/// Registers a webhook for a pending task. On a plugin path the task may be decided: Appmixer's component registers
/// after it has told its flow of the task, so its webhook gets the decision at once.
///
/// The caller's permission is checked before the host is resolved, so that only people who know the task can ask
/// what a name resolves to, and again under the task's lock.
///
/// # Errors
/// [`WebhookError::AddressRefused`], [`WebhookError::TooMany`], and those of the task.
#[tracing::instrument(skip_all, fields(user.id = %user.caller.id(), task.id = %new.task))]
pub(crate) async fn register(
    context: &Context,
    user: AuthenticatedUser,
    new: RegisterWebhookRequest,
    is_plugin: bool,
    meta: RequestMeta,
) -> Result<Webhook, WebhookError> {
    let (actor, task) = (user.actor.clone(), new.task);
    let check = move |connection: &mut Connection| {
        find_permitted(connection, &actor, task, Permission::RegisterWebhook)
    };
    context.database.run(check).await?;
    check_address(context, &new.url).await?;
    let cause = RequestContext::current_or_fresh();
    let request = cause.clone();
    let insert = move |connection: &mut Connection| {
        register_in_transaction(connection, &user, &new, is_plugin, &request, meta)
    };
    let (webhook, delivery) = context.database.transaction(insert).await?;
    tracing::info!(webhook.id = %webhook.id, delivery.id = delivery.map(display), "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
    let messages = delivery.map(|delivery| Message::new(delivery, cause));
    context.deliveries.send(messages);
    Ok(webhook)
}

/// Refuses a URL whose address webhooks may not have. A host that does not resolve now is accepted: every
/// connection checks its address again.
async fn check_address(context: &Context, url: &WebhookUrl) -> Result<(), WebhookError> {
    let (policy, resolver) = (&context.address_policy, &context.resolver);
    let checked = policy.check_registration(url.parsed(), resolver).await;
    checked.map_err(|refusal| {
        tracing::info!(%refusal, "a webhook was refused");
        WebhookError::AddressRefused
    })
}

/// Inserts the webhook, and a delivery if its task is already decided.
fn register_in_transaction(
    connection: &mut Connection,
    AuthenticatedUser { caller, actor }: &AuthenticatedUser,
    new: &RegisterWebhookRequest,
    is_plugin: bool,
    cause: &RequestContext,
    meta: RequestMeta,
) -> Result<(Webhook, Option<DeliveryId>), WebhookError> {
    // The lock blocks decisions until the commit, and keeps the count exact. So either the decision sees this
    // webhook and delivers to it, or this sees the decision and delivers it.
    let task = task_store::lock(connection, new.task)?.ok_or(TaskError::NotFound)?;
    let allowed = actor.relations_to(&task).check(Permission::RegisterWebhook);
    allowed.map_err(TaskError::from)?;
    let is_decided = task.status != TaskStatus::Pending;
    if is_decided && !is_plugin {
        return Err(TaskError::AlreadyResolved(task.status).into());
    }
    if store::count_of_task(connection, task.id)? >= MAX_PER_TASK {
        return Err(WebhookError::TooMany);
    }
    let identity = actor.audit_identity(&task, Permission::RegisterWebhook);
    let entry = AuditAction::WebhookRegistered.on_task(task.id, identity, meta);
    let inserted = store::insert(connection, caller, new, is_plugin, entry)?;
    let webhook = inserted.ok_or(TaskError::CallerErased)?;
    if !is_decided {
        return Ok((webhook, None));
    }
    let receiver = (webhook.id, webhook.url.as_str());
    let delivery = delivery_store::insert(connection, task.id, receiver, cause)?;
    Ok((webhook, Some(delivery)))
}
