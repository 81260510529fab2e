//! The client network that a request comes from: what failures, requests for codes and waiting passwords
//! are counted by.

mod requests;

use std::sync::Arc;

/// An IPv4 address or an IPv6 /64 network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(Arc<str>);

impl ClientNetwork {
    /// Stands for work that no client requested.
    pub(crate) fn internal() -> Self {
        Self::from("internal")
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ClientNetwork {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}
