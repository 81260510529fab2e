use auth::Jwk;
use serde::Serialize;
use utoipa::ToSchema;

/// A JSON Web Key set (RFC 7517): the keys that verify access tokens, the current one first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeySet)]
pub(super) struct KeySetResponse {
    #[schema(
        value_type = Vec<Object>,
        example = json!([{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "…", "x": "…"}])
    )]
    pub(super) keys: Vec<Jwk>,
}
