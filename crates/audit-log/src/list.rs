use actix_web::{HttpRequest, HttpResponse};
use database::{Connection, Database};
use http_kit::{Problem, Query};
use listing::RowBudget;
use service_http::database_problem;

use crate::query::AuditQuery;
use crate::responses::AuditEntry;
use crate::store;

/// Handles a request for the list: returns one page, and the next one in `Link`.
///
/// # Errors
/// `400 validation-failed` with one entry for each invalid parameter, `503 overloaded` when too many rows are
/// in memory, and the problems of the database.
pub async fn list(
    database: &Database,
    budget: &RowBudget,
    query: &Query,
    request: &HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuditQuery(query) = AuditQuery::parse(query)?;
    let paging = query.paging;
    let _permit = budget.acquire_rows(paging).await?;
    let load = move |connection: &mut Connection| {
        Ok::<_, database::Error>(store::load_page(connection, &query)?)
    };
    let rows = database.run(load).await.map_err(database_problem)?;
    let page = paging.page(rows);
    Ok(page.map(AuditEntry::from).respond(request))
}
