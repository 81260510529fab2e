//! The flow engine's five operations that delete a user's data; `deploy/flow-engine.openapi.yaml` is the contract.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use url::Url;
use values::{Secret, UserId};

use crate::calls::{CallError, append_path, send};
use crate::settings::EngineSettings;

/// The pause when the engine is still working and does not say for how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// One of the operations. All can be repeated without harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Erasure {
    StopFlows,
    Flows,
    Logs,
    Accounts,
    Tokens,
}

/// The progress of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineResponse {
    /// The data is deleted.
    Done,
    /// The engine is still deleting; repeat the call after this pause.
    Working(Duration),
}

/// A client of the flow engine.
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
    /// Any response but "done" and "still working".
    pub(crate) async fn erase(
        &self,
        user: UserId,
        erasure: Erasure,
    ) -> Result<EngineResponse, CallError> {
        let method = match erasure {
            Erasure::StopFlows => Method::POST,
            _ => Method::DELETE,
        };
        let mut request = self.client.request(method, self.url(user, erasure));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose());
        }
        let response = send("flow-engine", request).await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => {
                Ok(EngineResponse::Done)
            }
            StatusCode::ACCEPTED => {
                let pause = outbound::retry_after(response.headers()).unwrap_or(DEFAULT_PAUSE);
                Ok(EngineResponse::Working(pause.clamp(MIN_PAUSE, MAX_PAUSE)))
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
        append_path(&self.base, &["users", &user.to_string()], path)
    }
}
