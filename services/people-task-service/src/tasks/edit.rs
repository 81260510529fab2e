use audit_log::{Entry, RequestMeta};
use database::Database;
use diesel::PgConnection;
use http_kit::{Fields, Problem};
use values::{EmailAddress, Secret, TaskId};

use crate::audit;
use crate::status::TaskStatus;
use crate::tasks::access::{Action, Actor, Relations};
use crate::tasks::store::{self, Changes};
use crate::tasks::{DecisionBy, Description, Error, Task, TaskTitle};

/// What an edit sends; absent fields stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    title: Option<TaskTitle>,
    description: Option<Description>,
    decision_by: Option<Option<DecisionBy>>,
    approver: Option<EmailAddress>,
    requester: Option<EmailAddress>,
    public: Option<bool>,
}

/// A task after an edit, with the new secrets that its editor may know.
pub(crate) struct Edited {
    pub(crate) task: Task,
    pub(crate) relations: Relations,
    pub(crate) approver_secret: Option<Secret>,
    pub(crate) requester_secret: Option<Secret>,
}

impl Edit {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// `400` with every bad field.
    pub(crate) fn read(mut fields: Fields) -> Result<Self, Problem> {
        let edit = Self {
            title: fields.optional("title"),
            description: fields.optional("description"),
            decision_by: fields.nullable("decisionBy"),
            approver: fields.optional("approver"),
            requester: fields.optional("requester"),
            public: fields.optional("public"),
        };
        fields.finish().map(|()| edit)
    }

    /// Only what differs from the task: a field sent with the value that it has is no change.
    fn against(self, task: &Task) -> Self {
        let due = task.decision_by;
        Self {
            title: self.title.filter(|t| t.as_str() != task.title),
            description: self.description.filter(|d| d.as_str() != task.description),
            decision_by: self
                .decision_by
                .filter(|by| by.map(DecisionBy::moment) != due),
            approver: self
                .approver
                .filter(|a| a.normalized() != task.approver_key),
            requester: self
                .requester
                .filter(|r| r.normalized() != task.requester_key),
            public: self.public.filter(|public| *public != task.public),
        }
    }

    fn is_empty(&self) -> bool {
        self.approver.is_none() && self.hands_over_at_most()
    }

    /// Whether nothing but the approver changes.
    fn hands_over_at_most(&self) -> bool {
        self.title.is_none()
            && self.description.is_none()
            && self.decision_by.is_none()
            && self.requester.is_none()
            && self.public.is_none()
    }

    /// The names of the fields that are sent.
    fn fields(&self) -> Vec<&'static str> {
        let sent = [
            ("title", self.title.is_some()),
            ("description", self.description.is_some()),
            ("decisionBy", self.decision_by.is_some()),
            ("approver", self.approver.is_some()),
            ("requester", self.requester.is_some()),
            ("public", self.public.is_some()),
        ];
        let sent = sent.into_iter().filter(|(_, sent)| *sent);
        sent.map(|(name, _)| name).collect()
    }

    /// What somebody must be allowed to do for this edit.
    fn action(&self) -> Action {
        if self.hands_over_at_most() {
            Action::HandOver
        } else {
            Action::Edit
        }
    }
}

/// Changes a pending task.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Forbidden`], [`Error::AlreadyResolved`].
#[tracing::instrument(skip_all, fields(task.id = %id))]
pub(crate) async fn edit(
    database: &Database,
    actor: Actor,
    id: TaskId,
    edit: Edit,
    origin: RequestMeta,
) -> Result<Edited, Error> {
    database
        .transaction(move |connection| in_transaction(connection, &actor, id, edit, origin))
        .await
}

fn in_transaction(
    connection: &mut PgConnection,
    actor: &Actor,
    id: TaskId,
    edit: Edit,
    origin: RequestMeta,
) -> Result<Edited, Error> {
    let task = store::lock(connection, id)?.ok_or(Error::NotFound)?;
    let before = actor.relations_to(&task);
    let edit = edit.against(&task);
    before.check(edit.action())?;
    if task.status != TaskStatus::Pending {
        return Err(Error::AlreadyResolved(task.status));
    }
    if edit.is_empty() {
        return Ok(Edited {
            task,
            relations: before,
            approver_secret: None,
            requester_secret: None,
        });
    }
    let approver = edit.approver.as_ref().map(|to| (to, Secret::random()));
    let requester = edit.requester.as_ref().map(|to| (to, Secret::random()));
    let entry = audit::Action::TaskEdited.entry(actor, &task, edit.action(), origin);
    let entry = entry.fields(&edit.fields());
    let task = apply(connection, id, &edit, [&approver, &requester], entry)?;
    // Who hands a role over must not keep its power, unless it comes from being creator or administrator.
    let keeps = |role: bool| before.creator || before.admin || !role;
    Ok(Edited {
        relations: actor.relations_to(&task),
        task,
        approver_secret: approver.map(|(_, s)| s).filter(|_| keeps(before.approver)),
        requester_secret: requester
            .map(|(_, s)| s)
            .filter(|_| keeps(before.requester)),
    })
}

/// Writes the changes; a new approver or requester comes with a new secret.
fn apply(
    connection: &mut PgConnection,
    id: TaskId,
    edit: &Edit,
    [approver, requester]: [&Option<(&EmailAddress, Secret)>; 2],
    entry: Entry,
) -> Result<Task, Error> {
    let mut changes = Changes {
        title: edit.title.as_ref().map(TaskTitle::as_str),
        description: edit.description.as_ref().map(Description::as_str),
        decision_by: edit.decision_by.map(|by| by.map(DecisionBy::moment)),
        public: edit.public,
        ..Changes::default()
    };
    let fingerprint = |(to, secret): &(_, Secret)| (*to, secret.fingerprint());
    let approver = approver.as_ref().map(fingerprint);
    if let Some((to, fingerprint)) = &approver {
        changes.set_approver(to, fingerprint);
    }
    let requester = requester.as_ref().map(fingerprint);
    if let Some((to, fingerprint)) = &requester {
        changes.set_requester(to, fingerprint);
    }
    Ok(store::update(connection, id, &changes, entry)?)
}
