use std::collections::HashMap;

use audit_log::RequestMeta;
use database::{
    BatchLimits, BatchOutcomes, Batches, Connection, Database, Error, column, transaction,
};
use serde_json::json;
use telemetry::RequestContext;
use values::{Fingerprint, TaskId, WebhookId};

use crate::audit::AuditAction;
use crate::context::Context;
use crate::deliveries::{DueDelivery, due_message};
use crate::error::TaskError;
use crate::header_keys::HeaderKeys;
use crate::idempotency::{self, Operation, Repeatable, StoredAnswer, store as answers};
use crate::quotas::Amounts;
use crate::status::DeliveryStatus;
use crate::tasks::{
    Actor, AuthenticatedUser, Permission, Precondition, Relations, Task, change_in_round,
};
use crate::webhook_options::WebhookOptions;
use crate::webhooks::check::check_for_user;
use crate::webhooks::requests::RegisterWebhookRequest;
use crate::webhooks::responses::WebhookResponse;
use crate::webhooks::store::{
    self, NewWebhook, Registration, TaskWithCount, Webhook, WebhookCount,
};

pub(crate) const MAX_PER_TASK: i64 = 20;
/// Those of approvers and requesters, so that they leave room for the flow engine that asks.
const MAX_OF_OTHERS: i64 = 10;

pub(crate) enum RegisteredWebhook {
    /// A webhook was registered, and has a delivery if its task is decided.
    New(Webhook, Option<DueDelivery>),
    /// An earlier request registered it.
    Earlier(StoredAnswer),
}

/// Registers webhooks. Those that wait for the database are registered together.
pub(crate) type Registrations = Batches<Registration, RegisteredWebhook, TaskError>;

pub(crate) fn registrations(database: Database) -> Registrations {
    Batches::new(
        database,
        BatchLimits::SERVICE,
        |connection, registrations: &[Registration], round| {
            let tasks = column(registrations, |registration| registration.webhook.task_id);
            let register =
                |connection: &mut Connection| register_all(connection, &tasks, registrations);
            change_in_round(connection, round, &tasks, |connection| {
                // The answers of requests that may be repeated are committed together with the webhooks.
                if registrations.iter().any(|r| r.repeat.is_some()) {
                    transaction(connection, register)
                } else {
                    register(connection)
                }
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
/// A repeat of a request gets the answer of that request.
///
/// # Errors
/// [`TaskError::AddressRefused`], [`TaskError::Quota`], [`TaskError::TooManyWebhooks`], [`TaskError::Repeat`], and those
/// of the task.
#[tracing::instrument(skip_all, fields(user.id = %user.caller.id(), task.id = %new.task))]
pub(crate) async fn register(
    context: &Context,
    registrations: &Registrations,
    user: AuthenticatedUser,
    (new, repeat): (RegisterWebhookRequest, Option<Repeatable>),
    is_plugin: bool,
    meta: RequestMeta,
) -> Result<RegisteredWebhook, TaskError> {
    if let Some(repeat) = repeat.clone() {
        let find = move |connection: &mut Connection| answers::find(connection, &repeat);
        if let Some(earlier) = context.database.run(find).await?? {
            return Ok(RegisteredWebhook::Earlier(earlier));
        }
    }
    check_for_user(context, &user, &new).await?;
    let (cause, by) = (RequestContext::current_or_fresh(), user.caller.id());
    let keys = &context.header_keys;
    let registration = Registration {
        repeat,
        ..Registration::new(user, new, keys, is_plugin, cause.clone(), meta)?
    };
    let demand = Amounts {
        webhooks: 1,
        bytes: registration.bytes(),
        ..Amounts::default()
    };
    context.quotas.take(by, demand)?;
    let answer = registration.answer();
    let kept = answer.map(|(repeat, answer)| answer.bytes(repeat));
    let registered = registrations.run(registration).await;
    let is_earlier = |registered: &_| matches!(registered, RegisteredWebhook::Earlier(_));
    if registered
        .as_ref()
        .map_or_else(TaskError::wrote_nothing, is_earlier)
    {
        context.quotas.give_back(by, demand);
    }
    let registered = registered?;
    if let RegisteredWebhook::New(webhook, due) = &registered {
        announce(context, webhook, due.as_ref(), cause);
        if let Some(bytes) = kept {
            context.quotas.keep(by, bytes);
            idempotency::count(Operation::RegisterWebhook, "stored");
        }
    }
    Ok(registered)
}

/// Logs and counts a webhook that was registered, and sends its delivery on if it has one.
fn announce(
    context: &Context,
    webhook: &Webhook,
    due: Option<&DueDelivery>,
    cause: RequestContext,
) {
    let delivery = due.map(|due| tracing::field::display(due.id));
    tracing::info!(webhook.id = %webhook.id, delivery.id = delivery, "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
    count_options(u64::from(webhook.options.is_some()));
    let due = due.map(std::slice::from_ref).unwrap_or_default();
    context.deliveries.send(due_message(due, cause));
}

pub(crate) fn count_options(webhooks: u64) {
    metrics::counter!("webhooks_with_options_total").increment(webhooks);
}

/// Reads the tasks, judges the registrations, and inserts the webhooks that are allowed, unless their task has changed
/// since it was read. So the count stays exact, and a decision either sees a webhook or is seen by its registration.
fn register_all(
    connection: &mut Connection,
    tasks: &[TaskId],
    registrations: &[Registration],
) -> Result<BatchOutcomes<RegisteredWebhook, TaskError>, Error> {
    let repeats = column(registrations, |registration| registration.repeat.as_ref());
    let earlier = answers::claim(connection, &repeats)?;
    let tasks = store::find_all(connection, tasks)?;
    let (mut outcomes, mut new, mut counts) = (Vec::new(), Vec::new(), HashMap::new());
    for (registration, earlier) in registrations.iter().zip(earlier) {
        if let Some(found) = earlier.transpose() {
            let found = found.map(RegisteredWebhook::Earlier);
            outcomes.push(Some(found.map_err(TaskError::from)));
            continue;
        }
        let judged = registration.judge(&tasks);
        if let Ok(TaskWithCount { task, webhooks }) = judged {
            // One beyond a limit is repeated, and refused if the others were registered.
            let webhooks = counts.entry(task.id).or_insert(*webhooks);
            if registration.count_with(task, webhooks).is_ok() {
                new.push(registration.new_webhook(task));
            }
        }
        outcomes.push(judged.err().map(Err));
    }
    let mut registered = store::insert(connection, &new)?;
    let inserted = registrations
        .iter()
        .filter(|r| registered.contains_key(&r.webhook.id));
    let answers: Vec<_> = inserted.filter_map(Registration::answer).collect();
    answers::insert(connection, &answers)?;
    for (registration, outcome) in registrations.iter().zip(&mut outcomes) {
        let webhook = &registration.webhook;
        if let Some(due) = registered.remove(&webhook.id) {
            *outcome = Some(Ok(RegisteredWebhook::New(webhook.clone(), due)));
        }
    }
    Ok(outcomes)
}

/// Registers webhooks for tasks that this transaction has inserted, so that no other one changes them.
pub(crate) fn register_for_new(
    connection: &mut Connection,
    registrations: &[(&Registration, &Task)],
) -> Result<(), Error> {
    let new = registrations
        .iter()
        .map(|(new, task)| new.new_webhook(task));
    let new: Vec<_> = new.collect();
    let registered = store::insert(connection, &new)?;
    if registered.len() < new.len() {
        return Err(Error::Contended("a new task has changed".into()));
    }
    Ok(())
}

impl Registration {
    /// A registration by a user, whose request was checked.
    ///
    /// # Errors
    /// [`TaskError::NoHeaderKeys`].
    pub(crate) fn new(
        user: AuthenticatedUser,
        RegisterWebhookRequest { webhook: new, task }: RegisterWebhookRequest,
        keys: &HeaderKeys,
        is_plugin: bool,
        cause: RequestContext,
        meta: RequestMeta,
    ) -> Result<Self, TaskError> {
        let id = WebhookId::generate();
        let options = new.options(keys, id)?;
        let header_key = options.as_ref().and_then(WebhookOptions::header_key);
        let given = new.events.as_ref();
        let events = given
            .and_then(|given| store::special_events(is_plugin, |event| given.0.contains(&event)));
        Ok(Self {
            header_key: header_key.map(str::to_owned),
            webhook: Webhook {
                id,
                task_id: task,
                registered_by: user.caller.id(),
                url: new.url.as_str().to_owned(),
                status: DeliveryStatus::Pending,
                options: options.as_ref().map(WebhookOptions::to_text),
                events,
            },
            user,
            new,
            is_plugin,
            cause,
            meta,
            repeat: None,
        })
    }

    /// How many bytes of options it adds.
    pub(crate) fn bytes(&self) -> u64 {
        let document = self.webhook.options.as_ref();
        document.map_or(0, |document| document.len() as u64)
    }

    /// The task, if the user may register the webhook now.
    fn judge<'a>(
        &self,
        tasks: &'a HashMap<TaskId, TaskWithCount>,
    ) -> Result<&'a TaskWithCount, TaskError> {
        let found = tasks.get(&self.webhook.task_id);
        let found = found.ok_or(TaskError::NotFound("task"))?;
        let relations = self.user.actor.relations_to(&found.task);
        relations.check(Permission::RegisterWebhook)?;
        if let Some(field) = self.new.telling_metadata()
            && !relations.allow(Permission::Metadata)
        {
            return Err(TaskError::HidesMetadata(field));
        }
        if !self.is_plugin {
            found.task.check_pending(&Precondition::default())?;
        }
        let mut webhooks = found.webhooks;
        self.count_with(&found.task, &mut webhooks)?;
        Ok(found)
    }

    /// Counts the webhook with the others of its task.
    fn count_with(&self, task: &Task, webhooks: &mut WebhookCount) -> Result<(), TaskError> {
        let relations = self.user.actor.relations_to(task);
        let is_of_others = !(relations.creator || relations.admin);
        if webhooks.all >= MAX_PER_TASK {
            return Err(TaskError::TooManyWebhooks(MAX_PER_TASK, ""));
        }
        if is_of_others && webhooks.of_others >= MAX_OF_OTHERS {
            let whose = " of approvers and requesters";
            return Err(TaskError::TooManyWebhooks(MAX_OF_OTHERS, whose));
        }
        webhooks.all += 1;
        webhooks.of_others += i64::from(is_of_others);
        Ok(())
    }

    fn new_webhook(&self, task: &Task) -> NewWebhook<'_> {
        let actor = &self.user.actor;
        let (registered_as, registrant_email, registrant_secret) = right(actor, task);
        let identity = actor.audit_identity(task, Permission::RegisterWebhook);
        let entry = AuditAction::WebhookRegistered.on_task(task.id, identity, self.meta.clone());
        NewWebhook {
            registration: self,
            version: task.version,
            registered_as,
            registrant_email,
            registrant_secret,
            entry: entry.detail(json!({ "webhookId": self.webhook.id })),
        }
    }

    /// What repeats of the request get.
    fn answer(&self) -> Option<(&Repeatable, StoredAnswer)> {
        let repeat = self.repeat.as_ref()?;
        let response = WebhookResponse::new(self.webhook.clone(), self.is_plugin);
        let answer = StoredAnswer {
            body: serde_json::to_string(&response).ok()?,
            task: self.webhook.task_id,
            secrets: None,
        };
        Some((repeat, answer))
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
