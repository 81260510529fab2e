use actix_web::{FromRequest as _, HttpRequest};
use auth::{Caller, MaybeCaller};
use http_kit::Problem;

use crate::table::Access;

/// Checks the token of a request as far as its route asks for one.
///
/// # Errors
/// `401` with the reason, or `503 not-ready` while no keys are known to check a token with.
pub(super) async fn check(access: Access, request: &HttpRequest) -> Result<(), Problem> {
    match access {
        Access::Public => Ok(()),
        Access::Token => Caller::extract(request).await.map(drop),
        Access::TokenOrSecret => MaybeCaller::extract(request).await.map(drop),
    }
}
