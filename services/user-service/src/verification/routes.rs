use std::time::Duration;

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, post};
use audit_log::RequestMeta;
use auth::{Caller, TokenProblems};
use database::DatabaseProblems;
use http_kit::{JsonBody, Problem};

use super::confirm::{confirm, resend};
use super::requests::VerifyEmailRequest;
use crate::accounts::EmptyResponse;
use crate::audit::RequestActor;
use crate::context::Context;
use crate::error::{BackOffProblems, CodeProblems, DeletionProblems, UserError};
use crate::hashing::HashProblems;

/// Confirm an e-mail address
///
/// Takes the code that was sent to it: after sign-up or a change of the address if `EMAIL_VERIFICATION` is `required`,
/// or on request. With the code comes what shows that the caller has the account, too: the account's token, its
/// `password`, or a `newPassword`, which is set and signs out all who use the account. So no one confirms an account
/// that another person made with the address. A wrong `password` counts like a failed sign-in. The token is read only
/// without a password. The user's next token says that the address is confirmed.
#[utoipa::path(
    request_body = VerifyEmailRequest,
    responses(
        (status = 200, description = "The address is confirmed.", body = EmptyResponse),
        ConfirmProblems
    ),
    security((), ("bearer" = []))
)]
#[post("/user/verify-email")]
pub(crate) async fn verify_email(
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
    http_request: HttpRequest,
) -> Result<Json<EmptyResponse>, Problem> {
    let request = VerifyEmailRequest::parse(body.0, context.rules, &http_request).await?;
    confirm(&context, request, meta).await?;
    Ok(Json(EmptyResponse {}))
}

/// Request another code to confirm your e-mail address
///
/// Sends a code to the user's address through every configured channel. Earlier codes stay valid. It also works while
/// `EMAIL_VERIFICATION` is `off`, so that users can confirm their addresses before it is required. Requests are limited
/// for each user and for each client address (`FORGOT_PASSWORD_PER_ACCOUNT`, `FORGOT_PASSWORD_PER_CLIENT`).
#[utoipa::path(
    operation_id = "resendVerificationCode",
    responses(
        (status = 200, description = "A code was queued for each channel.", body = EmptyResponse),
        TokenProblems, ResendProblems
    )
)]
#[post("/user/verify-email/resend")]
pub(crate) async fn resend_code(
    caller: Caller,
    context: Data<Context>,
    meta: RequestMeta,
) -> Result<Json<EmptyResponse>, Problem> {
    let actor = RequestActor::new(&caller, meta);
    resend(&context, caller.id(), actor).await?;
    Ok(Json(EmptyResponse {}))
}

http_kit::problem_responses! {
    ConfirmProblems: CodeProblems, TokenProblems, DeletionProblems, BackOffProblems, HashProblems {
        UserError::WrongPassword,
        UserError::OtherAccount => "The token is of another account than the code, which stays valid.",
    }
    ResendProblems: DatabaseProblems {
        UserError::EmailConfirmed,
        UserError::TooManyCodes(Duration::from_secs(60))
            => "Too many codes were requested for this e-mail address or by this client.",
        UserError::CannotSendCodes => "No channel is configured that could carry a code.",
    }
}
