use audit_log::RequestMeta;

use super::name::SignInName;
use crate::client_network::ClientNetwork;

/// An attempt to sign in, before its password is checked.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) name: SignInName,
    pub(super) client: ClientNetwork,
    pub(super) meta: RequestMeta,
}
