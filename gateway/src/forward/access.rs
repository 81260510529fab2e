use actix_web::{FromRequest as _, HttpRequest};
use auth::{Caller, MaybeCaller};
use http_kit::Problem;

use crate::routes::Access;

/// Checks the token of a request as its route requires.
///
/// # Errors
/// `401` with the reason, or `503 not-ready` while no keys are known.
pub(super) async fn check(access: Access, request: &HttpRequest) -> Result<(), Problem> {
    match access {
        Access::Public | Access::Cookie => Ok(()),
        Access::Token => Caller::extract(request).await.map(drop),
        Access::TokenOrSecret => MaybeCaller::extract(request).await.map(drop),
    }
}
