//! The flow engine's five calls that erase a user's data; `deploy/flow-engine.openapi.yaml` is the contract.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use url::Url;
use values::{Secret, UserId};

use crate::deletions::calls::{CallError, below, with_context};
use crate::settings::EngineSettings;

/// How long to wait when the engine says "still working" and not until when.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// One of the calls. Each can be repeated without harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Erasure {
    StopFlows,
    Flows,
    Logs,
    Accounts,
    Tokens,
}

/// What the engine said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing of it is left.
    Done,
    /// It goes on by itself; the same call again after this time tells whether it is done.
    Working(Duration),
}

/// The flow engine, seen from here.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    client: Client,
    base: Url,
    token: Option<Secret>,
}

impl Engine {
    pub(crate) fn new(client: Client, settings: &EngineSettings) -> Self {
        Self {
            client,
            base: settings.url.clone(),
            token: settings.token.clone(),
        }
    }

    /// Makes one call.
    ///
    /// # Errors
    /// Any answer but "done" and "still working".
    pub(crate) async fn erase(&self, user: UserId, erasure: Erasure) -> Result<Answer, CallError> {
        let method = match erasure {
            Erasure::StopFlows => Method::POST,
            _ => Method::DELETE,
        };
        let mut request = self.client.request(method, self.url(user, erasure));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose());
        }
        let response = with_context(request).send().await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(Answer::Done),
            StatusCode::ACCEPTED => {
                let wait = outbound::retry_after(response.headers()).unwrap_or(DEFAULT_WAIT);
                Ok(Answer::Working(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT)))
            }
            status => Err(CallError::Status(status.as_u16())),
        }
    }

    fn url(&self, user: UserId, erasure: Erasure) -> Url {
        let path: &[&str] = match erasure {
            Erasure::StopFlows => &["flows", "stop"],
            Erasure::Flows => &["flows"],
            Erasure::Logs => &["logs"],
            Erasure::Accounts => &["accounts"],
            Erasure::Tokens => &["tokens"],
        };
        below(&self.base, &["users", &user.to_string()], path)
    }
}
