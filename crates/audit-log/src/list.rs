use std::convert::identity;

use actix_web::{HttpRequest, HttpResponse};
use database::{Connection, Database, Error, transaction};
use diesel::connection::SimpleConnection as _;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use http_kit::{Problem, Query};
use listing::{Bind, Binds, ListQuery, Lists, Page, PageLimits, Statement};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{Timestamp, UserId};

use crate::query::{AuditFilter, AuditQuery, AuditSort, parse_time};
use crate::store::{audit_log, identities};

/// A change of a user or a task. It holds identifiers and the names of changed fields, never their values.
#[derive(Debug, QueryableByName, Serialize, ToSchema)]
#[diesel(table_name = audit_log, check_for_backend(Pg))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The number of the entry.
    #[schema(example = 4711)]
    id: i64,
    /// When the change was made.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The kind of change.
    #[schema(example = "task-approved")]
    action: String,
    /// `user`, `admin` (a user with a token that has that scope), `service` (a process of the system),
    /// `approver-secret` or `requester-secret` (a caller with that secret of the task), or `anonymous`.
    #[schema(example = "user")]
    actor_kind: String,
    /// The identifier of the user who made the change; null if it was not a known user.
    #[diesel(sql_type = Nullable<Text>)]
    #[schema(required = true, example = "65b8f0a2c3d4e5f601234567")]
    actor: Option<String>,
    /// `user` or `task`; null if the user does not exist.
    #[schema(required = true, example = "task")]
    subject_kind: Option<String>,
    /// The identifier of the user or task that was changed.
    #[diesel(sql_type = Nullable<Text>)]
    #[schema(required = true, example = "665f1c2ab3d4e5f60718293a")]
    subject: Option<String>,
    /// How the actor was authenticated: `token`, `password`, `reset-code`, `verification-code`,
    /// `task-secret` or `service-token`; null for an unauthenticated caller.
    #[schema(required = true, example = "token")]
    proof: Option<String>,
    /// The client's address; null for work inside the system, and once the user whose address it was is
    /// deleted.
    #[diesel(sql_type = Nullable<Text>)]
    #[schema(required = true, example = "203.0.113.7")]
    client_address: Option<String>,
    /// The `X-Request-Id` of the response, which is also in the log lines of the request.
    #[schema(example = "0b5c1d")]
    request_id: String,
    /// Further details, such as `fields`, the names of the fields that changed, of a decision `version` and
    /// `contentSha256`, the hash of what was decided on, and `key`, the API key that acted for the user.
    #[schema(required = true, value_type = Option<Object>)]
    detail: Option<Value>,
}

/// Handles a request for the list: returns one page, and the next one in `Link`.
///
/// # Errors
/// `400 validation-failed` with one entry for each invalid parameter, and the problems of [`Lists::page`] and of the
/// database.
pub async fn list(
    lists: &Lists,
    caller: UserId,
    query: &Query,
    request: &HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuditQuery(query) = AuditQuery::parse(query)?;
    let load = move |database: Database, bytes| {
        let query = query.clone();
        let load = move |connection: &mut Connection| {
            let paging = query.paging;
            load_page(connection, &query, PageLimits { paging, bytes })
        };
        async move { database.run(load).await }
    };
    let page = lists
        .page(Some(caller), load, identity::<AuditEntry>)
        .await?;
    Ok(page.respond(request.path(), request.query_string()))
}

const SELECT: &str = "SELECT id, at, action, actor_kind, encode(actor_id, 'hex') AS actor, subject_kind, \
                      encode(subject_id, 'hex') AS subject, proof, host(client_address) AS client_address, \
                      request_id, detail FROM audit_log";
/// The size of a row in bytes, approximately.
const SIZE: &str = "octet_length(request_id) + coalesce(octet_length(detail::text), 0) + 512";

/// The planner's settings for filters that only the BRIN index serves. For values without an order, the planner
/// expects to find every page by such an index, and prefers to scan the table. The best plan for an action depends on
/// how frequent it is.
const BRIN: &str = "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan";

fn load_page(
    connection: &mut Connection,
    list: &ListQuery<AuditSort, AuditFilter>,
    limits: PageLimits,
) -> Result<Page<AuditEntry>, Error> {
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
    connection: &mut Connection,
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
                let column = if is_actor { "actor_id" } else { "subject_id" };
                format!("{column} IN ({ids})")
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
