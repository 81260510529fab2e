//! Webhooks: registered for a pending task, called once when it is decided.

mod error;
mod fields;
pub(crate) mod routes;
pub(crate) mod signing;
pub(crate) mod store;

use std::time::Duration;

use audit_log::RequestMeta;
use auth::Caller;
use database::Database;
use diesel::PgConnection;
use http_kit::{Fields, Problem};
use outbound::{AddressPolicy, SystemResolver};
use serde_json::json;
use values::{TaskId, UserId, WebhookId};

use crate::audit;
use crate::status::TaskStatus;
use crate::tasks::SignedIn;
use crate::tasks::access::{Action, Actor, Denied};
use crate::tasks::{self, store as tasks_store};

pub(crate) use error::{Error, refused_address};
pub(crate) use fields::{SigningSecret, WebhookUrl};
pub(crate) use store::Webhook;

/// Webhooks that a task can have at a time.
const MAX_PER_TASK: i64 = 20;
/// How long a host may take to resolve at registration. It is checked again at every connection.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);

/// What a webhook is registered from.
#[derive(Debug)]
pub(crate) struct NewWebhook {
    pub(crate) task: TaskId,
    pub(crate) url: WebhookUrl,
    pub(crate) secret: Option<SigningSecret>,
    /// Bodies also carry `taskId`.
    pub(crate) with_task_id: bool,
}

impl NewWebhook {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// `400` with every bad field.
    pub(crate) fn read(mut fields: Fields, with_task_id: bool) -> Result<Self, Problem> {
        let url = fields.required("url");
        let task = fields.required("taskId");
        let secret = fields.optional("secret");
        fields.finish()?;
        match (url, task) {
            (Some(url), Some(task)) => Ok(Self {
                task,
                url,
                secret,
                with_task_id,
            }),
            // A required field that is missing has ended the reading above.
            _ => Err(Problem::validation(Vec::new())),
        }
    }
}

/// Which addresses webhooks may have, and how their hosts are found.
#[derive(Debug)]
pub(crate) struct AddressGuard {
    policy: AddressPolicy,
    resolver: SystemResolver,
}

impl AddressGuard {
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            resolver: SystemResolver::default(),
        }
    }

    /// Refuses a url that can never be called, so that its owner learns of it now. A host that does not
    /// resolve in time is accepted.
    async fn check(&self, url: &WebhookUrl) -> Result<(), Error> {
        let check = self.policy.check_registration(url.parsed(), &self.resolver);
        match tokio::time::timeout(RESOLVE_TIMEOUT, check).await {
            Ok(Err(refusal)) => {
                tracing::info!(%refusal, "a webhook was refused");
                Err(Error::AddressRefused)
            }
            // Only a name is waited for; a literal address was judged at once.
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

/// Registers a webhook for a pending task.
///
/// # Errors
/// [`Error::AddressRefused`], [`Error::TooMany`], and those of the task.
#[tracing::instrument(skip_all, fields(user.id = %who.caller.id(), task.id = %new.task))]
pub(crate) async fn register(
    database: &Database,
    guard: &AddressGuard,
    who: SignedIn,
    new: NewWebhook,
    origin: RequestMeta,
) -> Result<Webhook, Error> {
    guard.check(&new.url).await?;
    let webhook = database
        .transaction(move |connection| {
            let SignedIn { caller, actor } = &who;
            // Under the lock, so that no decision passes by and the number stays exact.
            let task = tasks_store::lock(connection, new.task)?.ok_or(tasks::Error::NotFound)?;
            let relations = actor.relations_to(&task);
            let allowed = relations.check(Action::RegisterWebhook);
            allowed.map_err(tasks::Error::from)?;
            if task.status != TaskStatus::Pending {
                return Err(tasks::Error::AlreadyResolved(task.status).into());
            }
            if store::count(connection, task.id)? >= MAX_PER_TASK {
                return Err(Error::TooMany);
            }
            let registered = audit::Action::WebhookRegistered;
            let entry = registered.entry(actor, &task, Action::RegisterWebhook, origin);
            let caller = Caller::id(caller);
            Ok::<_, Error>(store::insert(connection, caller, &new, entry)?)
        })
        .await?;
    tracing::info!(webhook.id = %webhook.id, "a webhook was registered");
    metrics::counter!("webhooks_registered_total").increment(1);
    Ok(webhook)
}

/// The webhooks of a task, oldest first.
///
/// # Errors
/// [`tasks::Error::NotFound`].
pub(crate) async fn of_task(
    database: &Database,
    actor: Actor,
    task: TaskId,
) -> Result<Vec<Webhook>, Error> {
    database
        .run(move |connection| {
            tasks::open(connection, &actor, task, Action::Read)?;
            Ok(store::of_task(connection, task)?)
        })
        .await
}

/// Deletes a webhook with its delivery.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Forbidden`].
#[tracing::instrument(skip_all, fields(webhook.id = %id))]
pub(crate) async fn delete(
    database: &Database,
    who: SignedIn,
    id: WebhookId,
    origin: RequestMeta,
) -> Result<(), Error> {
    let (user, actor) = (who.caller.id(), who.actor);
    database
        .transaction(move |connection| delete_in_transaction(connection, user, &actor, id, origin))
        .await?;
    tracing::info!("a webhook was deleted");
    Ok(())
}

fn delete_in_transaction(
    connection: &mut PgConnection,
    user: UserId,
    actor: &Actor,
    id: WebhookId,
    origin: RequestMeta,
) -> Result<(), Error> {
    let webhook = store::find(connection, id)?.ok_or(Error::NotFound)?;
    let task = tasks_store::find(connection, webhook.task_id)?.ok_or(Error::NotFound)?;
    let mut relations = actor.relations_to(&task);
    relations.registrant = webhook.registered_by == user;
    relations
        .check(Action::DeleteWebhook)
        .map_err(|denied| match denied {
            Denied::Hidden => Error::NotFound,
            Denied::Forbidden => Error::Forbidden,
        })?;
    // Somebody else may have deleted it meanwhile.
    if store::delete(connection, &[id])? > 0 {
        let removed = audit::Action::WebhookRemoved;
        let entry = removed.entry(actor, &task, Action::DeleteWebhook, origin);
        let entry = entry.detail(json!({ "webhookId": id }));
        entry.record(connection)?;
    }
    Ok(())
}
