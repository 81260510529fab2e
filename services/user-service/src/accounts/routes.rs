//! The HTTP side of accounts.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, get, post, put};
use audit_log::RequestMeta;
use auth::{AdminCaller, Caller};
use http_kit::{Fields, JsonBody, Problem, Query, path_id};
use listing::{Conditions, ListQuery, Sort};
use utoipa::ToSchema;
use values::{EmailAddress, Invalid, Secret, UserId};

use super::answers::{Count, CurrentUser, Empty, FullUser, SignedIn};
use super::bodies::{SignUpBody, UserUpdateBody};
use super::confirmation::verify_email as verify_email_by;
use super::creator::Creator;
use super::list::UserSort;
use super::parameters::{ConditionParameters, ListParameters};
use super::update::UserUpdate;
use super::{SignUp, count, current, get, list, sign_up, update};
use crate::audit::Author;
use crate::context::Context;
use crate::documentation::{
    AdminProblems, BodyProblems, CodeProblems, HashProblems, QueryProblems, SignUpProblems,
    TokenProblems, UpdateProblems, UserProblems,
};
use crate::hashing::NewPassword;

impl SignUp {
    fn read(mut fields: Fields, context: &Context) -> Result<Self, Problem> {
        let password = NewPassword::read(&mut fields, "password", context.rules);
        let username = fields.optional::<EmailAddress>("username");
        let email = fields.optional::<EmailAddress>("email");
        let metadata = fields.optional("metadata").unwrap_or_default();
        if !fields.has("username") && !fields.has("email") {
            let message = "Is required, unless `email` is given.";
            fields.reject("username", Invalid::new("required", message));
        }
        let names = username
            .clone()
            .or_else(|| email.clone())
            .zip(email.or(username));
        let (password, (username, email)) = fields.finish_with(password.zip(names))?;
        Ok(Self {
            username,
            email,
            password,
            metadata,
        })
    }
}

/// Create a user
///
/// Open to everybody by default; with `API_USER_CREATE_SCOPE` set, a token with one of its scopes is
/// needed. The new user is signed in by the answer.
#[utoipa::path(
    tag = "users",
    request_body = SignUpBody,
    responses(
        (status = 200, description = "The user was made.", body = SignedIn),
        BodyProblems, SignUpProblems, HashProblems
    ),
    security((), ("bearer" = []))
)]
#[post("/user")]
pub(crate) async fn create_user(
    Creator(creator): Creator,
    context: Data<Context>,
    origin: RequestMeta,
    body: JsonBody,
) -> Result<Json<SignedIn>, Problem> {
    let wanted = SignUp::read(body.0, &context)?;
    let (user, token) = sign_up(&context, wanted, creator, origin).await?;
    Ok(Json(SignedIn::new(user, &token)))
}

/// Get user information
///
/// The user of the token, as it is now.
#[utoipa::path(
    tag = "users",
    responses((status = 200, description = "The user.", body = CurrentUser), TokenProblems),
    security(("bearer" = []))
)]
#[get("/user")]
pub(crate) async fn current_user(
    caller: Caller,
    context: Data<Context>,
) -> Result<Json<CurrentUser>, Problem> {
    let user = current(&context, caller.id()).await?;
    Ok(Json(user.into()))
}

/// Get a user by id
#[utoipa::path(
    tag = "users",
    params(("userId" = String, Path, description = "The user's id: 24 lower-case hexadecimal digits.")),
    responses(
        (status = 200, description = "The user.", body = FullUser),
        AdminProblems, UserProblems
    ),
    security(("bearer" = []))
)]
#[get("/users/{userId}")]
pub(crate) async fn get_user(
    _admin: AdminCaller,
    context: Data<Context>,
    id: Path<String>,
) -> Result<Json<FullUser>, Problem> {
    let user = get(&context, path_id::<UserId>(&id, "user")?).await?;
    Ok(Json(user.into()))
}

/// Get all users
///
/// A page of users. `sort` takes `created` (descending if nothing is said), `mtime`, `username`, `email`, `plan`,
/// `isActive` and `lastSignIn`; ties are broken by id, null comes last, text sorts without regard to
/// case. `filter` takes `username`, `email`, `scope`, `plan`, `vendor` and `isActive`; `scope` and `vendor` match membership.
/// `pattern` is searched for in the username.
#[utoipa::path(
    tag = "users",
    params(ListParameters, ConditionParameters),
    responses(
        (status = 200, description = "The users of the page.", body = Vec<FullUser>,
            headers(("Link" = String, description = "`<…>; rel=\"next\"` when there are more."))),
        AdminProblems, QueryProblems
    ),
    security(("bearer" = []))
)]
#[get("/users")]
pub(crate) async fn list_users(
    _admin: AdminCaller,
    context: Data<Context>,
    query: Query,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let wanted = ListQuery::parse(&query, Sort::descending(UserSort::Created))?;
    let _room = wanted.paging.room().await?;
    let page = list(&context, wanted).await?;
    Ok(page.map(FullUser::from).respond(&request))
}

/// Get the number of users
#[utoipa::path(
    tag = "users",
    params(ConditionParameters),
    responses(
        (status = 200, description = "The number of users for whom all conditions hold.", body = Count),
        AdminProblems, QueryProblems
    ),
    security(("bearer" = []))
)]
#[get("/users/count")]
pub(crate) async fn count_users(
    _admin: AdminCaller,
    context: Data<Context>,
    query: Query,
) -> Result<Json<Count>, Problem> {
    let count = count(&context, Conditions::parse(&query)?).await?;
    Ok(Json(Count { count }))
}

impl UserUpdate {
    fn read(mut fields: Fields, context: &Context) -> Result<Self, Problem> {
        let update = Self {
            username: fields.optional("username"),
            email: fields.optional("email"),
            password: NewPassword::read_optional(&mut fields, "password", context.rules),
            is_active: fields.optional("isActive"),
            plan: fields.optional("plan"),
            scope: fields.optional("scope"),
            vendor: fields.nullable("vendor"),
            allowed_private_components: fields.optional("allowedPrivateComponents"),
            metadata: fields.optional("metadata"),
        };
        fields.finish()?;
        Ok(update)
    }
}

/// Update a user
///
/// Another e-mail address, username, scope, password or `isActive` revokes the user's tokens; the same
/// value again does not. Unknown fields are ignored, so a whole user can be sent back.
#[utoipa::path(
    tag = "users",
    params(("userId" = String, Path, description = "The user's id: 24 lower-case hexadecimal digits.")),
    request_body = UserUpdateBody,
    responses(
        (status = 200, description = "The user as it is now.", body = FullUser),
        AdminProblems, BodyProblems, UserProblems, UpdateProblems, HashProblems
    ),
    security(("bearer" = []))
)]
#[put("/users/{userId}")]
pub(crate) async fn update_user(
    admin: AdminCaller,
    context: Data<Context>,
    origin: RequestMeta,
    id: Path<String>,
    body: JsonBody,
) -> Result<Json<FullUser>, Problem> {
    let author = Author::new(&admin, origin);
    let wanted = UserUpdate::read(body.0, &context)?;
    let user = update(&context, path_id::<UserId>(&id, "user")?, wanted, author).await?;
    Ok(Json(user.into()))
}

/// The body of a confirmation.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
struct VerifyEmailBody {
    /// The code that was sent.
    code: String,
}

/// Confirm an e-mail address
///
/// By the code that was sent to it after sign-up or after a change of the address, where
/// `EMAIL_VERIFICATION` is `required`. The next token says that the address is confirmed.
#[utoipa::path(
    tag = "users",
    request_body = VerifyEmailBody,
    responses((status = 200, description = "The address is confirmed.", body = Empty), CodeProblems),
    security(())
)]
#[post("/user/verify-email")]
pub(crate) async fn verify_email(
    context: Data<Context>,
    origin: RequestMeta,
    body: JsonBody,
) -> Result<Json<Empty>, Problem> {
    let mut fields = body.0;
    let code = fields.required::<Secret>("code");
    let code = fields.finish_with(code)?;
    verify_email_by(&context, &code, origin).await?;
    Ok(Json(Empty {}))
}
