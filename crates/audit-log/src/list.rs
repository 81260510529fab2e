use actix_web::{HttpRequest, HttpResponse};
use database::{Connection, Database, database_problem};
use http_kit::{Problem, Query};
use listing::{Lists, PageLimits};
use values::UserId;

use crate::query::AuditQuery;
use crate::responses::AuditEntry;
use crate::store;

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
            store::load_page(connection, &query, PageLimits { paging, bytes })
        };
        async move { database.run(load).await.map_err(database_problem) }
    };
    let page = lists.page(Some(caller), load, AuditEntry::from).await?;
    Ok(page.respond(request.path(), request.query_string()))
}
