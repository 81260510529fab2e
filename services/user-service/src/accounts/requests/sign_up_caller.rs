use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use auth::Caller;
use http_kit::Problem;

use crate::context::Context;

/// The caller of sign-up, who must hold one of the scopes of `API_USER_CREATE_SCOPE`. `None` when that
/// setting is absent: open sign-up ignores tokens.
pub(crate) struct SignUpCaller(pub(crate) Option<Caller>);

impl FromRequest for SignUpCaller {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let context = request.app_data::<Data<Context>>();
        let scopes = context.and_then(|context| context.sign_up.scopes.clone());
        let caller = scopes
            .is_some()
            .then(|| Caller::from_request(request, payload));
        Box::pin(async move {
            let (Some(scopes), Some(caller)) = (scopes, caller) else {
                return Ok(Self(None));
            };
            let caller = caller.await?;
            if scopes.iter().any(|scope| caller.has_scope(scope)) {
                Ok(Self(Some(caller)))
            } else {
                Err(auth::insufficient_scope(&scopes.join(" ")))
            }
        })
    }
}
