use chrono::{DateTime, TimeDelta, Utc};
use database::{Error, transaction};
use diesel::connection::SimpleConnection as _;
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Array, Binary, Integer, Nullable, Text};
use listing::{Bind, Binds, ListQuery, Page, PageLimits, Statement};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use values::{TaskId, UserId};

use crate::query::{AuditFilter, AuditSort, parse_time};

// The table that the migration creates in the schema of each service. Names are unqualified: the search path of the role
// selects the schema.
diesel::table! {
    audit_log (at, id) {
        id -> BigInt,
        at -> Timestamptz,
        action -> Text,
        actor_kind -> Text,
        actor_id -> Nullable<Binary>,
        subject_kind -> Nullable<Text>,
        subject_id -> Nullable<Binary>,
        proof -> Nullable<Text>,
        client_address -> Nullable<Inet>,
        request_id -> Text,
        detail -> Nullable<Jsonb>,
    }
}

/// The maximum number of rows that one call of a database function changes.
pub(crate) const BATCH: i32 = 5_000;
/// The clock of the database may have been set back, or be ahead, by as much.
const CLOCK_MARGIN: TimeDelta = TimeDelta::days(1);

/// A row of the audit log.
#[derive(Debug, Clone, QueryableByName)]
#[diesel(table_name = audit_log, check_for_backend(diesel::pg::Pg))]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) at: DateTime<Utc>,
    pub(crate) action: String,
    pub(crate) actor_kind: String,
    pub(crate) actor_id: Option<Vec<u8>>,
    pub(crate) subject_kind: Option<String>,
    pub(crate) subject_id: Option<Vec<u8>>,
    pub(crate) proof: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) client_address: Option<String>,
    pub(crate) request_id: String,
    pub(crate) detail: Option<Value>,
}

const SELECT: &str = "SELECT id, at, action, actor_kind, actor_id, subject_kind, subject_id, proof, \
                      host(client_address) AS client_address, request_id, detail FROM audit_log";
/// The size of a row in bytes, approximately.
const SIZE: &str = "octet_length(request_id) + coalesce(octet_length(detail::text), 0) + 512";

/// The planner's settings for filters that only the BRIN index serves. For values without an order, the planner
/// expects to find every page by such an index, and prefers to scan the table. The best plan for an action depends on
/// how frequent it is.
const BRIN: &str = "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan";

/// Loads the rows of a page.
pub(crate) fn load_page(
    connection: &mut PgConnection,
    list: &ListQuery<AuditSort, AuditFilter>,
    limits: PageLimits,
) -> Result<Page<Row>, Error> {
    let mut filters = list.conditions.filters.iter();
    let by_brin =
        filters.any(|(field, _)| matches!(field, AuditFilter::Action | AuditFilter::RequestId));
    if !by_brin {
        return select(connection, list, limits)?.load(connection, limits);
    }
    transaction(connection, |connection| {
        connection.batch_execute(BRIN)?;
        select(connection, list, limits)?.load(connection, limits)
    })
}

fn select(
    connection: &mut PgConnection,
    list: &ListQuery<AuditSort, AuditFilter>,
    limits: PageLimits,
) -> Result<Statement, Error> {
    let mut binds = Binds::default();
    let mut conditions = vec!["true".to_owned()];
    for (field, value) in &list.conditions.filters {
        conditions.push(match field {
            AuditFilter::Action => format!("action = {}", binds.text(value)),
            AuditFilter::RequestId => format!("request_id = {}", binds.text(value)),
            AuditFilter::Actor | AuditFilter::Subject => {
                let ids = identities(connection, value)?;
                let ids = ids.into_iter().map(|id| binds.add(Bind::Bytes(id)));
                let ids = ids.collect::<Vec<_>>().join(", ");
                let is_actor = *field == AuditFilter::Actor;
                format!(
                    "{} IN ({ids})",
                    if is_actor { "actor_id" } else { "subject_id" }
                )
            }
            AuditFilter::After => format!("at >= {}", time(&mut binds, value)),
            AuditFilter::Before => format!("at < {}", time(&mut binds, value)),
        });
    }
    let (direction, page) = (list.sort.direction.keyword(), binds.page(limits.paging));
    let first = match list.sort.by {
        AuditSort::At => String::new(),
        AuditSort::Action => format!("action {direction}, "),
    };
    let conditions = conditions.join(" AND ");
    Ok(Statement {
        query: format!(
            "{SELECT} WHERE {conditions} ORDER BY {first}at {direction}, id {direction} {page}"
        ),
        binds,
        size: SIZE,
        is_cached: list.conditions.filters.len() < 2,
    })
}

/// The placeholder of a time that was validated when it was parsed.
fn time(binds: &mut Binds, text: &str) -> String {
    binds.add(Bind::Time(parse_time(text).unwrap_or_default()))
}

/// The bytes of an identifier that was validated when it was parsed, and its pseudonym if the log has it.
///
/// The log of a user who was not deleted is read in the order of its index, which a second value would prevent.
fn identities(connection: &mut PgConnection, id: &str) -> QueryResult<Vec<Vec<u8>>> {
    let id = hex::decode(id).unwrap_or_default();
    let hash = Sha256::digest(&id);
    let pseudonym: Vec<u8> = hash.iter().take(id.len()).copied().collect();
    let exists = has_entries(connection, &pseudonym)?;
    Ok([id]
        .into_iter()
        .chain(exists.then_some(pseudonym))
        .collect())
}

/// Whether there are entries with this actor or subject.
fn has_entries(connection: &mut PgConnection, id: &[u8]) -> QueryResult<bool> {
    // Two statements, because each has its own index.
    let acted = audit_log::table.filter(audit_log::actor_id.eq(id));
    if diesel::select(exists(acted)).get_result(connection)? {
        return Ok(true);
    }
    let concerned = audit_log::table.filter(audit_log::subject_id.eq(id));
    diesel::select(exists(concerned)).get_result(connection)
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn forget_audit_addresses(tasks: Array<Binary>, most: Integer) -> BigInt;
    fn pseudonymise_audit_log(user: Binary, most: Integer) -> BigInt;
}

/// Removes the client addresses from at most 5,000 rows: changes of these tasks, all created at `since` or later, that
/// no known user made. It does not wait for rows that other transactions hold.
///
/// # Errors
/// The database fails.
pub fn forget_addresses(
    connection: &mut PgConnection,
    tasks: &[TaskId],
    since: DateTime<Utc>,
) -> QueryResult<Changes> {
    // Usually there is none, and this takes half as long as changing some. No other partitions are looked at than those
    // of this time.
    let until = Utc::now() + CLOCK_MARGIN;
    let left = audit_log::table
        .filter(audit_log::subject_id.eq_any(tasks))
        .filter(audit_log::actor_id.is_null())
        .filter(audit_log::client_address.is_not_null())
        .filter(audit_log::at.ge(since - CLOCK_MARGIN))
        .filter(audit_log::at.le(until));
    let left = diesel::select(exists(left));
    if !left.clone().get_result(connection)? {
        let (rows, more) = (0, false);
        return Ok(Changes { rows, more });
    }
    let forgotten = diesel::select(forget_audit_addresses(tasks, BATCH));
    Ok(Changes {
        rows: forgotten.get_result(connection)?,
        more: left.get_result(connection)?,
    })
}

/// What one call of [`pseudonymise`] or [`forget_addresses`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// The number of rows that were changed.
    pub rows: i64,
    /// Whether there are rows left. Without any that were changed, another transaction holds them.
    pub more: bool,
}

/// Replaces the identifier of a deleted user by a pseudonym, and removes the user's client addresses, in at most
/// 5,000 rows. It does not wait for rows that other transactions hold.
///
/// # Errors
/// The database fails.
pub fn pseudonymise(connection: &mut PgConnection, user: UserId) -> QueryResult<Changes> {
    let pseudonymised = diesel::select(pseudonymise_audit_log(user, BATCH));
    Ok(Changes {
        rows: pseudonymised.get_result(connection)?,
        more: has_entries(connection, user.as_bytes())?,
    })
}
