//! What a request shows to be let in: a token, a task's secret, or both.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use auth::{Caller, MaybeCaller, token_missing};
use http_kit::{Fields, OptionalJsonBody, Problem, Query};
use values::{Fingerprint, Secret};

use crate::tasks::access::Actor;

/// The header that takes a task's secret.
pub(crate) const SECRET_HEADER: &str = "x-task-secret";
/// The query parameter and the field of the body that take a task's secret.
const SECRET: &str = "secret";

/// Somebody with a token, a secret, or both; `401` without either.
#[derive(Debug)]
pub(crate) struct Credentials(pub(crate) Actor);

/// Somebody who may still show a secret in the body.
#[derive(Debug)]
pub(crate) struct PartialCredentials(Actor);

/// Somebody with a token, and perhaps a secret; `401` without a token.
#[derive(Debug)]
pub(crate) struct SignedIn {
    /// The token's user.
    pub(crate) caller: Caller,
    /// The same with the secrets that were shown.
    pub(crate) actor: Actor,
}

type Extracting<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

/// The secrets of query and header. One that has not the form of a secret opens nothing, as a wrong one.
fn secrets(request: &HttpRequest) -> Vec<Fingerprint> {
    let query = Query::parse(request.query_string());
    let in_query = query.first(SECRET).map(str::to_owned);
    let in_header = request.headers().get(SECRET_HEADER);
    let in_header = in_header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let given = in_query.into_iter().chain(in_header);
    given
        .filter(|text| !text.is_empty())
        .map(|text| Secret::new(text).fingerprint())
        .collect()
}

impl FromRequest for PartialCredentials {
    type Error = Problem;
    type Future = Extracting<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = MaybeCaller::from_request(request, payload);
        let secrets = secrets(request);
        Box::pin(async move {
            let MaybeCaller(caller) = caller.await?;
            Ok(Self(Actor::new(caller, secrets)))
        })
    }
}

impl FromRequest for Credentials {
    type Error = Problem;
    type Future = Extracting<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let partial = PartialCredentials::from_request(request, payload);
        Box::pin(async move { partial.await?.complete() })
    }
}

impl FromRequest for SignedIn {
    type Error = Problem;
    type Future = Extracting<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = Caller::from_request(request, payload);
        let secrets = secrets(request);
        Box::pin(async move {
            let caller = caller.await?;
            let actor = Actor::new(Some(caller.clone()), secrets);
            Ok(Self { caller, actor })
        })
    }
}

impl PartialCredentials {
    fn complete(self) -> Result<Credentials, Problem> {
        if self.0.is_nobody() {
            Err(token_missing())
        } else {
            Ok(Credentials(self.0))
        }
    }

    /// Adds the secret of the body. A body that cannot be read matters only to somebody who has shown
    /// a token or a secret already.
    ///
    /// # Errors
    /// `401` without token and secret, else what is wrong with the body.
    pub(crate) fn with_body(
        self,
        body: Result<OptionalJsonBody, Problem>,
    ) -> Result<Credentials, Problem> {
        let secret = body.and_then(|OptionalJsonBody(fields)| secret_of(fields));
        match secret {
            Ok(secret) => Self(self.0.and_secret(secret)).complete(),
            Err(problem) => self.complete().and(Err(problem)),
        }
    }
}

fn secret_of(mut fields: Fields) -> Result<Option<Fingerprint>, Problem> {
    let secret: Option<Secret> = fields.optional(SECRET);
    fields.finish()?;
    let secret = secret.filter(|secret| !secret.expose().is_empty());
    Ok(secret.map(|secret| secret.fingerprint()))
}
