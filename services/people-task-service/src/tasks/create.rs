use audit_log::RequestMeta;
use auth::Caller;
use database::Database;
use http_kit::{Fields, Problem};
use values::{EmailAddress, Secret};

use crate::audit::Action;
use crate::tasks::{DecisionBy, Description, Error, Task, TaskTitle, store};

/// What a task is created from.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) title: TaskTitle,
    pub(crate) requester: EmailAddress,
    pub(crate) approver: EmailAddress,
    pub(crate) description: Description,
    pub(crate) decision_by: Option<DecisionBy>,
    pub(crate) public: bool,
}

/// A new task with its secrets, which are known at this moment only.
pub(crate) struct Created {
    pub(crate) task: Task,
    pub(crate) approver_secret: Secret,
    pub(crate) requester_secret: Secret,
}

impl NewTask {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// `400` with every bad field.
    pub(crate) fn read(mut fields: Fields) -> Result<Self, Problem> {
        let title = fields.required("title");
        let requester = fields.required("requester");
        let approver = fields.required("approver");
        let description: Option<Description> = fields.optional("description");
        let decision_by = fields.optional("decisionBy");
        let public = fields.optional("public");
        fields.finish()?;
        match (title, requester, approver) {
            (Some(title), Some(requester), Some(approver)) => Ok(Self {
                title,
                requester,
                approver,
                description: description.unwrap_or_default(),
                decision_by,
                public: public.unwrap_or(false),
            }),
            // A required field that is missing has ended the reading above.
            _ => Err(Problem::validation(Vec::new())),
        }
    }
}

/// Creates a task for the user of a token.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all, fields(user.id = %caller.id(), task.id))]
pub(crate) async fn create(
    database: &Database,
    caller: &Caller,
    task: NewTask,
    origin: RequestMeta,
) -> Result<Created, Error> {
    let creator = caller.id();
    let entry = Action::TaskCreated.entry_of_creator(caller.into(), origin);
    let (approver_secret, requester_secret) = (Secret::random(), Secret::random());
    let (approver, requester) = (
        approver_secret.fingerprint(),
        requester_secret.fingerprint(),
    );
    let insert = move |connection: &mut _| {
        store::insert(connection, creator, &task, [&approver, &requester], entry)
            .map_err(Error::from)
    };
    let task = database.run(insert).await?;
    tracing::Span::current().record("task.id", tracing::field::display(task.id));
    tracing::info!("a task was created");
    metrics::counter!("tasks_created_total").increment(1);
    Ok(Created {
        task,
        approver_secret,
        requester_secret,
    })
}
