//! Statements on deletions for the routes.

use audit_log::Entry;
use chrono::{DateTime, Utc};
use database::{Connection, Error, interval};
use diesel::dsl::{exists, not, now};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Timestamptz};
use jobs::REPUBLISH_GRACE;
use listing::{Binds, Page, PageLimits, Statement};
use serde::Serialize;
use serde_json::Value;
use telemetry::RequestContext;
use utoipa::ToSchema;
use values::{DeletionId, Names as _, Secret, Timestamp, UserId};

use super::steps::Step;
use crate::schema::{deletion_settings, deletion_steps, deletions, users};

values::names! {
    pub(crate) enum DeletionStatus {
        InProgress = "in-progress",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

/// The progress of a deletion.
#[derive(Debug, Queryable, QueryableByName, Selectable, Serialize, ToSchema)]
#[diesel(table_name = deletions, check_for_backend(Pg))]
#[serde(rename_all = "camelCase")]
#[schema(as = DeletionStatus)]
pub(super) struct DeletionProgress {
    /// `in-progress`, `completed`, `failed` or `cancelled`.
    #[schema(example = "in-progress")]
    status: String,
    /// The number of finished steps. It never decreases.
    #[schema(example = 3)]
    steps_done: i32,
    /// The number of all steps. It never changes.
    #[schema(example = 8)]
    steps_total: i32,
    /// The problem that ended a failed deletion: which step failed, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    failure: Option<Value>,
}

/// A deletion in the list of all deletions.
#[derive(Debug, QueryableByName, Serialize, ToSchema)]
#[diesel(table_name = deletions, check_for_backend(Pg))]
#[serde(rename_all = "camelCase")]
#[schema(as = Deletion)]
pub(super) struct Deletion {
    ticket: String,
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
    user_id: UserId,
    #[diesel(embed)]
    #[serde(flatten)]
    status: DeletionProgress,
    /// While the deletion is in progress, and once there are some: how many of the user's tasks it has deleted.
    #[diesel(sql_type = Nullable<BigInt>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deleted_tasks: Option<i64>,
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// Null while the deletion is in progress.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished: Option<Timestamp>,
}

/// Finds the ticket of the user's deletion that is in progress. There is at most one.
pub(super) fn find_ticket_in_progress(
    connection: &mut Connection,
    user: UserId,
) -> Result<Option<String>, Error> {
    let found = deletions::table
        .filter(deletions::user_id.eq(user))
        .filter(deletions::status.eq(DeletionStatus::InProgress.name()))
        .select(deletions::ticket)
        .first(connection)
        .optional();
    Ok(found?)
}

/// Inserts a deletion and its steps. `email_trusted` says whether the tasks that were requested under the user's address
/// are erased.
pub(super) fn insert(
    connection: &mut Connection,
    user: UserId,
    ticket: &Secret,
    steps: &[Step],
    email_trusted: bool,
    context: &RequestContext,
) -> Result<DeletionId, Error> {
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
            deletions::email_trusted.eq(email_trusted),
            deletions::request_id.eq(&context.request_id),
            deletions::traceparent.eq(context.trace.to_string()),
            deletions::republish_at.eq(now.into_sql::<Timestamptz>() + interval(REPUBLISH_GRACE)),
        ))
        .execute(connection)?;
    diesel::insert_into(deletion_steps::table)
        .values(rows)
        .execute(connection)?;
    Ok(id)
}

pub(super) fn find(
    connection: &mut Connection,
    user: UserId,
    ticket: &Secret,
) -> Result<Option<DeletionProgress>, Error> {
    let found = deletions::table
        .filter(deletions::ticket.eq(ticket.expose()))
        .filter(deletions::user_id.eq(user))
        .select(DeletionProgress::as_select())
        .first(connection)
        .optional();
    Ok(found?)
}

/// Cancels a deletion that is in progress. The worker that has claimed it notices before its next step.
pub(super) fn update_to_cancelled(
    connection: &mut Connection,
    user: UserId,
    ticket: &Secret,
    entry: Entry,
) -> Result<Option<DeletionProgress>, Error> {
    let running = deletions::table
        .filter(deletions::ticket.eq(ticket.expose()))
        .filter(deletions::user_id.eq(user))
        .filter(deletions::status.eq(DeletionStatus::InProgress.name()));
    let cancel = diesel::update(running)
        .set((
            deletions::status.eq(DeletionStatus::Cancelled.name()),
            deletions::finished.eq(now),
            deletions::lease_until.eq(None::<DateTime<Utc>>),
        ))
        .returning(DeletionProgress::as_returning());
    Ok(entry
        .record_with(cancel)
        .get_result(connection)
        .optional()?)
}

/// Failed deletions that another attempt may complete. Not those of users who were reactivated since then or whose
/// deletion was requested again, nor those without the flow engine's steps if there is an engine.
macro_rules! retryable {
    ($with_engine:expr) => {{
        let newer = diesel::alias!(deletions as newer);
        let newer = newer
            .filter(newer.field(deletions::user_id).eq(deletions::user_id))
            .filter(newer.field(deletions::created).gt(deletions::created));
        let of_engine = Step::ALL.iter().filter(|step| step.is_of_engine());
        let of_engine = deletion_steps::table
            .filter(deletion_steps::deletion_id.eq(deletions::id))
            .filter(deletion_steps::name.eq_any(of_engine.map(|step| step.name())));
        let kept_inactive = users::reactivated
            .is_null()
            .or(users::reactivated.le(deletions::finished));
        deletions::table
            .inner_join(users::table.on(users::id.eq(deletions::user_id)))
            .filter(deletions::status.eq(DeletionStatus::Failed.name()))
            .filter(not(users::is_active))
            // The snapshot lacks a deletion that is requested meanwhile, but a row that is locked is checked again.
            .filter(not(users::deletion_in_progress))
            .filter(kept_inactive.assume_not_null())
            .filter(not(exists(newer)))
            .filter(exists(of_engine).or((!$with_engine).into_sql::<Bool>()))
    }};
}

/// Starts at most `limit` failed deletions again, each at the step that failed, and returns how many. The sweep
/// publishes them. An address that was confirmed meanwhile is trusted from now on. Must run in a transaction.
pub(super) fn retry_failed(
    connection: &mut Connection,
    limit: usize,
    with_engine: bool,
    entry: impl Fn(UserId) -> Entry,
) -> Result<usize, Error> {
    let is_trusted = deletions::email_trusted.or(users::email_confirmed.is_not_null());
    // It waits for no lock, so the order in which it locks a user and its deletion does not matter.
    let failed: Vec<(DeletionId, UserId, bool)> = retryable!(with_engine)
        .order(deletions::user_id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select((deletions::id, deletions::user_id, is_trusted))
        .for_update()
        .skip_locked()
        .load(connection)?;
    for (id, user, email_trusted) in &failed {
        // The finished steps stay finished.
        diesel::update(deletions::table.find(id))
            .set((
                deletions::status.eq(DeletionStatus::InProgress.name()),
                deletions::email_trusted.eq(email_trusted),
                deletions::failure.eq(None::<Value>),
                deletions::finished.eq(None::<DateTime<Utc>>),
                deletions::started.eq(now),
                deletions::next_attempt.eq(now),
                deletions::republish_at.eq(now),
            ))
            .execute(connection)?;
        diesel::update(deletion_steps::table.filter(deletion_steps::deletion_id.eq(id)))
            .filter(deletion_steps::finished.is_null())
            .set(deletion_steps::attempts.eq(0))
            .execute(connection)?;
        entry(*user).record(connection)?;
    }
    Ok(failed.len())
}

/// Whether there are deletions that [`retry_failed`] would start again, or that other transactions hold.
pub(super) fn has_retryable(connection: &mut Connection, with_engine: bool) -> Result<bool, Error> {
    let retryable = retryable!(with_engine).select(deletions::id);
    Ok(diesel::select(exists(retryable)).get_result(connection)?)
}

/// Records for the deletion-worker whether new deletions have steps at a flow engine, and whether only confirmed addresses
/// give access to tasks.
pub(crate) fn record_settings(
    connection: &mut Connection,
    with_engine: bool,
    confirmation_required: bool,
) -> Result<(), Error> {
    let settings = (
        deletion_settings::with_engine.eq(with_engine),
        deletion_settings::confirmation_required.eq(confirmation_required),
        deletion_settings::recorded.eq(now),
    );
    diesel::insert_into(deletion_settings::table)
        .values(settings)
        .on_conflict(deletion_settings::one_row)
        .do_update()
        .set(settings)
        .execute(connection)?;
    Ok(())
}

/// Whether new deletions have steps at a flow engine; `None` before the user-service was started once.
pub(super) fn find_with_engine(connection: &mut Connection) -> Result<Option<bool>, Error> {
    let found = deletion_settings::table.select(deletion_settings::with_engine);
    Ok(found.first(connection).optional()?)
}

/// Loads the deletions of a page, newest first, all or those of a status.
pub(super) fn load_page(
    connection: &mut Connection,
    status: Option<DeletionStatus>,
    limits: PageLimits,
) -> Result<Page<Deletion>, Error> {
    let mut binds = Binds::default();
    let page = binds.page(limits.paging);
    // Not bound, so that the index of those that failed serves.
    let status = status.map(|status| format!("WHERE status = '{}'", status.name()));
    let status = status.unwrap_or_default();
    let statement = Statement {
        query: format!(
            "SELECT ticket, user_id, status, steps_done, steps_total, failure, \
                CASE status WHEN 'in-progress' THEN nullif(deleted_tasks, 0) END AS deleted_tasks, \
                created, finished FROM deletions {status} ORDER BY created DESC, id DESC {page}"
        ),
        binds,
        size: "coalesce(octet_length(failure::text), 0) + 512",
        is_cached: true,
    };
    statement.load(connection, limits)
}
