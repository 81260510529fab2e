use auth::ApiKey;
use serde::Serialize;
use utoipa::ToSchema;
use values::UserId;

use super::store::Key;

/// A key that was just made, with its text, which is told only now.
#[derive(Serialize, ToSchema)]
#[schema(as = NewKey)]
pub(super) struct NewKeyResponse {
    #[serde(flatten)]
    shown: Key,
    /// The key itself. Send it as `Authorization: Bearer csk_…`.
    #[schema(example = "csk_65b8f0a2c3d4e5f601234567…")]
    key: String,
}

impl NewKeyResponse {
    pub(super) fn new(shown: Key, key: &ApiKey) -> Self {
        Self {
            shown,
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
    shown: Key,
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
            shown,
        }
    }
}

/// How many keys were confirmed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfirmedResponse {
    #[schema(example = 3)]
    pub(super) confirmed: usize,
}
