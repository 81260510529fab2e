//! The endpoints that other processes read: the keys (public) and the raised epochs (internal).

use actix_web::get;
use actix_web::web::{Data, Json};
use auth::RevocationFeed;
use http_kit::{Problem, Query};
use service_http::database_problem;

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

/// The epochs raised since the cursor. Internal: the gateway does not route it and the OpenAPI document
/// does not contain it.
#[get("/internal/revocations")]
pub(crate) async fn list_revocations(
    context: Data<Context>,
    query: Query,
) -> Result<Json<RevocationFeed>, Problem> {
    let number = |_| query.number("cursor", 0..=i64::MAX, 0);
    let cursor = query.first("cursor").map(number).transpose()?;
    let feed = read_feed(&context.database, cursor, context.token_lifetime).await;
    Ok(Json(feed.map_err(database_problem)?))
}
