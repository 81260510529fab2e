use std::time::{Duration, Instant};

use audit_log::RequestMeta;
use database::{Connection, Database};
use serde_json::json;
use telemetry::RequestContext;
use values::{DeliveryId, WebhookId};

use crate::audit::AuditAction;
use crate::deliveries::{TestResult, host_of, test_store};
use crate::error::TaskError;
use crate::tasks::{AuthenticatedUser, Permission, store as task_store};
use crate::webhooks::manage::check_manager;
use crate::webhooks::store;

/// How many webhooks may be tried within a minute. The accounts of a group count as one user.
const PER_USER: i64 = 10;
const OF_ALL: i64 = 60;
/// How often to look for the result.
const POLL: Duration = Duration::from_millis(150);

/// Lets a webhook-worker call a webhook once, and returns what came of it. The services themselves have no way out of
/// their network.
///
/// # Errors
/// Those of deleting the webhook, and [`TaskError::TooManyTests`], [`TaskError::Paused`] and
/// [`TaskError::NoResult`].
#[tracing::instrument(skip_all, fields(webhook.id = %webhook))]
pub(crate) async fn send_test(
    database: &Database,
    user: AuthenticatedUser,
    webhook: WebhookId,
    meta: RequestMeta,
) -> Result<(DeliveryId, TestResult), TaskError> {
    let (id, cause) = (DeliveryId::generate(), RequestContext::current_or_fresh());
    let request =
        move |connection: &mut Connection| request(connection, id, &user, webhook, &cause, meta);
    database.transaction(request).await?;
    let deadline = Instant::now() + test_store::RESULT_WITHIN;
    while Instant::now() < deadline {
        tokio::time::sleep(POLL).await;
        let find = move |connection: &mut Connection| test_store::find_result(connection, id);
        if let Some(result) = database.run(find).await? {
            return Ok((id, result));
        }
    }
    let withdraw = move |connection: &mut Connection| test_store::withdraw(connection, id);
    database.run(withdraw).await?;
    Err(TaskError::NoResult)
}

/// Requests the call, if the user may manage the webhook and has not tried too many.
fn request(
    connection: &mut Connection,
    id: DeliveryId,
    user: &AuthenticatedUser,
    webhook: WebhookId,
    cause: &RequestContext,
    meta: RequestMeta,
) -> Result<(), TaskError> {
    let found = store::find(connection, webhook)?.ok_or(TaskError::NotFound("webhook"))?;
    let task =
        task_store::find(connection, found.task_id)?.ok_or(TaskError::NotFound("webhook"))?;
    check_manager(user, &found, &task, "try")?;
    let lately = test_store::count_lately(connection, &user.caller, &host_of(&found.url))?;
    if lately.is_paused {
        return Err(TaskError::Paused);
    }
    for (who, number, most, remaining) in [
        ("You", lately.own, PER_USER, lately.own_remaining),
        ("All users together", lately.all, OF_ALL, lately.remaining),
    ] {
        if number >= most {
            let wait = u64::try_from(remaining).unwrap_or_default();
            let wait = Duration::from_millis(wait);
            return Err(TaskError::TooManyTests(who, most, wait));
        }
    }
    if !test_store::insert(connection, id, webhook, &user.caller, cause)? {
        return Err(TaskError::NotFound("webhook"));
    }
    let identity = user.actor.audit_identity(&task, Permission::DeleteWebhook);
    let entry = AuditAction::WebhookTested.on_task(task.id, identity, meta);
    let entry = entry.detail(json!({ "webhookId": webhook }));
    Ok(entry.record(connection)?)
}
