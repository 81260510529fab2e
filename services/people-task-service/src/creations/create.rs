use audit_log::{AuthMethod, RequestMeta};
use auth::{Caller, EmailVerification};
use database::Connection;
use futures_util::future::join_all;
use telemetry::RequestContext;
use values::TaskId;

use crate::audit::AuditAction;
use crate::context::Context;
use crate::creations::error::CreationError;
use crate::creations::requests::NewTaskRequest;
use crate::creations::responses::CreationAnswer;
use crate::creations::secrets::{self, NewSecrets};
use crate::creations::write::{Created, Creation, Creations};
use crate::idempotency::{
    self, Operation, RepeatError, Repeatable, StoredAnswer, store as answers,
};
use crate::quotas::Amounts;
use crate::status::{Deciders, is_restricted};
use crate::tasks::TaskError;
use crate::tasks::creation_store::NewTask;
use crate::tasks::credentials::AuthenticatedUser;
use crate::tasks::metadata::Metadata;
use crate::tasks::projection::FieldSelection;
use crate::tasks::requests::{CreateTaskRequest, byte_length};
use crate::webhooks::check::check_request;
use crate::webhooks::register::{self, Registration};
use crate::webhooks::requests::RegisterWebhookRequest;

pub(super) struct CreationRequest {
    pub(super) id: TaskId,
    pub(super) user: AuthenticatedUser,
    pub(super) body: NewTaskRequest,
    pub(super) fields: FieldSelection,
    pub(super) repeat: Option<Repeatable>,
    pub(super) meta: RequestMeta,
}

/// Creates a task for a signed-in user, with its webhooks. A repeat of a request gets the answer of that request.
///
/// # Errors
/// [`TaskError::Unavailable`], [`TaskError::CallerErased`], [`TaskError::Quota`], [`CreationError::Webhooks`],
/// [`CreationError::Repeat`].
#[tracing::instrument(skip_all, fields(user.id = %request.user.caller.id(), task.id))]
pub(super) async fn create(
    context: &Context,
    creations: &Creations,
    mut request: CreationRequest,
) -> Result<CreationAnswer, CreationError> {
    let task = &mut request.body.task;
    task.deciders = task.deciders.or(context.deciders.by_default());
    let answer = create_or_find(context, creations, request).await;
    if let Err(CreationError::Repeat(error)) = &answer {
        error.count(Operation::CreateTask);
    }
    answer
}

async fn create_or_find(
    context: &Context,
    creations: &Creations,
    request: CreationRequest,
) -> Result<CreationAnswer, CreationError> {
    if let Some(repeat) = request.repeat.clone() {
        let find = move |connection: &mut Connection| answers::find(connection, &repeat);
        if let Some(earlier) = context.database.run(find).await?? {
            return replay(context, &earlier);
        }
    }
    let (id, by) = (request.id, request.user.caller.id());
    tracing::Span::current().record("task.id", tracing::field::display(id));
    let mut amounts = check(context, &request).await?;
    let (creation, new) = prepare(context, request)?;
    amounts.bytes = amounts.bytes.saturating_add(creation.option_bytes());
    let (with_options, repeat) = (creation.with_options(), creation.repeat.clone());
    let taken = context.quotas.take(by, amounts);
    taken.map_err(TaskError::from)?;
    let created = creations.run(creation).await;
    // Nothing was written, unless the database failed: then it is not known.
    if !matches!(
        created,
        Ok(Created::New(_) | Created::Stored(_)) | Err(CreationError::Database(_))
    ) {
        context.quotas.give_back(by, amounts.bytes);
    }
    let answer = match created? {
        Created::New(response) => response.answer(&new.told),
        Created::Stored(answer) => {
            let bytes = repeat.map_or(0, |repeat| answer.bytes(&repeat));
            context.quotas.keep(by, bytes);
            idempotency::count(Operation::CreateTask, "stored");
            CreationAnswer::stored(&answer.body, &new.told, false)
        }
        Created::Earlier(earlier) => return replay(context, &earlier),
    };
    tracing::info!(webhooks = amounts.webhooks, "a task was created");
    metrics::counter!("tasks_created_total").increment(1);
    metrics::counter!("webhooks_registered_total").increment(amounts.webhooks);
    register::count_options(with_options);
    Ok(answer)
}

fn replay(context: &Context, earlier: &StoredAnswer) -> Result<CreationAnswer, CreationError> {
    let secrets = secrets::of_answer(earlier, &context.mailing, &context.repeat_keys);
    let Some(secrets) = secrets else {
        tracing::warn!(task.id = %earlier.task, "an answer cannot be repeated without the key of its secrets");
        return Err(RepeatError::InUse.into());
    };
    idempotency::count(Operation::CreateTask, "replayed");
    Ok(CreationAnswer::stored(&earlier.body, &secrets, true))
}

/// Checks what does not depend on the database, and returns what the request counts for. Mail that the creator does not
/// ask for is sent as far as the limits allow.
async fn check(context: &Context, request: &CreationRequest) -> Result<Amounts, CreationError> {
    let task = &request.body.task;
    if task.notify == Some(true) && context.mailing.keys.is_none() {
        let message = "Must be false or absent, because mail about tasks is not set up.";
        return Err(TaskError::Unavailable("notify", message).into());
    }
    check_deciders(context, task, &request.user.caller)?;
    let new = request.body.webhooks.as_deref().unwrap_or_default();
    let checks = new
        .iter()
        .map(|new| check_request(context, &request.user, new));
    let checked = join_all(checks).await.into_iter().enumerate();
    let refused = checked.filter_map(|(number, checked)| Some((number, checked.err()?)));
    let refused: Vec<_> = refused.collect();
    if !refused.is_empty() {
        return Err(CreationError::Webhooks(refused));
    }
    let (title, description) = (task.title.as_str(), task.description.as_str());
    let metadata = task.metadata.as_ref().map(Metadata::as_str);
    Ok(Amounts {
        tasks: 1,
        webhooks: u64::try_from(new.len()).unwrap_or(u64::MAX),
        bytes: byte_length(title, description, metadata),
        mails: u64::from(task.notify == Some(true)),
    })
}

/// Checks that those can decide who shall. Otherwise the error has the name of the setting that is missing.
fn check_deciders(
    context: &Context,
    task: &CreateTaskRequest,
    creator: &Caller,
) -> Result<(), TaskError> {
    if !is_restricted(task.deciders, task.self_approval) {
        return Ok(());
    }
    let field = task.deciders.map_or("selfApproval", |_| "deciders");
    if context.deciders.email_verification == EmailVerification::Off {
        let message = "Cannot be restricted, because EMAIL_VERIFICATION is not `required`: anyone could sign up with the approver's address.";
        return Err(TaskError::Unavailable(field, message));
    }
    let is_mailed = context.mailing.keys_for(task.notify).is_some();
    if task.deciders == Some(Deciders::Approver) && !is_mailed {
        let message =
            "Needs mail to the approver: send `notify: true`, for which TASK_MAIL_KEY must be set.";
        return Err(TaskError::Unavailable("deciders", message));
    }
    let approver = Some(task.approver.normalized());
    let is_own = approver == Some(task.requester.normalized())
        || approver == creator.normalized_email().as_deref();
    if !task.self_approval && is_own {
        let message =
            "The approver is who requests or creates the task, so no one could decide it.";
        return Err(TaskError::Unavailable("selfApproval", message));
    }
    Ok(())
}

fn prepare(
    context: &Context,
    request: CreationRequest,
) -> Result<(Creation, NewSecrets), CreationError> {
    let (id, user, body) = (request.id, request.user, request.body);
    let (fields, meta) = (request.fields, request.meta);
    let keys = request.repeat.as_ref().map(|_| &context.repeat_keys);
    let new = NewSecrets::new(id, &body.task, &context.mailing, keys);
    let register = |webhooks| registrations(context, webhooks, &user, fields.is_plugin, &meta);
    let webhooks = body.webhooks.map(register).transpose()?;
    let by_creator = ((&user.caller).into(), AuthMethod::Token);
    let creation = Creation {
        webhooks,
        repeat: request.repeat,
        seeds: new.stored.clone(),
        new: NewTask {
            id,
            creator: user.caller,
            fields: body.task,
            secrets: new.hashes,
            reading_secret: new.reading_hash,
            mail: new.mail,
            entry: AuditAction::TaskCreated.on_task(id, by_creator, meta),
        },
        actor: user.actor,
        fields,
    };
    Ok((creation, new))
}

fn registrations(
    context: &Context,
    webhooks: Vec<RegisterWebhookRequest>,
    user: &AuthenticatedUser,
    is_plugin: bool,
    meta: &RequestMeta,
) -> Result<Vec<Registration>, CreationError> {
    let cause = RequestContext::current_or_fresh();
    let registration = |(number, webhook)| {
        let (user, meta, keys) = (user.clone(), meta.clone(), &context.header_keys);
        Registration::new(user, webhook, keys, is_plugin, cause.clone(), meta)
            .map_err(|error| CreationError::Webhooks(vec![(number, error)]))
    };
    webhooks.into_iter().enumerate().map(registration).collect()
}
