use std::sync::Arc;

use auth::Signer;
use chrono::SecondsFormat;
use reqwest::{Client, StatusCode};
use serde::Serialize;
use url::Url;
use values::EmailAddress;

use super::store::UserState;
use crate::calls::{CallError, append_path, send};

/// The subject of the token with which the worker authenticates.
const SUBJECT: &str = "deletion-worker";

/// A client of the people-task service's internal operation that takes a user's state.
#[derive(Clone)]
pub(crate) struct UserChangeClient {
    client: Client,
    base: Url,
    signer: Arc<Signer>,
}

/// Why the people-task service was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum TellError {
    #[error("the people-task service {0}")]
    Call(#[from] CallError),
    #[error("the token for the people-task service could not be signed")]
    Token(#[from] auth::SignError),
    #[error("the database failed")]
    Database(#[from] database::Error),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    /// With microseconds, by which later changes differ.
    changed: String,
    is_active: bool,
    is_admin: bool,
    email: Option<&'a EmailAddress>,
}

impl UserChangeClient {
    pub(crate) fn new(client: Client, base: Url, signer: Arc<Signer>) -> Self {
        Self {
            client,
            base,
            signer,
        }
    }

    /// Tells the state of a user. The people-task service ignores it if it knows a later one.
    ///
    /// # Errors
    /// No response, or a status other than `200`. Repeat the call.
    pub(super) async fn tell(&self, state: &UserState) -> Result<(), TellError> {
        let token = self.signer.sign_for_service(SUBJECT)?;
        let path = ["internal", "users", &state.user.to_string()];
        let request = self.client.put(append_path(&self.base, &path, &[]));
        let request = request.bearer_auth(token.expose()).json(&Body {
            changed: state.changed.to_rfc3339_opts(SecondsFormat::Micros, true),
            is_active: state.is_active,
            is_admin: state.is_admin,
            email: state.email.as_ref(),
        });
        let response = send("people-task-service", request).await?;
        match response.status() {
            StatusCode::OK => Ok(()),
            status => Err(CallError::Status(status.as_u16()).into()),
        }
    }
}
