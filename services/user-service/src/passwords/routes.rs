use std::time::Duration;

use actix_web::post;
use actix_web::web::{Data, Json};
use audit_log::RequestMeta;
use auth::{AdminCaller, AdminProblems, Caller, TokenProblems};
use database::DatabaseProblems;
use http_kit::{BodyProblems, JsonBody, Problem};
use telemetry::RequestContext;

use super::change::{change, reset, reset_by_code};
use super::forgot::forgot;
use super::requests::{
    ChangePasswordRequest, ForgotPasswordRequest, ResetForgottenPasswordRequest,
    ResetPasswordRequest,
};
use super::responses::{ChangePasswordResponse, ForgotPasswordResponse};
use crate::accounts::EmptyResponse;
use crate::audit::RequestActor;
use crate::context::Context;
use crate::error::{BackOffProblems, CodeProblems, DeletionProblems, UserError, UserProblems};
use crate::hashing::HashProblems;
use crate::notifications::Kind;

/// Change your password
///
/// Revokes all tokens of the user, including the one in use, and returns a new one. API keys go on. A wrong `oldPassword` counts
/// like a failed sign-in: after several in a row, each further attempt must wait.
#[utoipa::path(
    request_body = ChangePasswordRequest,
    responses(
        (status = 200, description = "The password was changed.", body = ChangePasswordResponse),
        TokenProblems, ChangePasswordProblems, BackOffProblems, HashProblems
    )
)]
#[post("/user/change-password")]
pub(crate) async fn change_password(
    caller: Caller,
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<ChangePasswordResponse>, Problem> {
    let request = ChangePasswordRequest::parse(body.0, context.rules)?;
    let actor = RequestActor::new(&caller, meta);
    let token = change(&context, &caller, request, actor).await?;
    let token = token.expose().to_owned();
    Ok(Json(ChangePasswordResponse { token }))
}

/// Reset a user's password
///
/// Revokes all tokens of the user, ends the user's API keys, and ends the back-off after failed sign-ins.
#[utoipa::path(
    request_body = ResetPasswordRequest,
    responses(
        (status = 200, description = "The password was set.", body = EmptyResponse),
        AdminProblems, BodyProblems, UserProblems, DeletionProblems, HashProblems
    )
)]
#[post("/user/reset-password")]
pub(crate) async fn reset_password(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<EmptyResponse>, Problem> {
    let request = ResetPasswordRequest::parse(body.0, context.rules)?;
    let actor = RequestActor::new(&admin, meta);
    reset(&context, request, actor).await?;
    Ok(Json(EmptyResponse {}))
}

/// Request a code for a forgotten password
///
/// Sends a code through every configured channel. The response is the same for an unknown address, for which
/// nothing is sent. The codes of the last three requests are valid, until one of them is used or the password or
/// the address changes. Requests are limited for each e-mail address and for each client address
/// (`FORGOT_PASSWORD_PER_ACCOUNT`, `FORGOT_PASSWORD_PER_CLIENT`); for a client address from which the user signed in before,
/// the first is three times as high.
#[utoipa::path(
    request_body = ForgotPasswordRequest,
    responses(
        (status = 200, description = "What was queued, one entry for each channel.", body = Vec<ForgotPasswordResponse>),
        BodyProblems, ForgotPasswordProblems
    ),
    security(())
)]
#[post("/user/forgot-password")]
pub(crate) async fn forgot_password(
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<Vec<ForgotPasswordResponse>>, Problem> {
    let ForgotPasswordRequest { email } = ForgotPasswordRequest::parse(body.0)?;
    let queued = forgot(&context, email.clone(), meta).await?;
    let request_context = RequestContext::current_or_fresh();
    let entries = queued
        .iter()
        .map(|message| ForgotPasswordResponse::new(message, &email, &request_context));
    Ok(Json(entries.collect()))
}

/// Reset a forgotten password
///
/// Takes a code, which can be used once, within an hour (`FORGOT_PASSWORD_TTL`). Revokes all other codes and all tokens of the user,
/// ends the user's API keys, and ends the back-off after failed sign-ins.
#[utoipa::path(
    request_body = ResetForgottenPasswordRequest,
    responses(
        (status = 200, description = "The password was set.", body = EmptyResponse),
        CodeProblems, HashProblems
    ),
    security(())
)]
#[post("/user/forgot-password/reset")]
pub(crate) async fn reset_forgotten_password(
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<EmptyResponse>, Problem> {
    let request = ResetForgottenPasswordRequest::parse(body.0, context.rules)?;
    let code = (Kind::ForgotPassword, request.code.fingerprint());
    reset_by_code(&context, code, request.password, meta).await?;
    Ok(Json(EmptyResponse {}))
}

http_kit::problem_responses! {
    ChangePasswordProblems: BodyProblems {
        UserError::WrongOldPassword,
    }
    ForgotPasswordProblems: DatabaseProblems {
        UserError::TooManyResetCodes(Duration::from_secs(60))
            => "Too many codes were requested for this e-mail address or by this client.",
        UserError::CannotSendResetCodes => "No channel is configured that could carry a code.",
    }
}
