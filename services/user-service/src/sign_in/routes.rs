//! The HTTP side of sign-in.

use actix_web::post;
use actix_web::web::{Data, Json};
use audit_log::RequestMeta;
use http_kit::{BodyProblems, JsonBody, Problem};

use super::authenticate::authenticate;
use super::error::SignInProblems;
use super::requests::SignInRequest;
use crate::accounts::{SignInResponse, sign_token};
use crate::back_off::BackOffProblems;
use crate::context::Context;
use crate::hashing::HashProblems;

/// Sign in
///
/// Takes a username or an e-mail address, in any case. An unknown user and a wrong password have the same
/// response. After the 5th consecutive failure from one client address, and after the 50th from anywhere,
/// each further attempt must wait, even with the correct password: one second, doubling up to five minutes.
/// Addresses from which the user signed in before are exempt from the count of failures from anywhere.
#[utoipa::path(
    request_body = SignInRequest,
    responses(
        (status = 200, description = "Signed in.", body = SignInResponse),
        BodyProblems, SignInProblems, BackOffProblems, HashProblems
    ),
    security(())
)]
#[post("/user/auth")]
pub(crate) async fn sign_in(
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<SignInResponse>, Problem> {
    let request = SignInRequest::parse(body.0)?;
    let subject = authenticate(&context, request, meta).await;
    let signed = subject.and_then(|subject| {
        let token = sign_token(&context, &subject)?;
        Ok(SignInResponse::new(subject.user, &token))
    });
    let response = signed.map_err(|error| error.into_problem(context.sign_in_failure_status))?;
    Ok(Json(response))
}
