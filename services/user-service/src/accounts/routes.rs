use std::convert::identity;

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, get, post, put};
use audit_log::RequestMeta;
use auth::{AdminCaller, AdminProblems, Caller, TokenProblems};
use database::{Connection, DatabaseProblems, Lookups};
use http_kit::{BodyProblems, JsonBody, Problem, Query, QueryProblems, path_id};
use listing::{CountResponse, Sort};
use values::UserId;

use super::create::create;
use super::list_query::{UserConditions, UserListQuery, UserSort};
use super::requests::{CreateUserRequest, SignUpCaller, UpdateUserRequest};
use super::responses::{CreatedResponse, CreatedUser, CurrentUserResponse, SignInResponse};
use super::store::{self, User};
use super::update::{revoke_tokens, update};
use crate::audit::RequestActor;
use crate::context::Context;
use crate::error::{DeletionProblems, UserError, UserProblems};
use crate::hashing::HashProblems;

/// Finds accounts by their identifiers, without locking them.
type UserLookups = Lookups<UserId, User>;

/// Create a user
///
/// Open to anyone by default. If `API_USER_CREATE_SCOPE` is set, a token with one of its scopes is
/// required. The response signs the new user in. With an administrator's token the body may also carry
/// `scope`, `isActive`, `plan`, `vendor` and `metadata`, under the rules of `PUT /users/{userId}`; for other
/// callers these fields are ignored. With `"service": true` it is a service account: it has no password, no sign-in and no codes,
/// and acts only with API keys that administrators make for it; the response then has no `token`. While `EMAIL_VERIFICATION` is `required`, only an administrator can give a
/// `username` that differs from `email`, unless `SIGN_UP_USERNAMES` is `any`.
#[utoipa::path(
    request_body = CreateUserRequest,
    responses(
        (status = 200, description = "The user was created.", body = CreatedResponse),
        BodyProblems, SignUpProblems, HashProblems
    ),
    security((), ("bearer" = []))
)]
#[post("/user")]
pub(crate) async fn create_user(
    SignUpCaller(caller): SignUpCaller,
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<CreatedResponse>, Problem> {
    let request = CreateUserRequest::parse(body.0, &context, caller.as_ref())?;
    let (user, token) = create(&context, request, caller, meta).await?;
    Ok(Json(match token {
        Some(token) => CreatedResponse::SignedIn(SignInResponse::new(user, &token)),
        None => CreatedResponse::Created(CreatedUser { user: user.into() }),
    }))
}

/// Get user information
///
/// The current state of the token's user.
#[utoipa::path(
    responses((status = 200, description = "The user.", body = CurrentUserResponse), TokenProblems, DatabaseProblems)
)]
#[get("/user")]
pub(crate) async fn current_user(
    caller: Caller,
    lookups: Data<UserLookups>,
) -> Result<Json<CurrentUserResponse>, Problem> {
    let found = lookups.run(caller.id()).await?;
    Ok(Json(found.ok_or(UserError::CallerGone)?.into()))
}

/// Get a user by id
#[utoipa::path(
    responses(
        (status = 200, description = "The user.", body = User),
        AdminProblems, UserProblems, DatabaseProblems
    )
)]
#[get("/users/{userId}")]
pub(crate) async fn get_user(
    _admin: AdminCaller,
    lookups: Data<UserLookups>,
    id: Path<String>,
) -> Result<Json<User>, Problem> {
    let found = lookups.run(path_id(&id, "user")?).await?;
    Ok(Json(found.ok_or(UserError::NotFound("user"))?))
}

/// Get all users
///
/// A page of users. `sort` takes `created` (descending by default), `mtime`, `username`, `email`, `plan`,
/// `isActive` and `lastSignIn`; ties are broken by id, null comes last, text sorts
/// case-insensitively. `filter` takes `username`, `email`, `scope`, `plan`, `vendor` and `isActive`; `scope` and `vendor` match membership.
/// `pattern` is a substring of the username. With a pattern and more than 100,000 users, `offset` is
/// at most 1,000, unless `sort` is `username`.
#[utoipa::path(
    params(UserListQuery),
    responses(
        (status = 200, description = "The users of the page.", body = Vec<User>,
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
        AdminProblems, QueryProblems, DatabaseProblems
    )
)]
#[get("/users")]
pub(crate) async fn list_users(
    admin: AdminCaller,
    context: Data<Context>,
    query: Query,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = UserListQuery::parse(&query, Sort::descending(UserSort::Created))?;
    let paging = query.paging;
    let load = move |connection: &mut Connection, limits| store::list(connection, &query, limits);
    let lists = &context.lists;
    let page = lists.page(Some(admin.id()), paging, load, identity::<User>);
    let page = page.await?;
    Ok(page.respond(request.path(), request.query_string()))
}

/// Get the number of users
#[utoipa::path(
    params(UserConditions),
    responses(
        (status = 200, description = "The number of users that match all conditions.", body = CountResponse),
        AdminProblems, QueryProblems, DatabaseProblems
    )
)]
#[get("/users/count")]
pub(crate) async fn count_users(
    admin: AdminCaller,
    context: Data<Context>,
    query: Query,
) -> Result<Json<CountResponse>, Problem> {
    let conditions = UserConditions::parse(&query)?;
    let count = move |connection: &mut Connection| store::count(connection, &conditions);
    let count = context.lists.query(Some(admin.id()), count).await?;
    Ok(Json(CountResponse { count }))
}

/// Update a user
///
/// Changing the e-mail address, username, scope, password or `isActive` revokes the user's tokens; sending
/// the same value does not. A new password and deactivating end the user's API keys, too. Unknown fields are ignored, so a
/// whole user can be sent back.
#[utoipa::path(
    request_body = UpdateUserRequest,
    responses(
        (status = 200, description = "The updated user.", body = User),
        AdminProblems, BodyProblems, UserProblems, UpdateProblems, HashProblems
    )
)]
#[put("/users/{userId}")]
pub(crate) async fn update_user(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    id: Path<String>,
    body: JsonBody,
) -> Result<Json<User>, Problem> {
    let request = UpdateUserRequest::parse(body.0, context.rules)?;
    let id = path_id::<UserId>(&id, "user")?;
    let user = update(&context, id, request, RequestActor::new(&admin, meta)).await?;
    Ok(Json(user))
}

/// Revoke a user's tokens
///
/// Every access token of the user is refused within a second, browsers that stay signed in are signed out, and a person's API
/// keys end. The user can sign in again. The keys of a service account go on: end them one by one, or deactivate it.
#[utoipa::path(
    operation_id = "revokeTokens",
    responses(
        (status = 200, description = "The user.", body = User),
        AdminProblems, UserProblems, DatabaseProblems
    )
)]
#[post("/users/{userId}/revoke-tokens")]
pub(crate) async fn revoke_user_tokens(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    id: Path<String>,
) -> Result<Json<User>, Problem> {
    let id = path_id::<UserId>(&id, "user")?;
    let user = revoke_tokens(&context, id, RequestActor::new(&admin, meta)).await?;
    Ok(Json(user))
}

http_kit::problem_responses! {
    SignUpProblems: TokenProblems {
        auth::insufficient_scope("admin")
            => "API_USER_CREATE_SCOPE is set and the token has none of its scopes.",
        UserError::KeyNotAccepted => "An API key makes no administrators.",
        UserError::UsernameTaken,
        UserError::EmailTaken,
    }
    UpdateProblems: DeletionProblems {
        UserError::KeyNotAccepted => "An API key changes no passwords, usernames or addresses, and makes no administrators.",
        UserError::UsernameTaken,
        UserError::EmailTaken,
        UserError::LastAdmin => "The last active administrator cannot be demoted or deactivated.",
    }
}
