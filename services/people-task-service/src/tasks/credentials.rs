//! How a request is authenticated: by a token, a task's secret, or both.

use actix_web::HttpRequest;
use auth::{Caller, MaybeCaller, token_missing};
use http_kit::{Problem, Query};
use values::{Invalid, Secret};

use crate::tasks::access::Actor;
use crate::tasks::secrets::PresentedSecret;

const SECRET_HEADER: &str = "x-task-secret";
const SECRET_PARAMETER: &str = "secret";

/// A caller whose secret may still come in the body.
pub(crate) struct PartialCredentials(Actor);

/// A caller with a token, and perhaps a secret; `401` without a token.
#[derive(Debug, Clone)]
pub(crate) struct AuthenticatedUser {
    pub(crate) caller: Caller,
    /// The same user with the secrets that the request carries.
    pub(crate) actor: Actor,
}

/// The secrets in query and header. A malformed secret matches no task, like any wrong one.
fn secrets(request: &HttpRequest) -> Vec<PresentedSecret> {
    let query = Query::parse(request.query_string());
    let in_query = query.first(SECRET_PARAMETER).map(str::to_owned);
    let in_header = request.headers().get(SECRET_HEADER);
    let in_header = in_header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    in_query
        .into_iter()
        .chain(in_header)
        .filter(|text| !text.is_empty())
        .map(|text| PresentedSecret::from(&Secret::new(text)))
        .collect()
}

/// Whether an administrator wants to do what others should.
fn overrides(request: &HttpRequest) -> Result<bool, Problem> {
    match Query::parse(request.query_string()).first("override") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => {
            let invalid = Invalid::new("invalid-type", "Must be true or false.");
            Err(Problem::invalid_field("override", invalid))
        }
    }
}

http_kit::extractors! {
    PartialCredentials = |request| {
        let MaybeCaller(caller) = MaybeCaller::extract(&request).await?;
        Ok(Self(Actor {
            overrides: overrides(&request)?,
            ..Actor::new(caller, secrets(&request))
        }))
    };
    // A caller with a token, a secret, or both; `401` with neither.
    Actor = |request| PartialCredentials::extract(&request).await?.complete();
    AuthenticatedUser = |request| {
        let caller = Caller::extract(&request).await?;
        let actor = Actor::new(Some(caller.clone()), secrets(&request));
        Ok(Self { caller, actor })
    };
}

impl PartialCredentials {
    fn complete(self) -> Result<Actor, Problem> {
        if self.0.caller.is_none() && self.0.secrets.is_empty() {
            Err(token_missing())
        } else {
            Ok(self.0)
        }
    }

    /// Adds the secret of the body, and returns both. An invalid body is reported only to a caller who has already sent a
    /// token or a secret.
    pub(crate) fn with_body<Body>(
        mut self,
        body: Result<Body, Problem>,
        secret: impl FnOnce(&Body) -> Option<&Secret>,
    ) -> Result<(Actor, Body), Problem> {
        match body {
            Ok(body) => {
                let secret = secret(&body).map(PresentedSecret::from);
                self.0.secrets.extend(secret);
                Ok((self.complete()?, body))
            }
            Err(problem) => {
                self.complete()?;
                Err(problem)
            }
        }
    }
}
