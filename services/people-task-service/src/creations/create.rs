use audit_log::{AuthMethod, RequestMeta};
use auth::{Caller, EmailVerification, MailKeys};
use database::Connection;
use futures_util::future::join_all;
use telemetry::RequestContext;
use values::{Secret, TaskId};

use crate::audit::AuditAction;
use crate::context::Context;
use crate::creations::requests::NewTaskRequest;
use crate::creations::responses::CreationAnswer;
use crate::creations::write::{Created, Creation, Creations};
use crate::error::TaskError;
use crate::idempotency::{
    self, Operation, RepeatError, Repeatable, StoredAnswer, store as answers,
};
use crate::mailing::{Part, Seed};
use crate::quotas::Amounts;
use crate::status::{Deciders, is_restricted};
use crate::tasks::{
    AuthenticatedUser, FieldSelection, Metadata, NewSecrets, NewTask, NewTaskFields, byte_length,
};
use crate::webhooks::check::check_request;
use crate::webhooks::register;
use crate::webhooks::requests::RegisterWebhookRequest;
use crate::webhooks::store::Registration;

/// Creates a task for a signed-in user, with its webhooks. A repeat of a request gets the answer of that request.
///
/// # Errors
/// [`TaskError::Unavailable`], [`TaskError::CallerErased`], [`TaskError::Quota`], [`TaskError::Webhooks`],
/// [`TaskError::Repeat`].
#[tracing::instrument(skip_all, fields(user.id = %user.caller.id(), task.id))]
pub(super) async fn create(
    context: &Context,
    creations: &Creations,
    user: AuthenticatedUser,
    mut body: NewTaskRequest,
    fields: FieldSelection,
    repeat: Option<Repeatable>,
    meta: RequestMeta,
) -> Result<CreationAnswer, TaskError> {
    let task = &mut body.task;
    task.deciders = task.deciders.or(context.deciders.by_default());
    if let Some(repeat) = repeat.clone() {
        let find = move |connection: &mut Connection| answers::find(connection, &repeat);
        if let Some(earlier) = context.database.run(find).await?? {
            return replay(context, &earlier);
        }
    }
    let by = user.caller.id();
    let id = TaskId::generate();
    tracing::Span::current().record("task.id", tracing::field::display(id));
    let mut amounts = check(context, &user, &body).await?;
    let (creation, secrets) = prepare(context, user, (id, body), fields, repeat, meta)?;
    amounts.bytes = amounts.bytes.saturating_add(creation.option_bytes());
    let (with_options, repeat) = (creation.with_options(), creation.repeat.clone());
    context.quotas.take(by, amounts)?;
    let created = creations.run(creation).await;
    let is_earlier = |created: &Created| created.is_earlier;
    if created
        .as_ref()
        .map_or_else(TaskError::wrote_nothing, is_earlier)
    {
        context.quotas.give_back(by, amounts);
    }
    let Created { answer, is_earlier } = created?;
    if is_earlier {
        return replay(context, &answer);
    }
    if let Some(repeat) = repeat {
        context.quotas.keep(by, answer.bytes(&repeat));
        idempotency::count(Operation::CreateTask, "stored");
    }
    tracing::info!(webhooks = amounts.webhooks, "a task was created");
    metrics::counter!("tasks_created_total").increment(1);
    metrics::counter!("webhooks_registered_total").increment(amounts.webhooks);
    register::count_options(with_options);
    Ok(CreationAnswer::new(&answer.body, &secrets, false))
}

fn replay(context: &Context, earlier: &StoredAnswer) -> Result<CreationAnswer, TaskError> {
    let Some(secrets) = secrets_of(earlier, context) else {
        tracing::warn!(task.id = %earlier.task, "an answer cannot be repeated without the key of its secrets");
        return Err(RepeatError::InUse.into());
    };
    idempotency::count(Operation::CreateTask, "replayed");
    Ok(CreationAnswer::new(&earlier.body, &secrets, true))
}

/// The secrets of an answer, derived again with the keys with which they were. `None` if this process does not know them.
fn secrets_of(answer: &StoredAnswer, context: &Context) -> Option<[Secret; 2]> {
    let of_mails = context.mailing.keys.iter().flat_map(MailKeys::all);
    let all: Vec<_> = of_mails.chain(context.repeat_keys.all()).collect();
    let derive = |seed, hash, part| {
        let seed = Seed::from_slice(seed)?;
        let derived = |key| [part, Part::Reader].map(|part| seed.secret(key, answer.task, part));
        let mut derived = all.iter().flat_map(|key| derived(*key));
        derived.find(|secret| secret.fingerprint().matches(hash))
    };
    let (seeds, hashes) = answer.secrets.as_ref()?;
    let (seeds, hashes) = (seeds.split_at_checked(16)?, hashes.split_at_checked(32)?);
    Some([
        derive(seeds.0, hashes.0, Part::Approver)?,
        derive(seeds.1, hashes.1, Part::Requester)?,
    ])
}

/// Checks what does not depend on the database, and returns what the request counts for. Mail that the creator does not
/// ask for is sent as far as the limits allow.
async fn check(
    context: &Context,
    user: &AuthenticatedUser,
    body: &NewTaskRequest,
) -> Result<Amounts, TaskError> {
    let task = &body.task;
    if task.notify == Some(true) && context.mailing.keys.is_none() {
        let message = "Must be false or absent, because mail about tasks is not set up.";
        return Err(TaskError::Unavailable("notify", message));
    }
    check_deciders(context, task, &user.caller)?;
    let new = body.webhooks.as_deref().unwrap_or_default();
    let checks = new.iter().map(|new| check_request(context, user, new));
    let checked = join_all(checks).await.into_iter().enumerate();
    let refused = checked.filter_map(|(number, checked)| Some((number, checked.err()?)));
    let refused: Vec<_> = refused.collect();
    if !refused.is_empty() {
        return Err(TaskError::Webhooks(refused));
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

/// Checks that the task can be decided by those whom it names. Otherwise the error has the name of the setting that is missing.
fn check_deciders(
    context: &Context,
    task: &NewTaskFields,
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

/// Returns also the secrets that the response tells.
fn prepare(
    context: &Context,
    user: AuthenticatedUser,
    (id, body): (TaskId, NewTaskRequest),
    fields: FieldSelection,
    repeat: Option<Repeatable>,
    meta: RequestMeta,
) -> Result<(Creation, [Secret; 2]), TaskError> {
    let keys = repeat.as_ref().map(|_| &context.repeat_keys);
    let (secrets, told) = NewSecrets::generate(id, &body.task, &context.mailing, keys);
    let cause = RequestContext::current_or_fresh();
    let registration = |(number, webhook)| {
        let request = RegisterWebhookRequest { webhook, task: id };
        let (user, meta, keys) = (user.clone(), meta.clone(), &context.header_keys);
        Registration::new(user, request, keys, fields.is_plugin, cause.clone(), meta)
            .map_err(|error| TaskError::Webhooks(vec![(number, error)]))
    };
    let register = |new: Vec<_>| new.into_iter().enumerate().map(registration).collect();
    let webhooks = body.webhooks.map(register).transpose()?;
    let by_creator = ((&user.caller).into(), AuthMethod::Token);
    let creation = Creation {
        webhooks,
        repeat,
        new: NewTask {
            id,
            creator: user.caller,
            fields: body.task,
            secrets,
            entry: AuditAction::TaskCreated.on_task(id, by_creator, meta),
        },
        actor: user.actor,
        fields,
    };
    Ok((creation, told))
}
