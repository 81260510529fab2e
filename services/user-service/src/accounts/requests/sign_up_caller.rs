use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
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
            return Box::pin(async move { Ok(Self(admin.await.ok().map(|admin| admin.0))) });
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
