use serde::Serialize;
use utoipa::ToSchema;
use values::{CredentialId, Timestamp};

use super::store::Session;

/// A browser that stays signed in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
pub(super) struct SessionResponse {
    #[schema(inline)]
    id: CredentialId,
    #[schema(inline)]
    created: Timestamp,
    /// When a page was opened with it last.
    #[schema(value_type = String, format = DateTime)]
    last_used: Timestamp,
    /// When it ends if it is not used.
    #[schema(value_type = String, format = DateTime)]
    expires: Timestamp,
    /// The address of its last use: an IPv4 address or an IPv6 /64 network.
    #[schema(example = "203.0.113.7")]
    network: String,
    /// What the browser calls itself: its `User-Agent`.
    #[schema(example = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")]
    program: String,
    /// Whether the token of this request was issued for it.
    current: bool,
}

impl SessionResponse {
    pub(super) fn new(session: Session, current: Option<CredentialId>) -> Self {
        Self {
            id: session.id,
            created: session.created.into(),
            last_used: session.last_used.into(),
            expires: session.expires.into(),
            network: session.client_network,
            program: session.program,
            current: current == Some(session.id),
        }
    }
}
