use auth::ApiKey;
use serde::Serialize;
use utoipa::ToSchema;
use values::{CredentialId, Timestamp, UserId};

use super::store::Key;

/// An API key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Key)]
pub(super) struct KeyResponse {
    #[schema(inline)]
    id: CredentialId,
    #[schema(example = "Invoices in n8n")]
    name: String,
    #[schema(example = json!(["tasks:read", "tasks:write"]))]
    scopes: Vec<String>,
    #[schema(inline)]
    created: Timestamp,
    /// When it ends by itself; null if never.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    expires: Option<Timestamp>,
    /// The minute in which it was used last; null before its first use.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    last_used: Option<Timestamp>,
    /// `false` if the key is off, because the database was restored and no administrator has confirmed the key since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    confirmed: Option<bool>,
}

impl From<Key> for KeyResponse {
    fn from(key: Key) -> Self {
        Self {
            id: key.id,
            name: key.name,
            scopes: key.scopes,
            created: key.created.into(),
            expires: key.expires.map(Timestamp::from),
            last_used: key.used.map(Timestamp::from),
            confirmed: (!key.is_confirmed).then_some(false),
        }
    }
}

/// A key that was just made, with its text, which is told only now.
#[derive(Serialize, ToSchema)]
#[schema(as = NewKey)]
pub(super) struct NewKeyResponse {
    #[serde(flatten)]
    shown: KeyResponse,
    /// The key itself. Send it as `Authorization: Bearer csk_…`.
    #[schema(example = "csk_65b8f0a2c3d4e5f601234567…")]
    key: String,
}

impl NewKeyResponse {
    pub(super) fn new(shown: Key, key: &ApiKey) -> Self {
        Self {
            shown: shown.into(),
            key: key.expose().to_owned(),
        }
    }
}

/// A key among those of all users.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserKey)]
pub(super) struct UserKeyResponse {
    #[serde(flatten)]
    shown: KeyResponse,
    #[schema(inline)]
    user_id: UserId,
    #[schema(example = "ada@example.com")]
    username: String,
}

impl UserKeyResponse {
    pub(super) fn new(shown: Key, username: String) -> Self {
        Self {
            user_id: shown.user,
            username,
            shown: shown.into(),
        }
    }
}

/// How many keys were confirmed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfirmedResponse {
    #[schema(example = 3)]
    pub(super) confirmed: usize,
}
