use std::collections::{HashMap, HashSet};

use audit_log::RequestMeta;
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, transaction};
use serde_json::json;
use telemetry::RequestContext;
use values::{DeliveryId, WebhookId};

use crate::audit::{AuditAction, AuditIdentity};
use crate::context::Context;
use crate::deliveries::{DueDelivery, due_message, host_of};
use crate::status::{DeliveryStatus, TaskStatus};
use crate::tasks::access::Permission;
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::{Grant, Task, TaskError, find_permitted, store as task_store};
use crate::webhooks::error::WebhookError;
use crate::webhooks::registration_store::{self as store, NewWebhook, Registered, TaskWithCount};
use crate::webhooks::requests::{Events, RegisterWebhookRequest, SigningSecret, WebhookUrl};
use crate::webhooks::store::Webhook;

/// How many webhooks a task can have at a time.
const MAX_PER_TASK: i64 = 20;

/// A request to register a webhook whose address was checked.
#[derive(Debug)]
pub(crate) struct Registration {
    id: WebhookId,
    user: AuthenticatedUser,
    new: RegisterWebhookRequest,
    is_plugin: bool,
    cause: RequestContext,
    meta: RequestMeta,
}

/// A registered webhook, and its delivery if its task is decided.
pub(crate) type RegisteredWebhook = (Webhook, Option<DeliveryId>);

/// Registers webhooks. Those that wait for the database are registered together.
pub(crate) type Registrations = Batches<Registration, RegisteredWebhook, WebhookError>;

/// Starts [`Registrations`].
pub(crate) fn registrations(database: Database, limits: BatchLimits) -> Registrations {
    Batches::new(database, limits, register_together, register_alone)
}

/// Registers a webhook for a pending task. On a plugin path the task may be decided: Appmixer's component registers
/// after it has told its flow of the task, so its webhook gets the decision at once. On every path, a webhook that wants `due`
/// gets it at once if the due date has passed.
///
/// The caller's permission is checked with the insertion, and already before a name is resolved, so that only people
/// who know the task can ask what a name resolves to.
///
/// # Errors
/// [`WebhookError::AddressRefused`], [`WebhookError::TooMany`], and those of the task.
#[tracing::instrument(skip_all, fields(user.id = %user.caller.id(), task.id = %new.task))]
pub(crate) async fn register(
    context: &Context,
    registrations: &Registrations,
    user: AuthenticatedUser,
    new: RegisterWebhookRequest,
    is_plugin: bool,
    meta: RequestMeta,
) -> Result<Webhook, WebhookError> {
    // Only people who know the task are told that its webhooks may not have an address.
    let checked = if new.url.has_name() {
        check_permission(context, &user, &new).await?;
        check_address(context, &new.url).await
    } else {
        let checked = check_address(context, &new.url).await;
        if checked.is_err() {
            check_permission(context, &user, &new).await?;
        }
        checked
    };
    checked?;
    let cause = RequestContext::current_or_fresh();
    let registration = Registration {
        id: WebhookId::generate(),
        user,
        new,
        is_plugin,
        cause: cause.clone(),
        meta,
    };
    let (webhook, delivery) = registrations.run(registration).await?;
    tracing::info!(webhook.id = %webhook.id, delivery.id = delivery.map(display), "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
    let host = host_of(&webhook.url);
    let due = delivery.map(|id| DueDelivery { id, host });
    context.deliveries.send(due_message(due.as_slice(), cause));
    Ok(webhook)
}

async fn check_permission(
    context: &Context,
    user: &AuthenticatedUser,
    new: &RegisterWebhookRequest,
) -> Result<(), WebhookError> {
    let (actor, task) = (user.actor.clone(), new.task);
    let check = move |connection: &mut Connection| {
        find_permitted(connection, &actor, task, Permission::RegisterWebhook)
    };
    context.database.run(check).await?;
    Ok(())
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

/// Registers webhooks in one round trip. What it does not register is repeated alone: one of a task that changes
/// meanwhile, a further one of the same task, and one that its user may not register. So the count stays exact, and a
/// decision either sees a webhook or is seen by its registration.
fn register_together(
    connection: &mut Connection,
    registrations: &[Registration],
) -> Result<BatchOutcomes<RegisteredWebhook, WebhookError>, Error> {
    let mut tasks = HashSet::new();
    let new = registrations.iter().filter_map(Registration::by_grant);
    let new: Vec<_> = new.filter(|new| tasks.insert(new.task)).collect();
    let mut rows = HashMap::new();
    if !new.is_empty() {
        let registered = store::insert(connection, &new, MAX_PER_TASK)?;
        rows.extend(registered.into_iter().map(|row| (row.id, row)));
    }
    let outcomes = registrations.iter().map(|registration| {
        let row = rows.remove(&registration.id)?;
        Some(Ok(registration.registered(&row)))
    });
    Ok(outcomes.collect())
}

/// Registers one webhook under the lock of its task, so that it cannot change meanwhile.
fn register_alone(
    connection: &mut Connection,
    registration: &Registration,
) -> Result<RegisteredWebhook, WebhookError> {
    let task = registration.new.task;
    // Most of these may not be registered, which needs no lock.
    registration.judge(store::find(connection, task)?)?;
    transaction(connection, |connection| {
        task_store::lock(connection, task)?;
        let task = registration.judge(store::find(connection, task)?)?;
        let rows = store::insert(connection, &[registration.judged(&task)], MAX_PER_TASK)?;
        let row = rows.first().ok_or(TaskError::CallerErased)?;
        Ok(registration.registered(row))
    })
}

impl Registration {
    /// Whether the user may register the webhook now.
    fn judge(&self, task: Option<TaskWithCount>) -> Result<Task, WebhookError> {
        let TaskWithCount { task, webhooks } = task.ok_or(TaskError::NotFound)?;
        let relations = self.user.actor.relations_to(&task);
        let allowed = relations.check(Permission::RegisterWebhook);
        allowed.map_err(TaskError::from)?;
        if task.status != TaskStatus::Pending && !self.is_plugin {
            return Err(TaskError::AlreadyResolved(task.status).into());
        }
        if webhooks >= MAX_PER_TASK {
            return Err(WebhookError::TooMany);
        }
        Ok(task)
    }

    /// The webhook, if the statement can judge whether it may be registered.
    fn by_grant(&self) -> Option<NewWebhook<'_>> {
        let (grant, identity) = Grant::of(&self.user.actor, Permission::RegisterWebhook)?;
        Some(self.new_webhook(grant, identity))
    }

    /// The webhook of a task that was judged under its lock.
    fn judged(&self, task: &Task) -> NewWebhook<'_> {
        let actor = &self.user.actor;
        let identity = actor.audit_identity(task, Permission::RegisterWebhook);
        let secrets = actor.secrets().iter().map(|secret| secret.fingerprint);
        let mut own = secrets.filter(|secret| {
            secret.matches(&task.approver_secret) || secret.matches(&task.requester_secret)
        });
        NewWebhook {
            secret_hash: own.next().map(|secret| secret.as_bytes().to_vec()),
            ..self.new_webhook(Grant::any_task(), identity)
        }
    }

    fn new_webhook(&self, grant: Grant, identity: AuditIdentity) -> NewWebhook<'_> {
        let (caller, task) = (&self.user.caller, self.new.task);
        let default_events = if self.is_plugin {
            Events::ALL
        } else {
            Events::DECISIONS
        };
        let entry = AuditAction::WebhookRegistered.on_task(task, identity, self.meta.clone());
        NewWebhook {
            id: self.id,
            task,
            grant,
            registered_by: caller.id(),
            incarnation: caller.incarnation(),
            is_admin: caller.is_admin(),
            email: caller.normalized_email(),
            secret_hash: None,
            url: self.new.url.as_str(),
            host: host_of(self.new.url.as_str()),
            secret: self.new.secret.as_ref().map(SigningSecret::expose),
            with_task_id: self.is_plugin,
            events: self.new.events.unwrap_or(default_events),
            cause: &self.cause,
            entry: entry.detail(json!({ "webhookId": self.id })),
        }
    }

    fn registered(&self, row: &Registered) -> RegisteredWebhook {
        let webhook = Webhook {
            id: self.id,
            task_id: self.new.task,
            registered_by: self.user.caller.id(),
            url: self.new.url.as_str().to_owned(),
            status: DeliveryStatus::Pending,
        };
        (webhook, row.delivery_id)
    }
}
