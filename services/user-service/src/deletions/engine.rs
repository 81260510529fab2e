//! The flow engine's five operations that delete a user's data; `deploy/flow-engine.openapi.yaml` is the contract.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use values::UserId;

use super::steps::Progress;
use crate::calls::{CallError, append_path, send};
use crate::settings::EngineSettings;

/// The pause when the engine is still working and does not say for how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

/// A client of the flow engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    pub(super) client: Client,
    pub(super) settings: EngineSettings,
}

impl Engine {
    /// Makes one call, which can be repeated without harm. `path` follows that of the user.
    ///
    /// # Errors
    /// Any response but "done" and "still working".
    pub(super) async fn erase(
        &self,
        user: UserId,
        (method, path): (Method, &[&str]),
    ) -> Result<Progress, CallError> {
        let url = append_path(&self.settings.url, &["users", &user.to_string()], path);
        let mut request = self.client.request(method, url);
        if let Some(token) = &self.settings.token {
            request = request.bearer_auth(token.expose());
        }
        let response = send("flow-engine", request).await?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(Progress::Done),
            StatusCode::ACCEPTED => {
                let pause = outbound::retry_after(response.headers()).unwrap_or(DEFAULT_PAUSE);
                Ok(Progress::Waiting(pause.clamp(MIN_PAUSE, MAX_PAUSE)))
            }
            status => Err(CallError::Status(status.as_u16())),
        }
    }
}
