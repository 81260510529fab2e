use audit_log::{AuthMethod, Entry};
use serde_json::json;

use super::error::SignInError;

/// Why an attempt was refused after its password was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    InvalidCredentials,
    Inactive,
}

impl Refusal {
    /// Adds the reason to the audit entry.
    pub(super) fn explain(self, entry: Entry) -> Entry {
        match self {
            Self::InvalidCredentials => entry.detail(json!({"reason": "invalid-credentials"})),
            Self::Inactive => entry
                .authenticated_by(AuthMethod::Password)
                .detail(json!({"reason": "account-inactive"})),
        }
    }
}

impl From<Refusal> for SignInError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::InvalidCredentials => Self::InvalidCredentials,
            Refusal::Inactive => Self::Inactive,
        }
    }
}
