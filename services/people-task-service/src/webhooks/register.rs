use std::collections::{HashMap, HashSet};

use audit_log::RequestMeta;
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, transaction};
use serde_json::json;
use telemetry::RequestContext;
use values::{DeliveryId, WebhookId};

use crate::audit::AuditAction;
use crate::context::Context;
use crate::deliveries::{DueDelivery, due_message, host_of};
use crate::status::{DeliveryStatus, TaskStatus};
use crate::tasks::access::Permission;
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::{Task, TaskError, find_permitted, store as task_store};
use crate::webhooks::error::WebhookError;
use crate::webhooks::registration_store::{
    self as store, PermittedRegistration, Registered, TaskWithCount,
};
use crate::webhooks::requests::{RegisterWebhookRequest, SigningSecret, WebhookUrl};
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
    Batches::new(database, limits, register_together, register_locked)
}

/// Registers a webhook for a pending task. On a plugin path the task may be decided: Appmixer's component registers
/// after it has told its flow of the task, so its webhook gets the decision at once.
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
    let registration = Registration {
        id: WebhookId::generate(),
        user,
        new,
        is_plugin,
        cause: RequestContext::current_or_fresh(),
        meta,
    };
    let (webhook, delivery) = registrations.run(registration).await?;
    tracing::info!(webhook.id = %webhook.id, delivery.id = delivery.map(display), "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
    let host = host_of(&webhook.url);
    let due = delivery.map(|id| DueDelivery { id, host });
    context.deliveries.send(due_message(due.as_slice()));
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

/// Registers webhooks in two round trips. One whose task changes between them is registered alone, and so are further
/// ones of the same task: the count stays exact, and a decision either sees a webhook or is seen by its registration.
fn register_together(
    connection: &mut Connection,
    registrations: &[Registration],
) -> Result<BatchOutcomes<RegisteredWebhook, WebhookError>, Error> {
    let tasks: Vec<_> = registrations.iter().map(|r| r.new.task).collect();
    let tasks = store::load(connection, &tasks)?;
    let mut tasks: HashMap<_, _> = tasks.into_iter().map(|task| (task.task.id, task)).collect();
    let mut seen = HashSet::new();
    let judged = registrations.iter().map(|registration| {
        let task = registration.new.task;
        seen.insert(task)
            .then(|| registration.judge(tasks.remove(&task)))
    });
    let mut judged: Vec<_> = judged.collect();
    let permitted = judged.iter_mut().filter_map(|judged| match judged {
        Some(Ok(permitted)) => permitted.take(),
        _ => None,
    });
    let permitted: Vec<_> = permitted.collect();
    let rows = if permitted.is_empty() {
        Vec::new()
    } else {
        store::insert(connection, &permitted)?
    };
    let outcomes = registrations.iter().zip(judged);
    let outcomes = outcomes.map(|(registration, judged)| match judged? {
        Ok(_) => registration.outcome(&rows),
        Err(error) => Some(Err(error)),
    });
    Ok(outcomes.collect())
}

/// Registers one webhook under the lock of its task, so that it cannot change meanwhile.
fn register_locked(
    connection: &mut Connection,
    registration: &Registration,
) -> Result<RegisteredWebhook, WebhookError> {
    transaction(connection, |connection| {
        let id = registration.new.task;
        task_store::lock(connection, id)?.ok_or(TaskError::NotFound)?;
        let task = store::load(connection, &[id])?.pop();
        let permitted = registration.judge(task)?;
        let rows = store::insert(connection, permitted.as_slice())?;
        let outcome = registration.outcome(&rows);
        outcome.unwrap_or(Err(WebhookError::Database(Error::Busy)))
    })
}

impl Registration {
    /// Whether the user may register the webhook now. It is always `Some`, so that a caller can take it out.
    fn judge(
        &self,
        task: Option<TaskWithCount>,
    ) -> Result<Option<PermittedRegistration<'_>>, WebhookError> {
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
        Ok(Some(self.permitted(&task)))
    }

    fn permitted(&self, task: &Task) -> PermittedRegistration<'_> {
        let AuthenticatedUser { caller, actor } = &self.user;
        let identity = actor.audit_identity(task, Permission::RegisterWebhook);
        let entry = AuditAction::WebhookRegistered.on_task(task.id, identity, self.meta.clone());
        PermittedRegistration {
            id: self.id,
            task: task.id,
            version: task.version,
            registered_by: caller.id(),
            incarnation: caller.incarnation(),
            url: self.new.url.as_str(),
            host: host_of(self.new.url.as_str()),
            secret: self.new.secret.as_ref().map(SigningSecret::expose),
            with_task_id: self.is_plugin,
            cause: &self.cause,
            entry: entry.detail(json!({ "webhookId": self.id })),
        }
    }

    /// What became of it; `None` if its task has changed.
    fn outcome(&self, rows: &[Registered]) -> Option<Result<RegisteredWebhook, WebhookError>> {
        let row = rows.iter().find(|row| row.id == self.id)?;
        if !row.permitted {
            return Some(Err(TaskError::CallerErased.into()));
        }
        row.registered.then(|| {
            let webhook = Webhook {
                id: self.id,
                task_id: self.new.task,
                registered_by: self.user.caller.id(),
                url: self.new.url.as_str().to_owned(),
                status: DeliveryStatus::Pending,
            };
            Ok((webhook, row.delivery_id))
        })
    }
}
