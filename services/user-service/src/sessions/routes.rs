use actix_web::http::header::SET_COOKIE;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpResponse, delete, get, post};
use audit_log::RequestMeta;
use auth::{Caller, TokenProblems};
use database::{Connection, DatabaseProblems};
use http_kit::{BodyProblems, JsonBody, Problem, path_id};

use super::lifecycle::{Granted, end_one, end_own, exchange, start};
use super::requests::{Browser, ExchangeRequest, cookie_removal, cross_site_request};
use super::store::{self, Session};
use crate::accounts::{EmptyResponse, SignInResponse};
use crate::audit::RequestActor;
use crate::context::Context;
use crate::error::{BackOffProblems, UserError};
use crate::hashing::HashProblems;
use crate::sign_in::SignInRequest;
use crate::sign_in::routes::SignInProblems;

/// Sign in and stay signed in
///
/// For the pages of this server; programs use `POST /user/auth`, whose rules apply. The response sets a cookie that only the
/// paths below `/session` get, and its token is valid for five minutes. A user has at most `SESSIONS_PER_USER` sessions:
/// another one ends the one that was not used for longest.
#[utoipa::path(
    tag = "sessions",
    request_body = SignInRequest,
    responses(
        (status = 200, description = "Signed in.", body = SignInResponse,
            headers(("Set-Cookie" = String, description = "The session."))),
        BodyProblems, SignInProblems, BrowserProblems, BackOffProblems, HashProblems
    ),
    security(())
)]
#[post("/session")]
pub(crate) async fn start_session(
    browser: Browser,
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<HttpResponse, Problem> {
    let request = SignInRequest::parse(body.0)?;
    let is_secure = browser.is_secure;
    let granted = start(&context, browser, request, meta).await?;
    Ok(response(granted, is_secure))
}

/// Exchange your session for a token
///
/// For the pages of this server. The token is valid for five minutes, and ends with the session. The response replaces the
/// cookie: a value that was replaced and comes back ends the session, unless `attempt` says that the response to its exchange
/// was lost.
#[utoipa::path(
    tag = "sessions",
    request_body = ExchangeRequest,
    responses(
        (status = 200, description = "A token.", body = SignInResponse,
            headers(("Set-Cookie" = String, description = "The next value of the session."))),
        ExchangeProblems
    ),
    security(())
)]
#[post("/session/token")]
pub(crate) async fn exchange_session(
    browser: Browser,
    context: Data<Context>,
    meta: RequestMeta,
    body: JsonBody,
) -> Result<HttpResponse, Problem> {
    let request = ExchangeRequest::parse(body.0)?;
    let is_secure = browser.is_secure;
    let granted = exchange(&context, browser, request.attempt, meta).await;
    let granted = granted.map_err(|error| exchange_problem(error, is_secure))?;
    Ok(response(granted, is_secure))
}

/// Sign out
///
/// For the pages of this server. Ends the session of the cookie, if there is one, and removes the cookie. Tokens of the session
/// are refused within a second.
#[utoipa::path(
    tag = "sessions",
    responses(
        (status = 200, description = "There is no session.", body = EmptyResponse,
            headers(("Set-Cookie" = String, description = "Removes the session."))),
        BrowserProblems
    ),
    security(())
)]
#[delete("/session")]
pub(crate) async fn end_session(
    browser: Browser,
    context: Data<Context>,
    meta: RequestMeta,
) -> Result<HttpResponse, Problem> {
    let is_secure = browser.is_secure;
    end_own(&context, browser, meta).await?;
    let mut response = HttpResponse::Ok();
    if let Some(removal) = cookie_removal(is_secure) {
        response.insert_header((SET_COOKIE, removal));
    }
    Ok(response.json(EmptyResponse {}))
}

/// Get the browsers in which you stay signed in
///
/// The one that was used last comes first. Tokens that were issued for a password alone are in no list.
#[utoipa::path(
    tag = "sessions",
    responses(
        (status = 200, description = "The sessions.", body = Vec<Session>),
        TokenProblems, DatabaseProblems
    )
)]
#[get("/user/sessions")]
pub(crate) async fn list_sessions(
    caller: Caller,
    context: Data<Context>,
) -> Result<Json<Vec<Session>>, Problem> {
    let (user, current) = (caller.id(), caller.credential());
    let load = move |connection: &mut Connection| store::of_user(connection, user, current);
    Ok(Json(context.database.run(load).await?))
}

/// Sign a browser out
///
/// Ends a session of yours. Its tokens are refused within a second.
#[utoipa::path(
    tag = "sessions",
    responses(
        (status = 200, description = "The session has ended.", body = EmptyResponse),
        UserSessionProblems
    )
)]
#[delete("/user/sessions/{sessionId}")]
pub(crate) async fn end_user_session(
    caller: Caller,
    context: Data<Context>,
    meta: RequestMeta,
    id: Path<String>,
) -> Result<Json<EmptyResponse>, Problem> {
    let id = path_id(&id, "session")?;
    let actor = RequestActor::new(&caller, meta);
    if end_one(&context, caller.id(), id, actor).await? {
        Ok(Json(EmptyResponse {}))
    } else {
        Err(Problem::not_found("session"))
    }
}

fn response(granted: Granted, is_secure: bool) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    if let Some(cookie) = granted.cookie.header(is_secure, granted.lifetime) {
        response.insert_header((SET_COOKIE, cookie));
    }
    response.json(SignInResponse::new(granted.user, &granted.token))
}

/// A session that has ended also takes its cookie with it.
fn exchange_problem(error: UserError, is_secure: bool) -> Problem {
    let has_ended = matches!(error, UserError::SessionEnded);
    let removal = cookie_removal(is_secure).filter(|_| has_ended);
    let problem = Problem::from(error);
    match removal {
        Some(removal) => problem.header(SET_COOKIE, removal),
        None => problem,
    }
}

http_kit::problem_responses! {
    ExchangeProblems: BodyProblems, DatabaseProblems {
        cross_site_request(),
        UserError::SessionEnded,
        UserError::SessionBusy,
    }
    BrowserProblems: DatabaseProblems {
        cross_site_request(),
    }
    UserSessionProblems: TokenProblems, DatabaseProblems {
        UserError::NotFound("session"),
    }
}
