//! The columns of a task, for statements that are text.

/// The columns of a [`Task`](crate::tasks::Task) in `tasks` and `task_states`. Statements name them, because `*` changes
/// with each column that a migration adds, and then a connection that has prepared the statement can no longer run it.
macro_rules! task_columns {
    () => {
        "tasks.id, tasks.creator, tasks.requester, tasks.approver, tasks.requester_key, tasks.approver_key, tasks.title, \
         tasks.description, tasks.decision_by, tasks.public, tasks.approver_secret, tasks.requester_secret, \
         tasks.created, tasks.comment_required, tasks.content_version, task_states.version, task_states.status, \
         task_states.mtime, task_states.decision_made, task_states.decided_by, task_states.comment"
    };
}

pub(crate) use task_columns;
