//! The endpoints that other processes read: the keys (public) and the raised epochs (internal).

use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{FeedReader, RevocationFeed};
use http_kit::{Problem, Query};
use service_http::database_problem;

use super::cursor::FeedCursor;
use super::feed::read_feed;
use super::responses::KeySetResponse;
use crate::context::Context;

/// Get the keys that verify access tokens
///
/// Two keys can be published at once, so that they can be rotated without signing users out.
#[utoipa::path(
    operation_id = "keys",
    tag = "keys",
    responses((status = 200, description = "The keys.", body = KeySetResponse)),
    security(())
)]
#[get("/.well-known/jwks.json")]
pub(crate) async fn keys(context: Data<Context>) -> Json<KeySetResponse> {
    let keys = context.signer.published().keys.clone();
    Json(KeySetResponse { keys })
}

/// One page of the epochs raised since the cursor; without a cursor, of all. Internal: the gateway does not route
/// it and the OpenAPI document does not contain it.
#[get("/internal/revocations")]
pub(crate) async fn list_revocations(
    context: Data<Context>,
    query: Query,
) -> Result<Json<RevocationFeed>, Problem> {
    let cursor = query.parsed("cursor")?.unwrap_or(FeedCursor::ALL);
    let limit = query.first("limit").is_some().then(|| {
        let page = i64::from(FeedReader::PAGE);
        query.number("limit", 1..=page, page)
    });
    let limit = limit.transpose()?.and_then(|limit| limit.try_into().ok());
    let feed = read_feed(&context.database, cursor, limit).await;
    Ok(Json(feed.map_err(database_problem)?))
}
