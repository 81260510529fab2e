//! What a service gets as `Authorization`: the caller's own header, or the token that the caller's API key was exchanged for. No
//! service sees a key.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{FromRequest as _, ResponseError as _};
use auth::{ApiKey, Caller, MaybeCaller, presented_key};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response};
use http_kit::Problem;

use super::Forwarding;
use crate::keys::KeyToken;
use crate::routes::Access;

pub(super) enum Bearer {
    /// The caller's header, whatever it is.
    AsGiven,
    /// None: the caller's is a key, which the route does not take.
    Removed,
    OfKey(ApiKey, Arc<KeyToken>),
}

impl Forwarding<'_> {
    /// Checks the token or the key of the request as its route requires: `401` with the reason, `403` for a key that may not make
    /// the request, `429` after too many texts that are none, and `503` while no keys are known.
    pub(super) async fn bearer(self) -> Result<Bearer, Problem> {
        let takes_keys = self.route.takes_token();
        match presented_key(self.request) {
            Ok(Some(key)) if takes_keys => return self.exchanged(key, None).await,
            Err(problem) if takes_keys && problem.code() == INVALID_KEY => {
                let header = self.request.headers().get(AUTHORIZATION.as_str());
                let text = header.and_then(|header| header.to_str().ok());
                self.asking.refuse_text(text.unwrap_or_default());
                return Err(problem);
            }
            Ok(Some(_)) => return Ok(Bearer::Removed),
            Err(problem) if problem.code() == INVALID_KEY => return Ok(Bearer::Removed),
            // What is wrong with the header is said below, if it matters.
            Ok(None) | Err(_) => {}
        }
        match self.route.access {
            Access::Public | Access::Cookie => {}
            Access::Token => drop(Caller::extract(self.request).await?),
            Access::TokenOrSecret => drop(MaybeCaller::extract(self.request).await?),
        }
        Ok(Bearer::AsGiven)
    }

    /// Exchanges a key; once more if its token is refused, or was refused before: the password of its user may be new.
    async fn exchanged(
        self,
        key: ApiKey,
        mut refused: Option<Arc<KeyToken>>,
    ) -> Result<Bearer, Problem> {
        let keys = &self.asking.state.keys;
        loop {
            if let Some(refused) = &refused {
                keys.entry(key.fingerprint()).forget(refused);
            }
            let token = self.asking.token(&key).await?;
            match Caller::of_token(self.request, token.expose()).await {
                Err(problem) if problem.status_code() == StatusCode::UNAUTHORIZED => {
                    if refused.replace(token).is_some() {
                        return Err(auth::invalid_key());
                    }
                }
                checked => return checked.map(|_| Bearer::OfKey(key, token)),
            }
        }
    }

    /// The next token of the key, if a service has refused this one: it may know sooner that it was revoked. The service has
    /// then done nothing else.
    pub(super) async fn bearer_after<B>(
        self,
        bearer: &Bearer,
        response: &Result<Response<B>, Problem>,
    ) -> Option<Result<Bearer, Problem>> {
        match bearer {
            Bearer::OfKey(key, token) if response.as_ref().is_ok_and(is_refused) => {
                let refused = Some(Arc::clone(token));
                Some(self.exchanged(key.clone(), refused).await)
            }
            _ => None,
        }
    }
}

impl Bearer {
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
