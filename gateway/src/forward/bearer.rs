//! What a service gets as `Authorization`: the caller's own header, or the token that the caller's API key was exchanged for. No
//! service sees a key.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{FromRequest as _, HttpRequest, ResponseError as _};
use auth::{ApiKey, Caller, MaybeCaller, key_route, presented_key};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response};
use http_kit::Problem;

use super::asking::Asking;
use crate::keys::{KeyToken, record};
use crate::routes::{Access, Route};

pub(super) enum Bearer {
    /// The caller's header, whatever it is.
    AsGiven,
    /// None: the caller's is a key, which the route does not take.
    Removed,
    /// The token of a key.
    OfKey(ApiKey, Arc<KeyToken>),
}

impl Bearer {
    /// Checks the token or the key of a request as its route requires.
    ///
    /// # Errors
    /// `401` with the reason, `403` for a key that may not make the request, `429` after too many texts that are none, and
    /// `503` while no keys are known.
    pub(super) async fn check(
        route: &Route,
        request: &HttpRequest,
        asking: &Asking,
    ) -> Result<Self, Problem> {
        let takes_keys = || key_route(&route.method, route.path).is_some();
        let presented = match presented_key(request) {
            Err(problem) if problem.code() == INVALID_KEY => {
                if takes_keys() {
                    record("refused");
                    asking.state.keys.count_guess(asking);
                    return Err(problem);
                }
                return Ok(Self::Removed);
            }
            // What is wrong with the header is said below, if it matters.
            presented => presented.unwrap_or_default(),
        };
        match presented {
            Some(key) if takes_keys() => Self::exchanged(key, request, asking).await,
            Some(_) => Ok(Self::Removed),
            None => {
                check_token(route.access, request).await?;
                Ok(Self::AsGiven)
            }
        }
    }

    async fn exchanged(
        key: ApiKey,
        request: &HttpRequest,
        asking: &Asking,
    ) -> Result<Self, Problem> {
        let token = asking.state.keys.token(&key, asking).await?;
        match Caller::of_token(request, token.expose()).await {
            Err(problem) if problem.status_code() == StatusCode::UNAUTHORIZED => {
                Self::renewed(key, &token, request, asking).await
            }
            checked => checked.map(|_| Self::OfKey(key, token)),
        }
    }

    /// Exchanges a key once more whose token was refused: the password of its user may be new.
    async fn renewed(
        key: ApiKey,
        refused: &Arc<KeyToken>,
        request: &HttpRequest,
        asking: &Asking,
    ) -> Result<Self, Problem> {
        let token = asking.state.keys.renewed(&key, refused, asking).await?;
        match Caller::of_token(request, token.expose()).await {
            Err(problem) if problem.status_code() == StatusCode::UNAUTHORIZED => {
                Err(auth::invalid_key())
            }
            checked => checked.map(|_| Self::OfKey(key, token)),
        }
    }

    /// The next token of the key, if a service has refused this one: it may know sooner that it was revoked. The service has
    /// then done nothing else.
    ///
    /// # Errors
    /// There is no next one: `401` if the key has ended, too, and `503` while it cannot be checked.
    pub(super) async fn after<B>(
        &self,
        response: &Result<Response<B>, Problem>,
        request: &HttpRequest,
        asking: &Asking,
    ) -> Option<Result<Self, Problem>> {
        let Self::OfKey(key, token) = self else {
            return None;
        };
        if !response.as_ref().is_ok_and(is_refused) {
            return None;
        }
        Some(Self::renewed(key.clone(), token, request, asking).await)
    }

    /// Sets the header of a request to a service.
    pub(super) fn apply(&self, headers: &mut HeaderMap) {
        let token = match self {
            Self::AsGiven => return,
            Self::Removed => None,
            Self::OfKey(_, token) => {
                HeaderValue::try_from(format!("Bearer {}", token.expose())).ok()
            }
        };
        headers.remove(AUTHORIZATION);
        if let Some(mut token) = token {
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
    }
}

const INVALID_KEY: &str = "invalid-key";

/// Whether a service refused the token (RFC 6750 section 3.1).
fn is_refused<B>(response: &Response<B>) -> bool {
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge.and_then(|challenge| challenge.to_str().ok());
    response.status() == http::StatusCode::UNAUTHORIZED
        && challenge.is_some_and(|challenge| challenge.contains(r#"error="invalid_token""#))
}

/// Checks the token of a request as its route requires.
///
/// # Errors
/// `401` with the reason, or `503 not-ready` while no keys are known.
async fn check_token(access: Access, request: &HttpRequest) -> Result<(), Problem> {
    match access {
        Access::Public | Access::Cookie => Ok(()),
        Access::Token => Caller::extract(request).await.map(drop),
        Access::TokenOrSecret => MaybeCaller::extract(request).await.map(drop),
    }
}
