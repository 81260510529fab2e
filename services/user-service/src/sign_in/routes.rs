use actix_web::http::StatusCode;
use actix_web::post;
use actix_web::web::{Data, Json};
use audit_log::RequestMeta;
use http_kit::{BodyProblems, JsonBody, Problem};

use super::authenticate::authenticate;
use super::requests::SignInRequest;
use crate::accounts::{SignInResponse, sign_token};
use crate::context::Context;
use crate::error::{BackOffProblems, UserError};
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
    let subject = authenticate(&context, request, meta).await?;
    let token = sign_token(&context, &subject);
    Ok(Json(SignInResponse::new(subject.user, &token)))
}

http_kit::problem_responses! {
    pub(crate) SignInProblems {
        UserError::WrongCredentials(StatusCode::UNAUTHORIZED)
            => "The username or the password is wrong (403 if SIGN_IN_FAILURE_STATUS says so).",
        UserError::AccountInactive => "The password is correct, but the account is inactive.",
    }
}
