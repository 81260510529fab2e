use std::convert;

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, delete, get, post};
use audit_log::RequestMeta;
use auth::{AdminCaller, AdminProblems, ApiKey, Caller, ExchangedKey, TokenProblems};
use database::{Connection, DatabaseProblems};
use http_kit::{BodyProblems, JsonBody, Problem, Query, QueryProblems, combine_errors, path_id};
use listing::{PageLimits, Paging};
use serde::Serialize;
use utoipa::ToSchema;
use values::{Secret, UserId};

use super::lifecycle::{confirm, confirm_all, create, end, exchange};
use super::requests::{CreateKeyRequest, confirmed};
use super::store::{self, Key, UserKey};
use crate::accounts::{self, EmptyResponse};
use crate::audit::RequestActor;
use crate::context::Context;
use crate::error::UserError;

/// A key that was just made, with its text, which is told only now.
#[derive(Serialize, ToSchema)]
#[schema(as = NewKey)]
struct NewKeyResponse {
    #[serde(flatten)]
    shown: Key,
    /// The key itself. Send it as `Authorization: Bearer csk_…`.
    #[schema(example = "csk_65b8f0a2c3d4e5f601234567…")]
    key: String,
}

/// How many keys were confirmed.
#[derive(Debug, Serialize, ToSchema)]
struct ConfirmedResponse {
    #[schema(example = 3)]
    confirmed: usize,
}

/// Get your API keys
///
/// The newest first, without their texts.
#[utoipa::path(
    tag = "api-keys",
    responses((status = 200, description = "The keys.", body = Vec<Key>), TokenProblems, DatabaseProblems)
)]
#[get("/user/keys")]
pub(crate) async fn list_keys(
    caller: Caller,
    context: Data<Context>,
) -> Result<Json<Vec<Key>>, Problem> {
    let user = caller.id();
    let load = move |connection: &mut Connection| store::of_user(connection, user);
    Ok(Json(context.database.run(load).await?))
}

/// Make an API key
///
/// A key with which programs act for you: send it in place of a token. The response tells its text, which no later one does. A
/// user has at most `KEYS_PER_USER` keys. A change of your password does not end your keys, but setting a new one by a code does.
#[utoipa::path(
    tag = "api-keys",
    request_body = CreateKeyRequest,
    responses((status = 200, description = "The key.", body = NewKeyResponse), CreateKeyProblems)
)]
#[post("/user/keys")]
pub(crate) async fn create_key(
    caller: Caller,
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<NewKeyResponse>, Problem> {
    let request = CreateKeyRequest::parse(body.0)?;
    let (shown, key) = create(&context, caller.id(), &caller, request, meta).await?;
    Ok(Json(NewKeyResponse { shown, key }))
}

/// End an API key
///
/// Ends a key of yours. It is refused within a second.
#[utoipa::path(
    tag = "api-keys",
    responses((status = 200, description = "The key has ended.", body = EmptyResponse), OwnKeyProblems)
)]
#[delete("/user/keys/{keyId}")]
pub(crate) async fn end_key(
    caller: Caller,
    context: Data<Context>,
    meta: RequestMeta,
    id: Path<String>,
) -> Result<Json<EmptyResponse>, Problem> {
    let id = path_id(&id, "key")?;
    end(&context, caller.id(), id, RequestActor::new(&caller, meta)).await?;
    Ok(Json(EmptyResponse {}))
}

/// Get the API keys of all users
///
/// The newest first. With `confirmed=false` only those that are off since the database was restored.
#[utoipa::path(
    tag = "api-keys",
    params(
        Paging,
        ("confirmed" = Option<bool>, Query, description = "Only keys that are confirmed, or only those that are not."),
    ),
    responses(
        (status = 200, description = "The keys of the page.", body = Vec<UserKey>,
            headers(("Link" = String, description = "`<…>; rel=\"next\"` when there are more."))),
        AdminProblems, QueryProblems, DatabaseProblems
    )
)]
#[get("/users/keys")]
pub(crate) async fn list_all_keys(
    admin: AdminCaller,
    context: Data<Context>,
    query: Query,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (paging, confirmed) = combine_errors(Paging::parse(&query), confirmed(&query))?;
    let load = move |connection: &mut Connection, limits: PageLimits| {
        store::of_all(connection, limits.paging, confirmed)
    };
    let lists = &context.lists;
    let page = lists.page(Some(admin.id()), paging, load, convert::identity);
    let page = page.await?;
    Ok(page.respond(request.path(), request.query_string()))
}

/// Confirm all API keys
///
/// Turns the keys of all users on again that are off since the database was restored. A key that was ended after the backup is
/// among them: look at `GET /users/keys?confirmed=false` first.
#[utoipa::path(
    tag = "api-keys",
    responses(
        (status = 200, description = "The keys are on.", body = ConfirmedResponse),
        AdminProblems, DatabaseProblems
    )
)]
#[post("/users/keys/confirm")]
pub(crate) async fn confirm_all_keys(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
) -> Result<Json<ConfirmedResponse>, Problem> {
    let confirmed = confirm_all(&context, RequestActor::new(&admin, meta)).await?;
    Ok(Json(ConfirmedResponse { confirmed }))
}

/// Get a user's API keys
///
/// The newest first, without their texts.
#[utoipa::path(
    tag = "api-keys",
    responses((status = 200, description = "The keys.", body = Vec<Key>), UserKeyProblems)
)]
#[get("/users/{userId}/keys")]
pub(crate) async fn list_user_keys(
    _admin: AdminCaller,
    context: Data<Context>,
    id: Path<String>,
) -> Result<Json<Vec<Key>>, Problem> {
    let user = path_id::<UserId>(&id, "user")?;
    let load = move |connection: &mut Connection| {
        let exists = accounts::store::find(connection, user)?.is_some();
        exists.then(|| store::of_user(connection, user)).transpose()
    };
    let keys = context.database.run(load).await?;
    Ok(Json(keys.ok_or(UserError::NotFound("user"))?))
}

/// Make an API key for a user
///
/// For a service account, or for a person, who is mailed and whose key decides nothing: `tasks:decide` is refused.
#[utoipa::path(
    tag = "api-keys",
    request_body = CreateKeyRequest,
    responses((status = 200, description = "The key.", body = NewKeyResponse), CreateUserKeyProblems)
)]
#[post("/users/{userId}/keys")]
pub(crate) async fn create_user_key(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    id: Path<String>,
    body: JsonBody,
) -> Result<Json<NewKeyResponse>, Problem> {
    let request = CreateKeyRequest::parse(body.0)?;
    let id = path_id::<UserId>(&id, "user")?;
    let (shown, key) = create(&context, id, &admin, request, meta).await?;
    Ok(Json(NewKeyResponse { shown, key }))
}

/// End a user's API key
///
/// It is refused within a second.
#[utoipa::path(
    tag = "api-keys",
    responses((status = 200, description = "The key has ended.", body = EmptyResponse), UserKeyProblems)
)]
#[delete("/users/{userId}/keys/{keyId}")]
pub(crate) async fn end_user_key(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    path: Path<(String, String)>,
) -> Result<Json<EmptyResponse>, Problem> {
    let (user, id) = (path_id(&path.0, "user")?, path_id(&path.1, "key")?);
    end(&context, user, id, RequestActor::new(&admin, meta)).await?;
    Ok(Json(EmptyResponse {}))
}

/// Confirm a user's API key
///
/// Turns a key on again that is off since the database was restored.
#[utoipa::path(
    tag = "api-keys",
    responses((status = 200, description = "The key is on.", body = EmptyResponse), UserKeyProblems)
)]
#[post("/users/{userId}/keys/{keyId}/confirm")]
pub(crate) async fn confirm_user_key(
    admin: AdminCaller,
    context: Data<Context>,
    meta: RequestMeta,
    path: Path<(String, String)>,
) -> Result<Json<EmptyResponse>, Problem> {
    let (user, id) = (path_id(&path.0, "user")?, path_id(&path.1, "key")?);
    confirm(&context, user, id, RequestActor::new(&admin, meta)).await?;
    Ok(Json(EmptyResponse {}))
}

/// Exchanges a key for an access token. Internal: the gateway does not route it and the `OpenAPI` document does not contain it.
/// The key itself is the caller's proof.
#[post("/internal/keys/exchange")]
pub(crate) async fn exchange_key(
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<Json<ExchangedKey>, Problem> {
    let mut fields = body.0;
    let key = fields.required::<Secret>("key");
    let key = fields.finish_with(key)?;
    let key = ApiKey::parse(key.expose()).ok_or(UserError::InvalidKey)?;
    Ok(Json(exchange(&context, key, meta).await?))
}

http_kit::problem_responses! {
    OwnKeyProblems: TokenProblems, DatabaseProblems {
        UserError::NotFound("key"),
    }
    CreateKeyProblems: TokenProblems, DatabaseProblems, BodyProblems {
        UserError::TooManyKeys(50),
    }
    UserKeyProblems: AdminProblems, DatabaseProblems {
        UserError::NotFound("user"),
        UserError::NotFound("key"),
    }
    CreateUserKeyProblems: AdminProblems, DatabaseProblems, BodyProblems {
        UserError::NotFound("user"),
        UserError::KeysOfInactiveUser,
        UserError::TooManyKeys(50),
    }
}
