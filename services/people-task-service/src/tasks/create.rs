use audit_log::RequestMeta;
use auth::Caller;
use database::{BatchLimits, BatchOutcomes, Batches, Connection, Database, Error};
use values::{Secret, TaskId};

use crate::audit::AuditAction;
use crate::mailing::Mailing;
use crate::quotas::{Amounts, Quotas};
use crate::status::TaskStatus;
use crate::tasks::creation_store::{self, Inserted, NewTask};
use crate::tasks::error::TaskError;
use crate::tasks::requests::{CreateTaskRequest, DecisionBy, MailLanguage};
use crate::tasks::secrets;
use crate::tasks::store::Task;

/// Creates tasks. Those that wait for the database are created together.
pub(crate) type Creations = Batches<NewTask, Task, TaskError>;

/// Starts [`Creations`].
pub(crate) fn creations(database: Database, limits: BatchLimits, mailing: &Mailing) -> Creations {
    let reminders = mailing.reminders();
    Batches::new(database, limits, move |connection, tasks, _| {
        create_together(connection, tasks, &reminders)
    })
}

/// A new task with its secrets, which only this response shows.
pub(crate) struct CreatedTask {
    pub(crate) task: Task,
    pub(crate) approver_secret: Secret,
    pub(crate) requester_secret: Secret,
}

/// Creates a task for a signed-in user.
///
/// # Errors
/// [`TaskError::MailOff`], [`TaskError::Quota`], [`TaskError::CallerErased`].
#[tracing::instrument(skip_all, fields(user.id = %caller.id(), task.id))]
pub(crate) async fn create(
    creations: &Creations,
    mailing: &Mailing,
    quotas: &Quotas,
    caller: &Caller,
    fields: CreateTaskRequest,
    meta: RequestMeta,
) -> Result<CreatedTask, TaskError> {
    let id = TaskId::generate();
    tracing::Span::current().record("task.id", tracing::field::display(id));
    let by_creator = (caller.into(), audit_log::AuthMethod::Token);
    if fields.notify == Some(true) && mailing.keys.is_none() {
        return Err(TaskError::MailOff);
    }
    quotas.take(caller.id(), demand(&fields))?;
    let language = fields.language.map(|MailLanguage(language)| language);
    let planned = mailing.plan(id, fields.notify, language);
    let (mail, [approver_secret, requester_secret]) = planned.map_or_else(
        || (None, [secrets::generate(id), secrets::generate(id)]),
        |(plan, secrets)| (Some(plan), secrets),
    );
    let new = NewTask {
        id,
        creator: caller.clone(),
        fields,
        secrets: [
            approver_secret.fingerprint(),
            requester_secret.fingerprint(),
        ],
        mail,
        entry: AuditAction::TaskCreated.on_task(id, by_creator, meta),
    };
    let task = creations.run(new).await?;
    tracing::info!("a task was created");
    metrics::counter!("tasks_created_total").increment(1);
    Ok(CreatedTask {
        task,
        approver_secret,
        requester_secret,
    })
}

/// What the task adds. Mail that the creator does not ask for is sent as far as the limits allow.
fn demand(fields: &CreateTaskRequest) -> Amounts {
    Amounts {
        tasks: 1,
        bytes: byte_length(fields.title.as_str(), fields.description.as_str()),
        mails: u64::from(fields.notify == Some(true)),
        ..Amounts::default()
    }
}

/// The bytes of a task's texts, as quotas count them.
pub(super) fn byte_length(title: &str, description: &str) -> u64 {
    u64::try_from(title.len() + description.len()).unwrap_or(u64::MAX)
}

fn create_together(
    connection: &mut Connection,
    tasks: &[NewTask],
    reminders: &[f64],
) -> Result<BatchOutcomes<Task, TaskError>, Error> {
    let inserted = creation_store::insert(connection, tasks, reminders)?;
    let outcomes = tasks.iter().map(|new| {
        let row = inserted.iter().find(|row| row.id == new.id);
        Some(row.map(|row| new.task(row)).ok_or(TaskError::CallerErased))
    });
    Ok(outcomes.collect())
}

impl NewTask {
    /// The task as it was inserted.
    fn task(&self, inserted: &Inserted) -> Task {
        let fields = &self.fields;
        let [approver_secret, requester_secret] = self.secrets.map(|s| s.as_bytes().to_vec());
        Task {
            id: self.id,
            creator: self.creator.id(),
            requester: fields.requester.as_str().to_owned(),
            approver: fields.approver.as_str().to_owned(),
            requester_key: fields.requester.normalized().to_owned(),
            approver_key: fields.approver.normalized().to_owned(),
            title: fields.title.as_str().to_owned(),
            description: fields.description.as_str().to_owned(),
            decision_by: fields.decision_by.map(DecisionBy::moment),
            public: fields.public,
            approver_secret,
            requester_secret,
            created: inserted.created,
            comment_required: fields.comment_required,
            confirmation_required: fields.confirmation_required,
            content_version: 1,
            version: 0,
            status: TaskStatus::Pending,
            mtime: inserted.created,
            decision_made: None,
            decided_by: None,
            comment: None,
        }
    }
}
