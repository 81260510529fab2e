//! What a new task is, and what it counts for. `creations` creates tasks.

use crate::quotas::Amounts;
use crate::status::TaskStatus;
use crate::tasks::creation_store::{Inserted, NewTask};
use crate::tasks::metadata::Metadata;
use crate::tasks::requests::{CreateTaskRequest, DecisionBy};
use crate::tasks::store::Task;

/// What the task adds. Mail that the creator does not ask for is sent as far as the limits allow.
pub(crate) fn demand(fields: &CreateTaskRequest) -> Amounts {
    Amounts {
        tasks: 1,
        bytes: byte_length(
            fields.title.as_str(),
            fields.description.as_str(),
            fields.metadata.as_ref(),
        ),
        mails: u64::from(fields.notify == Some(true)),
        ..Amounts::default()
    }
}

/// The bytes of a task's texts, as quotas count them.
pub(super) fn byte_length(title: &str, description: &str, metadata: Option<&Metadata>) -> u64 {
    let metadata = metadata.map_or("", Metadata::as_str);
    u64::try_from(title.len() + description.len() + metadata.len()).unwrap_or(u64::MAX)
}

impl NewTask {
    /// The task as it was inserted.
    pub(crate) fn task(&self, inserted: &Inserted) -> Task {
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
            metadata: fields.metadata.clone(),
            deciders: fields.deciders,
            self_approval: fields.self_approval,
            reading_secret: self.reading_secret.map(|hash| hash.as_bytes().to_vec()),
            content_version: 1,
            version: 0,
            status: TaskStatus::Pending,
            mtime: inserted.created,
            decision_made: None,
            decided_by: None,
            comment: None,
            decided_via: None,
        }
    }
}
