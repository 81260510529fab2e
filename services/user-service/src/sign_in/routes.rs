//! The HTTP side of sign-in.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, post};
use audit_log::RequestMeta;
use http_kit::{JsonBody, Problem};
use values::{Invalid, Secret};

use super::bodies::SignInBody;
use super::client_address::client_address;
use super::{Attempt, SignInName, sign_in as sign_in_user};
use crate::accounts::SignedIn;
use crate::context::Context;
use crate::documentation::{BodyProblems, HashProblems, SignInProblems};

/// Sign in
///
/// By username or e-mail address, without regard to letter case. An unknown user and a wrong password have
/// the same answer. After the 5th failure in a row from one client address, and after the 50th from
/// anywhere, each further attempt waits, one second doubling to five minutes, the right password included.
#[utoipa::path(
    tag = "users",
    request_body = SignInBody,
    responses(
        (status = 200, description = "Signed in.", body = SignedIn),
        BodyProblems, SignInProblems, HashProblems
    ),
    security(())
)]
#[post("/user/auth")]
pub(crate) async fn sign_in(
    context: Data<Context>,
    origin: RequestMeta,
    request: HttpRequest,
    body: JsonBody,
) -> Result<Json<SignedIn>, Problem> {
    let mut fields = body.0;
    let password = fields.required::<Secret>("password");
    let username = fields.optional::<String>("username");
    let email = fields.optional::<String>("email");
    if !fields.has("username") && !fields.has("email") {
        fields.reject("username", Invalid::new("required", "Is required."));
    }
    let (name, password) = fields.finish_with(username.or(email).zip(password))?;
    let attempt = Attempt {
        name: SignInName::new(&name),
        client_address: client_address(&request),
        origin,
    };
    let failure = context.sign_in_failure_status;
    let signed_in = sign_in_user(&context, attempt, password).await;
    let (user, token) = signed_in.map_err(|error| error.into_problem(failure))?;
    Ok(Json(SignedIn::new(user, &token)))
}
