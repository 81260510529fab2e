//! The columns of a task, for statements that are text.

/// The columns of a [`Task`](crate::tasks::Task) in `$table`. Statements name them, because `*` changes with each
/// column that a migration adds, and then a connection that has prepared the statement can no longer run it.
macro_rules! task_columns {
    ($table:literal) => {
        $crate::tasks::task_columns!(
            $table: "id", "creator", "requester", "approver", "requester_key", "approver_key", "title",
            "description", "decision_by", "status", "public", "approver_secret", "requester_secret", "created",
            "mtime", "decision_made"
        )
    };
    ($table:literal: $first:literal $(, $column:literal)*) => {
        concat!($table, ".", $first $(, ", ", $table, ".", $column)*)
    };
}

pub(crate) use task_columns;
