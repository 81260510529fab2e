//! What other processes read: the keys (public) and the raised epochs (internal).

use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{JwkSet, RevocationFeed};
use http_kit::{Problem, Query};
use utoipa::ToSchema;

use super::feed;
use crate::context::Context;

/// A JSON Web Key set (RFC 7517): the keys that verify access tokens, the one in use first.
#[derive(ToSchema)]
#[schema(as = KeySet)]
#[expect(
    dead_code,
    reason = "it describes the answer, whose type belongs to another crate"
)]
struct KeySetBody {
    #[schema(example = json!([{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "…", "x": "…"}]))]
    keys: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// Get the keys that verify access tokens
///
/// Two keys can be published at once, so that they rotate without signing anyone out.
#[utoipa::path(
    operation_id = "keys",
    tag = "keys",
    responses((status = 200, description = "The keys.", body = KeySetBody)),
    security(())
)]
#[get("/.well-known/jwks.json")]
pub(crate) async fn keys(context: Data<Context>) -> Json<JwkSet> {
    Json(context.signer.published().clone())
}

/// What was raised since the cursor. Internal: the gateway does not route it, and the document does
/// not show it.
pub(crate) async fn revocations(
    context: Data<Context>,
    query: Query,
) -> Result<Json<RevocationFeed>, Problem> {
    let cursor = match query.first("cursor") {
        Some(_) => Some(query.number("cursor", 0..=i64::MAX, 0)?),
        None => None,
    };
    let feed = feed(&context.database, cursor, context.token_lifetime).await;
    Ok(Json(feed.map_err(service_http::database_problem)?))
}
