use actix_web::http::header::AUTHORIZATION;
use actix_web::web::Data;
use actix_web::{FromRequest as _, HttpRequest};
use auth::{Caller, MaybeCaller, RemoteAuthority};
use web::Problem;

use crate::table::Access;

/// Checks the token of a request as far as its route asks for one.
///
/// # Errors
/// `401` with the reason, or `503 not-ready` while no keys are known to check a token with.
pub(super) async fn check(access: Access, request: &HttpRequest) -> Result<(), Problem> {
    match access {
        Access::Public => Ok(()),
        Access::Token => {
            check_readiness(request)?;
            Caller::extract(request).await.map(drop)
        }
        Access::TokenOrSecret => {
            check_readiness(request)?;
            MaybeCaller::extract(request).await.map(drop)
        }
    }
}

/// Without keys every token would look like a bad one, and its owner would sign in again for nothing.
fn check_readiness(request: &HttpRequest) -> Result<(), Problem> {
    let ready = request
        .app_data::<Data<RemoteAuthority>>()
        .is_some_and(|authority| authority.is_ready());
    if ready || !request.headers().contains_key(AUTHORIZATION) {
        return Ok(());
    }
    let detail = "Tokens cannot be checked yet. Try again soon.";
    Err(Problem::unavailable("not-ready", detail))
}
