use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest, ResponseError as _};
use auth::{AdminCaller, Caller};
use http_kit::Problem;

use crate::context::Context;

/// The caller of sign-up. If `API_USER_CREATE_SCOPE` is set, the caller must hold one of its scopes. Otherwise only
/// an administrator's token counts, and every other `Authorization` header is ignored.
pub(crate) struct SignUpCaller(pub(crate) Option<Caller>);

impl FromRequest for SignUpCaller {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let context = request.app_data::<Data<Context>>();
        let Some(scopes) = context.and_then(|context| context.sign_up.scopes.clone()) else {
            let admin = AdminCaller::from_request(request, payload);
            return Box::pin(async move { ignore_others(admin.await).map(Self) });
        };
        let caller = Caller::from_request(request, payload);
        Box::pin(async move {
            let caller = caller.await?;
            if scopes.iter().any(|scope| caller.has_scope(scope)) {
                Ok(Self(Some(caller)))
            } else {
                Err(auth::insufficient_scope(&scopes.join(" ")))
            }
        })
    }
}

/// A token that was not checked may be an administrator's, so its request is not treated as anonymous.
fn ignore_others(admin: Result<AdminCaller, Problem>) -> Result<Option<Caller>, Problem> {
    match admin {
        Ok(admin) => Ok(Some(admin.0)),
        Err(problem) if [401, 403].contains(&problem.status_code().as_u16()) => Ok(None),
        Err(problem) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;

    use super::*;

    #[test]
    fn only_a_token_that_was_checked_is_ignored() {
        for (status, is_ignored) in [
            (StatusCode::UNAUTHORIZED, true),
            (StatusCode::FORBIDDEN, true),
            (StatusCode::SERVICE_UNAVAILABLE, false),
        ] {
            let caller = ignore_others(Err(Problem::new(status, "code", "Detail.")));
            assert_eq!(caller.is_ok_and(|caller| caller.is_none()), is_ignored);
        }
    }
}
