use chrono::{DateTime, Utc};
use database::Error;
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use values::{EmailAddress, Fingerprint, TaskId, UserId};

use crate::schema::tasks;
use crate::status::TaskStatus;
use crate::tasks::{DecisionBy, NewTask, Task};

/// What an edit changes; `None` leaves a field alone.
#[derive(Default, AsChangeset)]
#[diesel(table_name = tasks)]
pub(crate) struct Changes<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) decision_by: Option<Option<DateTime<Utc>>>,
    pub(crate) public: Option<bool>,
    pub(crate) approver: Option<&'a str>,
    pub(crate) approver_key: Option<&'a str>,
    pub(crate) approver_secret: Option<&'a [u8]>,
    pub(crate) requester: Option<&'a str>,
    pub(crate) requester_key: Option<&'a str>,
    pub(crate) requester_secret: Option<&'a [u8]>,
}

impl<'a> Changes<'a> {
    /// Another approver, whom another secret lets in.
    pub(crate) fn set_approver(&mut self, to: &'a EmailAddress, secret: &'a Fingerprint) {
        self.approver = Some(to.as_str());
        self.approver_key = Some(to.key());
        self.approver_secret = Some(secret.as_bytes());
    }

    /// Another requester, whom another secret lets in.
    pub(crate) fn set_requester(&mut self, to: &'a EmailAddress, secret: &'a Fingerprint) {
        self.requester = Some(to.as_str());
        self.requester_key = Some(to.key());
        self.requester_secret = Some(secret.as_bytes());
    }
}

/// Stores a new task.
pub(crate) fn insert(
    connection: &mut PgConnection,
    creator: UserId,
    task: &NewTask,
    approver_secret: &Fingerprint,
    requester_secret: &Fingerprint,
) -> Result<Task, Error> {
    let row = (
        tasks::id.eq(TaskId::generate()),
        tasks::creator.eq(creator),
        tasks::requester.eq(task.requester.as_str()),
        tasks::requester_key.eq(task.requester.key()),
        tasks::approver.eq(task.approver.as_str()),
        tasks::approver_key.eq(task.approver.key()),
        tasks::title.eq(task.title.as_str()),
        tasks::description.eq(task.description.as_str()),
        tasks::decision_by.eq(task.decision_by.map(DecisionBy::moment)),
        tasks::public.eq(task.public),
        tasks::approver_secret.eq(approver_secret.as_bytes().as_slice()),
        tasks::requester_secret.eq(requester_secret.as_bytes().as_slice()),
    );
    let inserted = diesel::insert_into(tasks::table)
        .values(row)
        .returning(Task::as_returning())
        .get_result(connection);
    Ok(inserted?)
}

/// The task, if it exists.
pub(crate) fn find(connection: &mut PgConnection, id: TaskId) -> Result<Option<Task>, Error> {
    let found = tasks::table
        .find(id)
        .select(Task::as_select())
        .first(connection)
        .optional();
    Ok(found?)
}

/// The task, if it exists, locked until the end of the transaction: decisions, edits and webhook
/// registrations of one task take turns.
pub(crate) fn lock(connection: &mut PgConnection, id: TaskId) -> Result<Option<Task>, Error> {
    let found = tasks::table
        .find(id)
        .select(Task::as_select())
        .for_no_key_update()
        .first(connection)
        .optional();
    Ok(found?)
}

/// Moves a pending task to the state that was decided; `None` when it is not pending any more.
pub(crate) fn resolve(
    connection: &mut PgConnection,
    id: TaskId,
    status: TaskStatus,
) -> Result<Option<Task>, Error> {
    let pending = tasks::table
        .find(id)
        .filter(tasks::status.eq(TaskStatus::Pending));
    let resolved = diesel::update(pending)
        .set((
            tasks::status.eq(status),
            tasks::decision_made.eq(now.into_sql::<Timestamptz>().nullable()),
            tasks::mtime.eq(now),
        ))
        .returning(Task::as_returning())
        .get_result(connection)
        .optional();
    Ok(resolved?)
}

/// Changes a task that the transaction has locked.
pub(crate) fn update(
    connection: &mut PgConnection,
    id: TaskId,
    changes: &Changes<'_>,
) -> Result<Task, Error> {
    let updated = diesel::update(tasks::table.find(id))
        .set((changes, tasks::mtime.eq(now)))
        .returning(Task::as_returning())
        .get_result(connection);
    Ok(updated?)
}
