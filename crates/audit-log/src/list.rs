use std::convert::identity;

use actix_web::{HttpRequest, HttpResponse};
use chrono::{DateTime, Utc};
use database::{Connection, Error, transaction};
use diesel::connection::SimpleConnection as _;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use http_kit::{Problem, Query};
use listing::{ANY_TEXT, Bind, Binds, Filter, ListQuery, Lists, Page, PageLimits, Sort, Statement};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{FromText as _, Invalid, Timestamp, UserId};

use crate::retention::{audit_log, identities};

values::names! {
    pub enum AuditSort {
        At = "at",
        Action = "action",
    }

    pub enum AuditFilter {
        Action = "action",
        /// The identifier of the user who made the change. It finds the entries of a deleted user, too.
        Actor = "actor",
        /// The identifier of the user or task that was changed. It finds the entries of a deleted user, too.
        Subject = "subject",
        /// The `X-Request-Id` of the response.
        RequestId = "requestId",
        /// The earliest time, inclusive.
        After = "after",
        /// The latest time, exclusive.
        Before = "before",
    }
}

const TIME: &str = r"[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

impl Filter for AuditFilter {
    const PATTERN_REFUSAL: Option<&'static str> =
        Some("The audit log cannot be searched by a pattern. Use `filter`.");

    fn pattern(self) -> &'static str {
        match self {
            Self::Action | Self::RequestId => ANY_TEXT,
            Self::Actor | Self::Subject => "[0-9a-f]{24}",
            Self::After | Self::Before => TIME,
        }
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        match self {
            Self::Actor | Self::Subject => UserId::from_text(value).map(drop),
            Self::After | Self::Before => parse_time(value).map(drop).ok_or_else(|| {
                let message = "Must be a time in RFC 3339 format, such as 2026-01-31T09:30:00Z.";
                Invalid::new("invalid-date", message)
            }),
            Self::Action | Self::RequestId => Ok(()),
        }
    }
}

fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_rfc3339(text.trim()).ok()?;
    Some(parsed.to_utc())
}

/// The parameters of the list. The default order is newest first.
pub type AuditQuery = ListQuery<AuditSort, AuditFilter>;

fn parse(query: &Query) -> Result<AuditQuery, Problem> {
    AuditQuery::parse(query, Sort::descending(AuditSort::At))
}

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
    let query = parse(query)?;
    let paging = query.paging;
    let load = move |connection: &mut Connection, limits| load_page(connection, &query, limits);
    let page = lists.page(Some(caller), paging, load, identity::<AuditEntry>);
    let page = page.await?;
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
    list: &AuditQuery,
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
    list: &AuditQuery,
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

#[cfg(test)]
mod tests {
    use http_kit::Query;
    use listing::{Direction, Sort};

    use super::{AuditFilter, AuditSort, parse};

    #[test]
    fn the_default_order_is_newest_first() {
        let list = parse(&Query::parse("")).unwrap();
        assert_eq!(list.sort, Sort::descending(AuditSort::At));
        let list = parse(&Query::parse("sort=action:1")).unwrap();
        assert_eq!(list.sort.direction, Direction::Ascending);
    }

    #[test]
    fn a_pattern_is_reported_together_with_other_invalid_parameters() {
        let refused = parse(&Query::parse("limit=0&pattern=task")).unwrap_err();
        let errors = refused.body().errors.into_iter();
        let fields: Vec<_> = errors.map(|error| error.field).collect();
        assert_eq!(fields, ["limit", "pattern"]);
    }

    #[test]
    fn identifiers_and_times_are_validated() {
        let id = "65b8f0a2c3d4e5f601234567";
        let query = format!("filter=actor:{id},after:2026-01-31T09:30:00Z&filter=requestId:a:b");
        let query = parse(&Query::parse(&query)).unwrap();
        let filters = query.conditions.filters;
        let expected = [
            (AuditFilter::Actor, id),
            (AuditFilter::After, "2026-01-31T09:30:00Z"),
            (AuditFilter::RequestId, "a:b"),
        ];
        let expected = expected.map(|(field, value)| (field, value.to_owned()));
        assert_eq!(filters, expected);
        for wrong in [
            "filter=actor:ada",
            "filter=subject:1",
            "filter=after:yesterday",
            "filter=before:2026-02-31T00:00:00Z",
            "filter=proof:token",
            "pattern=task",
            "sort=actor:1",
        ] {
            assert!(parse(&Query::parse(wrong)).is_err(), "{wrong}");
        }
    }
}
