use std::collections::HashMap;

use audit_log::RequestMeta;
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error};
use serde_json::json;
use telemetry::RequestContext;
use values::{Fingerprint, TaskId, WebhookId};

use crate::audit::AuditAction;
use crate::context::Context;
use crate::deliveries::{DueDelivery, due_message, group_of, host_of, lane_of, owner_of};
use crate::quotas::Amounts;
use crate::status::DeliveryStatus;
use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::requests::Precondition;
use crate::tasks::{Task, TaskError, change_in_round, find_permitted};
use crate::webhooks::error::WebhookError;
use crate::webhooks::registration_store::{self as store, NewWebhook, Registered, TaskWithCount};
use crate::webhooks::requests::{Events, RegisterWebhookRequest, SigningSecret, WebhookUrl};
use crate::webhooks::store::Webhook;
use database::column;

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
pub(crate) type RegisteredWebhook = (Webhook, Option<DueDelivery>);

/// Registers webhooks. Those that wait for the database are registered together.
pub(crate) type Registrations = Batches<Registration, RegisteredWebhook, WebhookError>;

/// Starts [`Registrations`].
pub(crate) fn registrations(database: Database, limits: BatchLimits) -> Registrations {
    Batches::new(
        database,
        limits,
        |connection, registrations: &[Registration], round| {
            let tasks = column(registrations, |registration| registration.new.task);
            change_in_round(connection, round, &tasks, |connection| {
                register_together(connection, &tasks, registrations)
            })
        },
    )
}

/// Registers a webhook for a pending task. On a plugin path the task may be decided: Appmixer's component registers
/// after it has told its flow of the task, so its webhook gets the decision at once. On every path, a webhook that wants `due`
/// gets it at once if the due date has passed.
///
/// The caller's permission is checked with the insertion, and already before a name is resolved, so that only people
/// who know the task can ask what a name resolves to.
///
/// # Errors
/// [`WebhookError::AddressRefused`], [`WebhookError::Quota`], [`WebhookError::TooMany`], and those of the task.
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
        check_address(context, &user, &new.url).await
    } else {
        let checked = check_address(context, &user, &new.url).await;
        if checked.is_err() {
            check_permission(context, &user, &new).await?;
        }
        checked
    };
    checked?;
    let demand = Amounts {
        webhooks: 1,
        ..Amounts::default()
    };
    context.quotas.take(user.caller.id(), demand)?;
    let cause = RequestContext::current_or_fresh();
    let registration = Registration {
        id: WebhookId::generate(),
        user,
        new,
        is_plugin,
        cause: cause.clone(),
        meta,
    };
    let (webhook, due) = registrations.run(registration).await?;
    let delivery = due.as_ref().map(|due| tracing::field::display(due.id));
    tracing::info!(webhook.id = %webhook.id, delivery.id = delivery, "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
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
async fn check_address(
    context: &Context,
    user: &AuthenticatedUser,
    url: &WebhookUrl,
) -> Result<(), WebhookError> {
    let (policy, resolver) = (&context.address_policy, &context.resolver);
    let check = policy.check_registration(url.parsed(), resolver);
    let checked = outbound::for_owner(
        group_of(&owner_of(user.caller.id(), user.caller.group())),
        check,
    )
    .await;
    checked.map_err(|refusal| {
        tracing::info!(%refusal, "a webhook was refused");
        WebhookError::AddressRefused
    })
}

/// Reads the tasks, judges the registrations, and inserts the webhooks that are allowed, unless their task has changed
/// since it was read. So the count stays exact, and a decision either sees a webhook or is seen by its registration.
fn register_together(
    connection: &mut Connection,
    tasks: &[TaskId],
    registrations: &[Registration],
) -> Result<BatchOutcomes<RegisteredWebhook, WebhookError>, Error> {
    let tasks = store::find_all(connection, tasks)?;
    let (mut outcomes, mut new, mut counts) = (Vec::new(), Vec::new(), HashMap::new());
    for registration in registrations {
        let judged = registration.judge(&tasks);
        if let Ok(TaskWithCount { task, webhooks }) = judged {
            // One beyond the limit is repeated, and refused if the others were registered.
            let count = counts.entry(task.id).or_insert(*webhooks);
            *count += 1;
            if *count <= MAX_PER_TASK {
                new.push(registration.new_webhook(task));
            }
        }
        outcomes.push(judged.err().map(Err));
    }
    let registered = store::insert(connection, &new)?;
    for (registration, outcome) in registrations.iter().zip(&mut outcomes) {
        if let Some(row) = registered.get(&registration.id) {
            *outcome = Some(Ok(registration.registered(row)));
        }
    }
    Ok(outcomes)
}

impl Registration {
    /// The task, if the user may register the webhook now.
    fn judge<'a>(
        &self,
        tasks: &'a HashMap<TaskId, TaskWithCount>,
    ) -> Result<&'a TaskWithCount, WebhookError> {
        let found = tasks.get(&self.new.task).ok_or(TaskError::NotFound)?;
        let relations = self.user.actor.relations_to(&found.task);
        let allowed = relations.check(Permission::RegisterWebhook);
        allowed.map_err(TaskError::from)?;
        if !self.is_plugin {
            found.task.check_pending(&Precondition::default())?;
        }
        if found.webhooks >= MAX_PER_TASK {
            return Err(WebhookError::TooMany);
        }
        Ok(found)
    }

    /// Whose share of the workers the deliveries use: that of the task's creator. Only the creator's own token tells the
    /// group of the account.
    fn share_owner(&self, task: &Task) -> String {
        let caller = &self.user.caller;
        let is_creator = caller.id() == task.creator;
        owner_of(task.creator, caller.group().filter(|_| is_creator))
    }

    fn new_webhook(&self, task: &Task) -> NewWebhook<'_> {
        let caller = &self.user.caller;
        let default_events = if self.is_plugin {
            Events::ALL
        } else {
            Events::DECISIONS
        };
        let actor = &self.user.actor;
        let (registered_as, registrant_email, registrant_secret) = right(actor, task);
        let identity = actor.audit_identity(task, Permission::RegisterWebhook);
        let entry = AuditAction::WebhookRegistered.on_task(task.id, identity, self.meta.clone());
        NewWebhook {
            id: self.id,
            task: task.id,
            version: task.version,
            registered_by: caller.id(),
            incarnation: caller.incarnation(),
            registered_as,
            registrant_email,
            registrant_secret,
            url: self.new.url.as_str(),
            host: host_of(self.new.url.as_str()),
            lane: lane_of(self.new.url.as_str(), &self.share_owner(task)),
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
        (webhook, row.due())
    }
}

/// What gives the actor the right to register webhooks for the task: a value of `webhooks.registered_as`, and the address
/// and the presented secret that are the approver's or the requester's, unless the actor is the creator.
fn right(actor: &Actor, task: &Task) -> (&'static str, Option<String>, Option<Fingerprint>) {
    let registered_as = match actor.relations_to(task) {
        Relations { creator: true, .. } => return ("creator", None, None),
        Relations { admin: true, .. } => "administrator",
        Relations { approver: true, .. } => "approver",
        _ => "requester",
    };
    let keys = [&task.approver_key, &task.requester_key];
    let email = actor.normalized_email();
    let email = email.filter(|email| keys.contains(&email));
    let stored = [&task.approver_secret, &task.requester_secret];
    let mut secrets = actor.secrets().iter().map(|secret| secret.fingerprint);
    let secret = secrets.find(|secret| stored.iter().any(|stored| secret.matches(stored)));
    (registered_as, email, secret)
}
