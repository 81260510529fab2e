use actix_web::{HttpRequest, HttpResponse};
use database::{Connection, Database, RowLimit};
use http_kit::{Problem, Query};
use service_http::{Lists, database_problem};
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
    let load = move |database: Database, max_bytes| {
        let (query, paging) = (query.clone(), query.paging);
        let limit = RowLimit::new(paging.limit, max_bytes);
        let load = move |connection: &mut Connection| {
            Ok::<_, database::Error>(store::load_page(connection, &query, limit)?)
        };
        async move {
            let rows = database.run(load).await.map_err(database_problem)?;
            Ok::<_, Problem>(paging.page(rows.rows, rows.found))
        }
    };
    let page = lists.page(Some(caller), load, AuditEntry::from).await?;
    Ok(page.respond(request.path(), request.query_string()))
}
