//! The endpoints that other processes read: the keys (public) and the raised epochs (internal).

use std::time::Duration;

use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{FeedReader, Jwk, RevocationFeed};
use http_kit::{Problem, Query};
use serde::Serialize;
use utoipa::ToSchema;

use super::cursor::FeedCursor;
use super::feed::{Watching, read_feed, wait_for_epochs};
use crate::context::Context;

/// A JSON Web Key set (RFC 7517): the keys that verify access tokens, the current one first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeySet)]
pub(crate) struct KeySetResponse {
    #[schema(
        value_type = Vec<Object>,
        example = json!([{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "…", "x": "…"}])
    )]
    keys: Vec<Jwk>,
}

/// Get the keys that verify access tokens
///
/// Two keys can be published at once, so that they can be rotated without signing users out.
#[utoipa::path(
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
///
/// With `wait`, at most [`FeedReader::MAX_WAIT`] in milliseconds, the response to a cursor that has no epochs comes
/// when it has some, or after that time.
#[get("/internal/revocations")]
pub(crate) async fn list_revocations(
    context: Data<Context>,
    watching: Data<Watching>,
    query: Query,
) -> Result<Json<RevocationFeed>, Problem> {
    let cursor = query.parsed("cursor")?.unwrap_or(FeedCursor::ALL);
    let longest = i64::try_from(FeedReader::MAX_WAIT.as_millis()).unwrap_or(i64::MAX);
    let wait = query.number("wait", 0..=longest, 0)?;
    let wait = Duration::from_millis(wait.try_into().unwrap_or_default());
    if let Some(feed) = wait_for_epochs(Watching::clone(&watching), cursor, wait).await {
        return Ok(Json(feed));
    }
    let page = i64::from(FeedReader::PAGE);
    let limit = query.number("limit", 1..=page, page)?;
    let limit = limit.try_into().unwrap_or(FeedReader::PAGE);
    let feed = read_feed(&context.database, cursor, limit).await?;
    Ok(Json(feed))
}
