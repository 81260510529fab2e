use audit_log::RequestMeta;

use super::name::SignInName;
use crate::client_network::ClientNetwork;

/// An attempt to sign in, before its password is checked.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) name: SignInName,
    pub(super) client_network: ClientNetwork,
    pub(super) meta: RequestMeta,
}

/// The key of the rows that count an attempt.
#[derive(Debug, Clone)]
pub(super) struct AttemptKey {
    pub(super) name_hash: [u8; 32],
    pub(super) client_network: ClientNetwork,
}
