//! The people-task service's internal operation that deletes a user's tasks.

use std::fmt;
use std::sync::Arc;

use auth::Signer;
use reqwest::{Client, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;
use values::{EmailAddress, Timestamp, UserId};

use crate::calls::{CallError, append_path, send};

/// The subject of the token with which the worker authenticates.
const SUBJECT: &str = "deletion-worker";

/// A client of the people-task service.
#[derive(Clone)]
pub(crate) struct PeopleTasks {
    client: Client,
    base: Url,
    signer: Arc<Signer>,
}

/// Why a batch was not deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EraseError {
    #[error("the people-task service {0}")]
    Call(#[from] CallError),
    #[error("the token for the people-task service could not be signed")]
    Token(#[from] auth::SignError),
}

#[derive(Serialize)]
struct EraseRequest<'a> {
    #[serde(flatten)]
    addresses: &'a RequesterAddresses,
    incarnation: &'a str,
}

/// The addresses under which a user requested tasks.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequesterAddresses {
    /// Addresses that are the user's.
    pub(crate) emails: Vec<EmailAddress>,
    /// Addresses that were the user's for some time.
    pub(crate) former_emails: Vec<FormerAddress>,
}

/// An address that was the user's.
#[derive(Debug, Serialize)]
pub(crate) struct FormerAddress {
    pub(crate) email: EmailAddress,
    /// Tasks that were created earlier may be of another person.
    pub(crate) since: Timestamp,
    /// Tasks that were created later may be of another person.
    pub(crate) until: Timestamp,
}

/// The result of one call.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Erased {
    /// The number of deleted tasks.
    pub(crate) deleted_tasks: u32,
    /// Whether the user has more tasks.
    pub(crate) more: bool,
    /// Whether other transactions hold all of them at the moment.
    pub(crate) blocked: bool,
}

impl PeopleTasks {
    pub(crate) fn new(client: Client, base: Url, signer: Arc<Signer>) -> Self {
        Self {
            client,
            base,
            signer,
        }
    }

    /// Deletes one batch of the tasks that the user created or, under these addresses, requested. From then on the
    /// user's tokens of this incarnation of the database create none.
    ///
    /// # Errors
    /// No response, or a status other than `200`. What was deleted stays deleted; repeat the call.
    pub(crate) async fn erase(
        &self,
        user: UserId,
        addresses: &RequesterAddresses,
        incarnation: &str,
    ) -> Result<Erased, EraseError> {
        let token = self.signer.sign_for_service(SUBJECT)?;
        let path = ["internal", "users", &user.to_string(), "erase"];
        let request = self.client.post(append_path(&self.base, &path, &[]));
        let request = request.bearer_auth(token.expose()).json(&EraseRequest {
            addresses,
            incarnation,
        });
        let response = send("people-task-service", request).await?;
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
