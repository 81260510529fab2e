//! What the benchmark `tasks` measures. It is no part of the library for others.

use chrono::{DateTime, Utc};
use values::{TaskId, UserId};

use crate::status::TaskStatus;
use crate::tasks::access::Relations;
use crate::tasks::projection::FieldSelection;
use crate::tasks::responses::TaskResponse;
use crate::tasks::store::Task;

/// A task as the database returns it.
#[derive(Debug, Clone)]
pub struct StoredTask(Task);

impl Default for StoredTask {
    fn default() -> Self {
        let now: DateTime<Utc> = DateTime::UNIX_EPOCH;
        Self(Task {
            id: TaskId::generate(),
            creator: UserId::generate(),
            requester: "ada@example.com".to_owned(),
            approver: "grace@example.com".to_owned(),
            requester_key: "ada@example.com".to_owned(),
            approver_key: "grace@example.com".to_owned(),
            title: "Buy a second printer".to_owned(),
            description: "The first one jams.".repeat(10),
            decision_by: Some(now),
            public: false,
            approver_secret: vec![0; 32],
            requester_secret: vec![0; 32],
            created: now,
            comment_required: false,
            confirmation_required: false,
            metadata: None,
            content_version: 1,
            deciders: None,
            self_approval: true,
            reading_secret: None,
            version: 0,
            status: TaskStatus::Pending,
            mtime: now,
            decision_made: None,
            decided_by: None,
            comment: None,
            decided_via: None,
        })
    }
}

/// The JSON of a page of tasks, with the default fields.
///
/// # Errors
/// None are expected.
pub fn page_to_json(tasks: Vec<StoredTask>) -> serde_json::Result<Vec<u8>> {
    let selection = FieldSelection::new(false);
    let response = |task: StoredTask| TaskResponse::new(task.0, Relations::default(), &selection);
    serde_json::to_vec(&tasks.into_iter().map(response).collect::<Vec<_>>())
}
