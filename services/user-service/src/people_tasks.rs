//! The people-task service's internal operations on users, which the deletion-worker calls.

use std::sync::Arc;

use auth::Signer;
use chrono::{DateTime, Utc};
use reqwest::{Client, Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;
use values::{EmailAddress, UserId};

use crate::accounts::store::former_emails::FormerEmail;
use crate::calls::{CallError, append_path, send};

/// The subject of the token with which the worker authenticates.
const SUBJECT: &str = "deletion-worker";

#[derive(Debug, Clone)]
pub(crate) struct PeopleTasks {
    pub(crate) client: Client,
    pub(crate) base: Url,
    pub(crate) signer: Arc<Signer>,
}

/// The user whose tasks are deleted: the addresses under which the user requested tasks, and the incarnation of the
/// database that the user is deleted from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EraseRequest {
    pub(crate) emails: Vec<EmailAddress>,
    pub(crate) former_emails: Vec<FormerEmail>,
    pub(crate) incarnation: String,
    /// The time of the user's latest change that the deletion follows. Nothing is erased if a later one was told that made
    /// the user active.
    pub(crate) changed: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Erased {
    pub(crate) deleted_tasks: u32,
    pub(crate) more: bool,
    /// Whether other transactions hold all of them at the moment, or the user is active again.
    pub(crate) blocked: bool,
}

impl PeopleTasks {
    /// Deletes one batch of the tasks that the user created or, under these addresses, requested. From then on the
    /// user's tokens of this incarnation of the database create none. After an error, repeat the call.
    pub(crate) async fn erase(
        &self,
        user: UserId,
        request: &EraseRequest,
    ) -> Result<Erased, CallError> {
        let response = self.call(Method::POST, user, &["erase"], request).await?;
        Ok(response.json().await?)
    }

    /// Tells the state of a user. The people-task service ignores it if it knows a later one.
    pub(crate) async fn tell(&self, user: UserId, state: &impl Serialize) -> Result<(), CallError> {
        self.call(Method::PUT, user, &[], state).await.map(drop)
    }

    async fn call(
        &self,
        method: Method,
        user: UserId,
        operation: &[&str],
        body: &impl Serialize,
    ) -> Result<Response, CallError> {
        let token = self.signer.sign_for_service(SUBJECT);
        let path = ["internal", "users", &user.to_string()];
        let url = append_path(&self.base, &path, operation);
        let request = self.client.request(method, url);
        let request = request.bearer_auth(token.expose()).json(body);
        let response = send("people-task-service", request).await?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(CallError::Status(status.as_u16())),
        }
    }
}
