//! What is checked before a webhook is registered, in addition to what its insertion judges.

use database::Connection;
use outbound::AddressPolicy;
use values::TaskId;

use crate::context::Context;
use crate::deliveries::{group_of, owner_of};
use crate::error::TaskError;
use crate::tasks::{AuthenticatedUser, Permission, find_permitted};
use crate::webhooks::requests::{NewWebhookFields, RegisterWebhookRequest};

/// Checks a request, and the right of its user.
pub(super) async fn check_for_user(
    context: &Context,
    user: &AuthenticatedUser,
    new: &RegisterWebhookRequest,
) -> Result<(), TaskError> {
    // Only people who know the task are told that its webhooks may not have an address.
    let RegisterWebhookRequest { webhook, task } = new;
    if webhook.url.parsed().domain().is_some() {
        check_permission(context, user, *task).await?;
        check_request(context, user, webhook).await
    } else {
        let checked = check_request(context, user, webhook).await;
        if checked.is_err() {
            check_permission(context, user, *task).await?;
        }
        checked
    }
}

async fn check_permission(
    context: &Context,
    user: &AuthenticatedUser,
    task: TaskId,
) -> Result<(), TaskError> {
    let actor = user.actor.clone();
    let check = move |connection: &mut Connection| {
        find_permitted(connection, &actor, task, Permission::RegisterWebhook)
    };
    context.database.run(check).await?;
    Ok(())
}

/// Refuses a URL whose address webhooks may not have, or not with these options. A host that does not resolve now is
/// accepted: every connection checks its address again.
///
/// # Errors
/// [`TaskError::AddressRefused`], [`TaskError::NotAnEngine`], [`TaskError::NotHttps`] and
/// [`TaskError::NoHeaderKeys`].
pub(crate) async fn check_request(
    context: &Context,
    user: &AuthenticatedUser,
    new: &NewWebhookFields,
) -> Result<(), TaskError> {
    let owner = owner_of(user.caller.id(), user.caller.group());
    if new.headers.is_some() && context.header_keys.ids().is_empty() {
        return Err(TaskError::NoHeaderKeys);
    }
    let check = check_addresses(context, new);
    outbound::for_owner(group_of(&owner), check).await
}

async fn check_addresses(context: &Context, new: &NewWebhookFields) -> Result<(), TaskError> {
    let (url, resolver) = (new.url.parsed(), &context.resolver);
    let allowed = context.address_policy.check_registration(url, resolver);
    allowed.await.map_err(|refusal| {
        tracing::info!(%refusal, "a webhook was refused");
        TaskError::AddressRefused
    })?;
    let shaping: Vec<_> = new.shaping().collect();
    if shaping.is_empty() || context.engine_origins.contain(url) {
        return Ok(());
    }
    let public = AddressPolicy::default();
    let public = public.check_registration(url, resolver).await;
    public.map_err(|_| TaskError::NotAnEngine(shaping))?;
    if new.headers.is_some() && url.scheme() != "https" {
        return Err(TaskError::NotHttps);
    }
    Ok(())
}
