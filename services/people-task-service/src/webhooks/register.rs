use std::time::Duration;

use audit_log::RequestMeta;
use database::{Connection, Database};
use outbound::{AddressPolicy, SystemResolver};

use crate::audit::AuditAction;
use crate::status::TaskStatus;
use crate::tasks::access::Permission;
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::{TaskError, store as task_store};
use crate::webhooks::error::WebhookError;
use crate::webhooks::requests::{RegisterWebhookRequest, WebhookUrl};
use crate::webhooks::store::{self, Webhook};

/// How many webhooks a task can have at a time.
const MAX_PER_TASK: i64 = 20;
/// How long a host may take to resolve at registration. Every connection checks its address again.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Refuses a URL whose address webhooks may not have. A host that does not resolve in time is accepted.
///
/// # Errors
/// [`WebhookError::AddressRefused`].
pub(crate) async fn check_address(
    policy: &AddressPolicy,
    resolver: &SystemResolver,
    url: &WebhookUrl,
) -> Result<(), WebhookError> {
    let check = policy.check_registration(url.parsed(), resolver);
    match tokio::time::timeout(RESOLVE_TIMEOUT, check).await {
        Ok(Err(refusal)) => {
            tracing::info!(%refusal, "a webhook was refused");
            Err(WebhookError::AddressRefused)
        }
        // Only names take time. An address in the URL is checked at once.
        Ok(Ok(())) | Err(_) => Ok(()),
    }
}

/// Registers a webhook for a pending task.
///
/// # Errors
/// [`WebhookError::TooMany`], and those of the task.
#[tracing::instrument(skip_all, fields(user.id = %user.caller.id(), task.id = %new.task))]
pub(crate) async fn register(
    database: &Database,
    user: AuthenticatedUser,
    new: RegisterWebhookRequest,
    with_task_id: bool,
    meta: RequestMeta,
) -> Result<Webhook, WebhookError> {
    let webhook = database
        .transaction(move |connection| {
            register_in_transaction(connection, &user, &new, with_task_id, meta)
        })
        .await?;
    tracing::info!(webhook.id = %webhook.id, "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
    Ok(webhook)
}

fn register_in_transaction(
    connection: &mut Connection,
    AuthenticatedUser { caller, actor }: &AuthenticatedUser,
    new: &RegisterWebhookRequest,
    with_task_id: bool,
    meta: RequestMeta,
) -> Result<Webhook, WebhookError> {
    // The lock blocks decisions until the commit, and keeps the count exact.
    let task = task_store::lock(connection, new.task)?.ok_or(TaskError::NotFound)?;
    let allowed = actor.relations_to(&task).check(Permission::RegisterWebhook);
    allowed.map_err(TaskError::from)?;
    if task.status != TaskStatus::Pending {
        return Err(TaskError::AlreadyResolved(task.status).into());
    }
    if store::count_of_task(connection, task.id)? >= MAX_PER_TASK {
        return Err(WebhookError::TooMany);
    }
    let identity = actor.audit_identity(&task, Permission::RegisterWebhook);
    let entry = AuditAction::WebhookRegistered.on_task(task.id, identity, meta);
    let inserted = store::insert(connection, caller, new, with_task_id, entry)?;
    Ok(inserted.ok_or(TaskError::CallerErased)?)
}
