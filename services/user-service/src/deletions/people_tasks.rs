//! The people-task service's internal call that erases a user's tasks.

use std::fmt;
use std::sync::Arc;

use auth::Signer;
use reqwest::{Client, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;
use values::UserId;

use crate::deletions::calls::{CallError, below, with_context};

/// How the worker introduces itself.
const PROCESS: &str = "deletion-worker";

/// The people-task service, seen from here.
#[derive(Clone)]
pub(crate) struct PeopleTasks {
    client: Client,
    base: Url,
    signer: Arc<Signer>,
}

/// Why a batch was not erased.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EraseError {
    #[error("the people-task service {0}")]
    Call(#[from] CallError),
    #[error("the token for the people-task service could not be signed")]
    Token(#[from] auth::SignError),
}

#[derive(Serialize)]
struct Erase<'a> {
    emails: &'a [String],
}

/// What one call did.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Erased {
    /// Tasks that went.
    pub(crate) deleted: u64,
    /// Whether there are more.
    pub(crate) more: bool,
}

impl PeopleTasks {
    pub(crate) fn new(client: Client, base: Url, signer: Arc<Signer>) -> Self {
        Self {
            client,
            base,
            signer,
        }
    }

    /// Erases one batch of the tasks that the user created or, by these addresses, requested.
    ///
    /// # Errors
    /// No answer, or another one than `200`; what was erased stays erased, and the same call goes on.
    pub(crate) async fn erase(
        &self,
        user: UserId,
        emails: &[String],
    ) -> Result<Erased, EraseError> {
        let token = self.signer.sign_for_service(PROCESS)?;
        let path = ["internal", "users", &user.to_string(), "erase"];
        let request = self.client.post(below(&self.base, &path, &[]));
        let request = request.bearer_auth(token.expose()).json(&Erase { emails });
        let response = with_context(request)
            .send()
            .await
            .map_err(CallError::from)?;
        match response.status() {
            StatusCode::OK => Ok(response.json().await.map_err(CallError::from)?),
            status => Err(CallError::Status(status.as_u16()).into()),
        }
    }
}

impl fmt::Debug for PeopleTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeopleTasks").finish_non_exhaustive()
    }
}
