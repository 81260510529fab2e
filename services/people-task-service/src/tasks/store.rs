use audit_log::{Entry, Subject};
use chrono::{DateTime, Utc};
use database::Error;
use diesel::dsl::now;
use diesel::prelude::*;
use values::{EmailAddress, Fingerprint, TaskId, UserId};

use crate::schema::tasks;
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
        self.approver_key = Some(to.normalized());
        self.approver_secret = Some(secret.as_bytes());
    }

    /// Another requester, whom another secret lets in.
    pub(crate) fn set_requester(&mut self, to: &'a EmailAddress, secret: &'a Fingerprint) {
        self.requester = Some(to.as_str());
        self.requester_key = Some(to.normalized());
        self.requester_secret = Some(secret.as_bytes());
    }
}

/// Stores a new task, and says so in the audit log. The secrets are the approver's and the requester's.
pub(crate) fn insert(
    connection: &mut PgConnection,
    creator: UserId,
    task: &NewTask,
    [approver_secret, requester_secret]: [&Fingerprint; 2],
    entry: Entry,
) -> Result<Task, Error> {
    let id = TaskId::generate();
    let row = (
        tasks::id.eq(id),
        tasks::creator.eq(creator),
        tasks::requester.eq(task.requester.as_str()),
        tasks::requester_key.eq(task.requester.normalized()),
        tasks::approver.eq(task.approver.as_str()),
        tasks::approver_key.eq(task.approver.normalized()),
        tasks::title.eq(task.title.as_str()),
        tasks::description.eq(task.description.as_str()),
        tasks::decision_by.eq(task.decision_by.map(DecisionBy::moment)),
        tasks::public.eq(task.public),
        tasks::approver_secret.eq(approver_secret.as_bytes().as_slice()),
        tasks::requester_secret.eq(requester_secret.as_bytes().as_slice()),
    );
    let insert = diesel::insert_into(tasks::table)
        .values(row)
        .returning(Task::as_returning());
    let entry = entry.on(Subject::Task(id));
    Ok(entry.record_with(insert).get_result(connection)?)
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

/// The task, if it exists, locked until the end of the transaction: edits, webhook registrations and
/// decisions of one task take turns.
pub(crate) fn lock(connection: &mut PgConnection, id: TaskId) -> Result<Option<Task>, Error> {
    let found = tasks::table
        .find(id)
        .select(Task::as_select())
        .for_no_key_update()
        .first(connection)
        .optional();
    Ok(found?)
}

/// Changes a task that the transaction has locked, and says so in the audit log.
pub(crate) fn update(
    connection: &mut PgConnection,
    id: TaskId,
    changes: &Changes<'_>,
    entry: Entry,
) -> Result<Task, Error> {
    let update = diesel::update(tasks::table.find(id))
        .set((changes, tasks::mtime.eq(now)))
        .returning(Task::as_returning());
    Ok(entry.record_with(update).get_result(connection)?)
}
