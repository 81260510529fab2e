use std::sync::Arc;

use audit_log::RequestMeta;
use auth::MailKeys;
use database::Connection;
use serde_json::json;
use values::{EmailAddress, FromText as _, Secret, TaskId, UserId};

use crate::audit::AuditAction;
use crate::context::Context;
use crate::error::TaskError;
use crate::mailing::{Mailing, Part, Seed};
use crate::mails;
use crate::quotas::{Amounts, QuotaError, Quotas};
use crate::status::is_restricted;
use crate::tasks::access::{Actor, Permission, Relations};
use crate::tasks::metadata::Metadata;
use crate::tasks::requests::{
    DecisionBy, Description, EditTaskRequest, Precondition, TaskTitle, byte_length,
};
use crate::tasks::secrets;
use crate::tasks::store::{self, Changes, Task};

/// A task after an edit, the editor's relations to it, and the new secrets that the editor may see: the approver's and the
/// requester's.
pub(crate) type EditedTask = (Task, Relations, [Option<Secret>; 2]);

impl EditTaskRequest {
    fn diff(mut self, task: &Task) -> Self {
        self.title.take_if(|title| title.as_str() == task.title);
        self.description
            .take_if(|text| text.as_str() == task.description);
        self.decision_by
            .take_if(|by| by.map(DecisionBy::moment) == task.decision_by);
        self.approver
            .take_if(|to| to.normalized() == task.approver_key);
        self.requester
            .take_if(|to| to.normalized() == task.requester_key);
        self.public.take_if(|is| *is == task.public);
        self.comment_required
            .take_if(|is| *is == task.comment_required);
        self.confirmation_required
            .take_if(|is| *is == task.confirmation_required);
        self.metadata
            .take_if(|new| new.as_ref().map(Metadata::as_str) == task.metadata.as_deref());
        // A new approver gets a new secret anyway.
        self.renew_approver_secret
            .take_if(|renews| !*renews || self.approver.is_some());
        if self.renews() {
            self.approver = EmailAddress::from_text(&task.approver).ok();
        }
        self
    }

    fn field_names(&self) -> Vec<&'static str> {
        let fields = [
            ("title", self.title.is_some()),
            ("description", self.description.is_some()),
            ("decisionBy", self.decision_by.is_some()),
            ("approver", self.approver.is_some() && !self.renews()),
            ("approverSecret", self.renews()),
            ("requester", self.requester.is_some()),
            ("public", self.public.is_some()),
            ("commentRequired", self.comment_required.is_some()),
            ("confirmationRequired", self.confirmation_required.is_some()),
            ("metadata", self.metadata.is_some()),
        ];
        let present = fields.into_iter().filter(|(_, present)| *present);
        present.map(|(name, _)| name).collect()
    }

    /// Whether the approver stays and gets a new secret.
    fn renews(&self) -> bool {
        self.renew_approver_secret == Some(true)
    }

    /// Whether the new approver is the actor or the task's requester, who may be the actor by a secret.
    fn names_self(&self, actor: &Actor, task: &Task) -> bool {
        let own = actor.normalized_email();
        let approver = self.approver.as_ref().map(EmailAddress::normalized);
        approver.is_some_and(|to| own.as_deref() == Some(to) || to == task.requester_key)
    }

    /// Whether the approver and the requester are the same person afterwards.
    fn joins_approver_and_requester(&self, task: &Task) -> bool {
        let approver = self.approver.as_ref().map(EmailAddress::normalized);
        let requester = self.requester.as_ref().map(EmailAddress::normalized);
        approver.unwrap_or(&task.approver_key) == requester.unwrap_or(&task.requester_key)
    }

    fn permission(&self) -> Permission {
        if self.field_names().iter().all(|name| *name == "approver") {
            Permission::Reassign
        } else {
            Permission::Edit
        }
    }
}

/// Edits a pending task, if the precondition and the version of the edit hold.
///
/// # Errors
/// [`TaskError::NotFound`], [`TaskError::Forbidden`], [`TaskError::SelfApproval`],
/// [`TaskError::AlreadyResolved`], [`TaskError::Changed`], [`TaskError::Quota`].
#[tracing::instrument(skip_all, fields(task.id = %id))]
pub(crate) async fn edit(
    context: &Context,
    actor: Actor,
    id: TaskId,
    edit: EditTaskRequest,
    precondition: Precondition,
    meta: RequestMeta,
) -> Result<EditedTask, TaskError> {
    let precondition = precondition.and(edit.version);
    let (mailing, quotas) = (Arc::clone(&context.mailing), Arc::clone(&context.quotas));
    let edit = move |connection: &mut Connection| {
        let task = store::lock(connection, id)?.ok_or(TaskError::NotFound("task"))?;
        if edit.metadata.is_some() {
            // Before it is compared, which would tell whether it is the same.
            let relations = actor.relations_to(&task);
            relations.check(Permission::Metadata)?;
        }
        let edit = edit.diff(&task);
        judge(&actor, &task, &edit, &precondition)?;
        let (creator, lengths) = (task.creator, byte_lengths(&task, &edit));
        let is_creator = actor.relations_to(&task).creator;
        let edited = edit_in_transaction(connection, &mailing, &actor, task, &edit, meta)?;
        // The last step: what is counted stays counted if the transaction is rolled back.
        let counted = count_bytes(&quotas, creator, lengths);
        counted.map_err(|error| error.of_creator(is_creator))?;
        Ok(edited)
    };
    context.database.transaction(edit).await
}

/// The bytes of the task's texts before and after the edit.
fn byte_lengths(task: &Task, edit: &EditTaskRequest) -> [u64; 2] {
    let (title, description) = (edit.title.as_ref(), edit.description.as_ref());
    let before = task.metadata.as_deref();
    let metadata = edit.metadata.as_ref();
    let after = byte_length(
        title.map_or(&task.title, TaskTitle::as_str),
        description.map_or(&task.description, Description::as_str),
        metadata.map_or(before, |new| new.as_ref().map(Metadata::as_str)),
    );
    [byte_length(&task.title, &task.description, before), after]
}

/// Counts the bytes by which an edit makes the texts of a task longer or shorter for its creator.
fn count_bytes(
    quotas: &Quotas,
    creator: UserId,
    [before, after]: [u64; 2],
) -> Result<(), QuotaError> {
    let difference = Amounts {
        bytes: after.abs_diff(before),
        ..Amounts::default()
    };
    if after > before {
        return quotas.take(creator, difference);
    }
    quotas.give_back(creator, difference);
    Ok(())
}

fn judge(
    actor: &Actor,
    task: &Task,
    edit: &EditTaskRequest,
    precondition: &Precondition,
) -> Result<(), TaskError> {
    let relations = actor.relations_to(task);
    relations.check(edit.permission())?;
    if edit.approver.is_some() && task.deciders.is_some() {
        // Otherwise who may not decide could name an approver who does what they want.
        relations.check(Permission::Decide)?;
        if relations.undeciding_key {
            return Err(TaskError::Forbidden);
        }
    }
    if edit.renews() {
        relations.check(Permission::SeeNewSecrets)?;
    }
    let names_self = edit.names_self(actor, task) && !relations.allow(Permission::Decide);
    if names_self || (!task.self_approval && edit.joins_approver_and_requester(task)) {
        return Err(TaskError::SelfApproval);
    }
    let evades = relations.requester && relations.admin && !relations.creator;
    if evades && edit.requester.is_some() && !task.self_approval {
        // An administrator who is no longer the requester could decide.
        return Err(TaskError::Forbidden);
    }
    task.check_pending(precondition)
}

fn edit_in_transaction(
    connection: &mut Connection,
    mailing: &Mailing,
    actor: &Actor,
    task: Task,
    edit: &EditTaskRequest,
    meta: RequestMeta,
) -> Result<EditedTask, TaskError> {
    let (id, before) = (task.id, actor.relations_to(&task));
    let fields = edit.field_names();
    if fields.is_empty() {
        return Ok((task, before, [None, None]));
    }
    let is_mailed = mails::is_mailed(connection, id)?;
    let mailing = Some(mailing).filter(|_| is_mailed);
    let new = |address: &Option<EmailAddress>, part| {
        let secret = address.as_ref().map(|_| new_secret(id, part, mailing));
        secret.unzip()
    };
    let (approver, approver_seed) = new(&edit.approver, Part::Approver);
    let (requester, requester_seed) = new(&edit.requester, Part::Requester);
    let identity = actor.audit_identity(&task, edit.permission());
    let entry = AuditAction::TaskEdited.on_task(id, identity, meta);
    let mut entry = entry.fields(&fields);
    if edit.approver.is_some() && actor.is_overriding(&task, Permission::Decide) {
        entry = entry.detail(json!({ "fields": fields, "override": true }));
    }
    let is_restricted = is_restricted(task.deciders, task.self_approval);
    let reading = approver.as_ref().filter(|_| is_restricted);
    let reading = reading.map(|_| secrets::generate(id));
    let changes = changes(edit, [&approver, &requester, &reading]);
    let updated = store::update(connection, id, &changes, &entry)?;
    let task = updated.ok_or(TaskError::NotFound("task"))?;
    if let Some(mailing) = mailing {
        let seeds = [approver_seed.flatten(), requester_seed.flatten()];
        let made = (edit.decision_by.is_some(), before.creator);
        mails::replan(connection, id, seeds, made, &mailing.reminders())?;
    }
    let may_see = before.allow(Permission::SeeNewSecrets);
    let relations = actor.relations_to(&task);
    let shown = [reading.or(approver), requester].map(|secret| secret.filter(|_| may_see));
    Ok((task, relations, shown))
}

/// A new secret of a task's approver or requester, and what it is derived from, if mails are sent about the task.
fn new_secret(task: TaskId, part: Part, mailing: Option<&Mailing>) -> (Secret, Option<Seed>) {
    let keys = mailing.and_then(|mailing| mailing.keys.as_ref());
    let Some(key) = keys.map(MailKeys::current) else {
        return (secrets::generate(task), None);
    };
    let seed = Seed::random();
    (seed.secret(key, task, part), Some(seed))
}

/// The changes of an edit, with the new secrets of the approver, of the requester and of who only reads.
fn changes<'a>(edit: &'a EditTaskRequest, secrets: [&Option<Secret>; 3]) -> Changes<'a> {
    let hash = |secret: &Secret| secret.fingerprint().as_bytes().to_vec();
    let hashes = secrets.map(|secret| secret.as_ref().map(hash));
    let [approver_secret, requester_secret, reading_secret] = hashes;
    let (approver, requester) = (edit.approver.as_ref(), edit.requester.as_ref());
    let metadata = edit.metadata.as_ref();
    Changes {
        title: edit.title.as_ref().map(TaskTitle::as_str),
        description: edit.description.as_ref().map(Description::as_str),
        decision_by: edit.decision_by.map(|by| by.map(DecisionBy::moment)),
        public: edit.public,
        comment_required: edit.comment_required,
        confirmation_required: edit.confirmation_required,
        metadata: metadata.map(|new| new.as_ref().map(Metadata::as_str)),
        approver: approver.map(EmailAddress::as_str),
        approver_key: approver.map(EmailAddress::normalized),
        approver_secret,
        reading_secret,
        requester: requester.map(EmailAddress::as_str),
        requester_key: requester.map(EmailAddress::normalized),
        requester_secret,
    }
}
