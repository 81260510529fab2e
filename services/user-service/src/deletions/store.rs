//! Deletions in the database, as far as callers start, watch and cancel them.

use std::time::Duration;

use audit_log::Entry;
use chrono::{DateTime, Utc};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::Timestamptz;
use listing::Paging;
use serde_json::Value;
use telemetry::RequestContext;
use values::{DeletionId, Secret, UserId};

use super::Step;
use crate::schema::{deletion_steps, deletions};
use crate::sql::interval;

/// A new row is published right after its commit; a sweep leaves it alone for so long.
const FIRST_WAKE: Duration = Duration::from_secs(5);
const IN_PROGRESS: &str = "in-progress";

/// A deletion, as its ticket shows it.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = deletions, check_for_backend(diesel::pg::Pg))]
pub(super) struct Deletion {
    pub(super) ticket: String,
    pub(super) user_id: UserId,
    pub(super) status: String,
    pub(super) steps_done: i32,
    pub(super) steps_total: i32,
    pub(super) failure: Option<Value>,
    pub(super) created: DateTime<Utc>,
    pub(super) finished: Option<DateTime<Utc>>,
}

/// The ticket of the deletion of this user that is in progress. There is at most one.
pub(super) fn running_ticket(
    connection: &mut PgConnection,
    user: UserId,
) -> Result<Option<String>, DieselError> {
    deletions::table
        .filter(deletions::user_id.eq(user))
        .filter(deletions::status.eq(IN_PROGRESS))
        .select(deletions::ticket)
        .first(connection)
        .optional()
}

/// Stores a deletion and its steps.
pub(super) fn insert(
    connection: &mut PgConnection,
    user: UserId,
    ticket: &Secret,
    steps: &[Step],
    context: &RequestContext,
) -> Result<DeletionId, DieselError> {
    let id = DeletionId::generate();
    let positions = 1_i32..;
    let rows: Vec<_> = steps
        .iter()
        .zip(positions)
        .map(|(step, position)| {
            (
                deletion_steps::deletion_id.eq(id),
                deletion_steps::position.eq(position),
                deletion_steps::name.eq(step.name()),
            )
        })
        .collect();
    let total = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    diesel::insert_into(deletions::table)
        .values((
            deletions::id.eq(id),
            deletions::ticket.eq(ticket.expose()),
            deletions::user_id.eq(user),
            deletions::steps_total.eq(total),
            deletions::request_id.eq(&context.request_id),
            deletions::traceparent.eq(context.trace.to_string()),
            deletions::wake_at.eq(now.into_sql::<Timestamptz>() + interval(FIRST_WAKE)),
        ))
        .execute(connection)?;
    diesel::insert_into(deletion_steps::table)
        .values(rows)
        .execute(connection)?;
    Ok(id)
}

pub(super) fn find(
    connection: &mut PgConnection,
    user: UserId,
    ticket: &Secret,
) -> Result<Option<Deletion>, DieselError> {
    deletions::table
        .filter(deletions::ticket.eq(ticket.expose()))
        .filter(deletions::user_id.eq(user))
        .select(Deletion::as_select())
        .first(connection)
        .optional()
}

/// Ends a deletion that is in progress; the worker that has it finds out before its next step.
pub(super) fn cancel(
    connection: &mut PgConnection,
    user: UserId,
    ticket: &Secret,
    entry: Entry,
) -> Result<Option<Deletion>, DieselError> {
    let running = deletions::table
        .filter(deletions::ticket.eq(ticket.expose()))
        .filter(deletions::user_id.eq(user))
        .filter(deletions::status.eq(IN_PROGRESS));
    let cancel = diesel::update(running)
        .set((
            deletions::status.eq("cancelled"),
            deletions::finished.eq(now),
            deletions::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .returning(Deletion::as_returning());
    entry.record_with(cancel).get_result(connection).optional()
}

/// The rows of one page, newest first, and one more if there is another page.
pub(super) fn list(
    connection: &mut PgConnection,
    paging: Paging,
) -> Result<Vec<Deletion>, DieselError> {
    deletions::table
        .select(Deletion::as_select())
        .order((deletions::created.desc(), deletions::id.desc()))
        .limit(paging.rows_to_fetch())
        .offset(paging.offset)
        .load(connection)
}
