use chrono::{DateTime, Utc};
use diesel::{Queryable, QueryableByName, Selectable};
use values::{TaskId, UserId};

use crate::status::TaskStatus;

/// A task, as the database keeps it.
#[derive(Clone, Queryable, QueryableByName, Selectable)]
#[diesel(table_name = crate::schema::tasks)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    /// The user whose token created it.
    pub(crate) creator: UserId,
    /// E-mail addresses as they were given.
    pub(crate) requester: String,
    pub(crate) approver: String,
    /// Their lower-case forms, by which relations go.
    pub(crate) requester_key: String,
    pub(crate) approver_key: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) decision_by: Option<DateTime<Utc>>,
    pub(crate) status: TaskStatus,
    pub(crate) public: bool,
    /// SHA-256 of the secrets.
    pub(crate) approver_secret: Vec<u8>,
    pub(crate) requester_secret: Vec<u8>,
    pub(crate) created: DateTime<Utc>,
    pub(crate) mtime: DateTime<Utc>,
    pub(crate) decision_made: Option<DateTime<Utc>>,
}
