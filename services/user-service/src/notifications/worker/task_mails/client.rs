use std::time::Duration;

use auth::MailKeys;
use reqwest::{Client, RequestBuilder, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use values::{MailId, Secret};

use crate::calls::{self, CallError, append_path};
use crate::notifications::worker::task_mail::TaskMail;

/// The longest pause that the service accepts. After it, the mail would be too late.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 3_600);
const DESTINATION: &str = "people-task-service";

/// A client of the people-task service's operations on mails.
#[derive(Clone)]
pub(in crate::notifications::worker) struct TaskMailClient {
    client: Client,
    base: Url,
    token: Secret,
}

/// What became of a mail.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Report {
    /// The mail was sent or is given up or, with a pause, is tried again after it.
    pub(super) fn new(attempt: u32, pause: Option<Duration>) -> Self {
        let millis = |pause: Duration| {
            let millis = pause.min(MAX_PAUSE).as_millis();
            u64::try_from(millis).unwrap_or(u64::MAX).max(1)
        };
        Self {
            attempt,
            retry_after_ms: pause.map(millis),
        }
    }
}

#[derive(Deserialize)]
struct Claimed {
    mails: Vec<TaskMail>,
}

impl TaskMailClient {
    /// Creates a client.
    ///
    /// # Errors
    /// The HTTP client cannot be built.
    pub(in crate::notifications::worker) fn new(
        base: Url,
        keys: &MailKeys,
    ) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: calls::client()?,
            base,
            token: keys.worker_token(),
        })
    }

    /// Claims mails that are due, at most `limit`.
    ///
    /// # Errors
    /// No response, or a status other than 2xx. Mails that were claimed are handed over again later.
    pub(super) async fn claim(&self, limit: usize) -> Result<Vec<TaskMail>, CallError> {
        let request = self.post(&["claim"]).json(&json!({"limit": limit}));
        let response = self.send(request).await?;
        let Claimed { mails } = response.json().await?;
        Ok(mails)
    }

    /// Reports what became of a mail. It can be repeated.
    ///
    /// # Errors
    /// No response, or a status other than 2xx.
    pub(super) async fn report(&self, id: MailId, report: &Report) -> Result<(), CallError> {
        let request = self.post(&[&id.to_string(), "report"]).json(report);
        self.send(request).await.map(drop)
    }

    fn post(&self, path: &[&str]) -> RequestBuilder {
        let url = append_path(&self.base, &["internal", "mails"], path);
        self.client.post(url).bearer_auth(self.token.expose())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, CallError> {
        let response = calls::send(DESTINATION, request).await?;
        let status = response.status();
        if status.is_success() {
            Ok(response)
        } else {
            Err(CallError::Status(status.as_u16()))
        }
    }
}

impl std::fmt::Debug for TaskMailClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskMailClient").finish_non_exhaustive()
    }
}
