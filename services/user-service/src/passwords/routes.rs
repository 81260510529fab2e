//! The HTTP side of passwords.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, post};
use audit_log::RequestMeta;
use auth::{AdminCaller, Caller};
use http_kit::{JsonBody, Problem};
use telemetry::RequestContext;
use utoipa::ToSchema;
use values::{EmailAddress, Secret};

use super::answers::{Entry, NewToken};
use super::change::{change, reset};
use super::recovery::{forgot, reset_forgotten};
use crate::accounts::Empty;
use crate::audit::Author;
use crate::context::Context;
use crate::documentation::{
    AdminProblems, BodyProblems, ChangePasswordProblems, CodeProblems, ForgotPasswordProblems,
    HashProblems, TokenProblems, UserProblems,
};
use crate::hashing::NewPassword;
use crate::sign_in::client_address;

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
struct ChangePasswordBody {
    #[schema(example = "correct horse")]
    old_password: String,
    /// At least 5 characters (the operator may want more), at most 72 bytes.
    #[schema(
        format = "password",
        example = "battery staple",
        min_length = 5,
        max_length = 72
    )]
    new_password: String,
}

/// Change the own password
///
/// Revokes all the user's tokens, the one in use included, and answers with a new one.
#[utoipa::path(
    tag = "users",
    request_body = ChangePasswordBody,
    responses(
        (status = 200, description = "The password was changed.", body = NewToken),
        TokenProblems, ChangePasswordProblems, HashProblems
    ),
    security(("bearer" = []))
)]
#[post("/user/change-password")]
pub(crate) async fn change_password(
    caller: Caller,
    context: Data<Context>,
    origin: RequestMeta,
    body: JsonBody,
) -> Result<Json<NewToken>, Problem> {
    let mut fields = body.0;
    let old = fields.required::<Secret>("oldPassword");
    let new = NewPassword::read(&mut fields, "newPassword", context.rules);
    let (old, new) = fields.finish_with(old.zip(new))?;
    let author = Author::new(&caller, origin);
    let token = change(&context, author, caller.id(), old, new).await?;
    Ok(Json(NewToken::new(&token)))
}

#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
struct ResetPasswordBody {
    /// The user's e-mail address.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    email: String,
    /// The new password: at least 5 characters (the operator may want more), at most 72 bytes.
    #[schema(
        format = "password",
        example = "battery staple",
        min_length = 5,
        max_length = 72
    )]
    password: String,
}

/// Reset a user's password
///
/// Revokes all the user's tokens and ends the waiting after failed sign-ins.
#[utoipa::path(
    tag = "users",
    request_body = ResetPasswordBody,
    responses(
        (status = 200, description = "The password was set.", body = Empty),
        AdminProblems, BodyProblems, UserProblems, HashProblems
    ),
    security(("bearer" = []))
)]
#[post("/user/reset-password")]
pub(crate) async fn reset_password(
    admin: AdminCaller,
    context: Data<Context>,
    origin: RequestMeta,
    body: JsonBody,
) -> Result<Json<Empty>, Problem> {
    let mut fields = body.0;
    let email = fields.required::<EmailAddress>("email");
    let password = NewPassword::read(&mut fields, "password", context.rules);
    let (email, password) = fields.finish_with(email.zip(password))?;
    reset(&context, Author::new(&admin, origin), email, password).await?;
    Ok(Json(Empty {}))
}

#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
struct ForgotPasswordBody {
    /// The user's e-mail address.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    email: String,
}

/// Forgot the password
///
/// Has a code sent by every channel that is configured. The answer is the same for an address that nobody
/// has, and then nothing is sent. A new request makes older codes invalid. Requests are counted by e-mail
/// address and by client address (`FORGOT_PASSWORD_PER_ACCOUNT`, `FORGOT_PASSWORD_PER_CLIENT`).
#[utoipa::path(
    tag = "users",
    request_body = ForgotPasswordBody,
    responses(
        (status = 200, description = "What was handed over, one entry for each channel.", body = Vec<Entry>),
        BodyProblems, ForgotPasswordProblems
    ),
    security(())
)]
#[post("/user/forgot-password")]
pub(crate) async fn forgot_password(
    context: Data<Context>,
    origin: RequestMeta,
    request: HttpRequest,
    body: JsonBody,
) -> Result<Json<Vec<Entry>>, Problem> {
    let mut fields = body.0;
    let email = fields.required::<EmailAddress>("email");
    let email = fields.finish_with(email)?;
    let counted_by = client_address(&request);
    let queued = forgot(&context, email.clone(), counted_by, origin).await?;
    let request_context = RequestContext::current_or_fresh();
    let entries = queued
        .iter()
        .map(|message| Entry::new(message, &email, &request_context));
    Ok(Json(entries.collect()))
}

#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
struct ResetForgottenPasswordBody {
    /// The code that was sent.
    code: String,
    /// The new password: at least 5 characters (the operator may want more), at most 72 bytes.
    #[schema(
        format = "password",
        example = "battery staple",
        min_length = 5,
        max_length = 72
    )]
    password: String,
}

/// Reset a forgotten password
///
/// By a code, which is valid once and for an hour (`FORGOT_PASSWORD_TTL`). Revokes all the user's tokens
/// and ends the waiting after failed sign-ins.
#[utoipa::path(
    tag = "users",
    request_body = ResetForgottenPasswordBody,
    responses(
        (status = 200, description = "The password was set.", body = Empty),
        CodeProblems, HashProblems
    ),
    security(())
)]
#[post("/user/forgot-password/reset")]
pub(crate) async fn reset_forgotten_password(
    context: Data<Context>,
    origin: RequestMeta,
    body: JsonBody,
) -> Result<Json<Empty>, Problem> {
    let mut fields = body.0;
    let code = fields.required::<Secret>("code");
    let password = NewPassword::read(&mut fields, "password", context.rules);
    let (code, password) = fields.finish_with(code.zip(password))?;
    reset_forgotten(&context, code, password, origin).await?;
    Ok(Json(Empty {}))
}
