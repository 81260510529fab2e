use std::net::SocketAddr;
use std::sync::Arc;

use crate::{AddressPolicy, Resolve, Unresolved};

/// Resolves hosts for the HTTP client, to permitted addresses only.
pub(crate) struct GuardedResolver {
    pub(crate) policy: AddressPolicy,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let policy = self.policy.clone();
        let resolved = self.resolver.resolve(name.as_str());
        Box::pin(async move {
            let mut refusal = None;
            let mut permitted = Vec::new();
            for address in resolved.await? {
                match policy.check_address(address) {
                    Ok(address) => permitted.push(SocketAddr::new(address, 0)),
                    Err(refused) => refusal = Some(refused),
                }
            }
            match refusal {
                Some(refusal) if permitted.is_empty() => Err(refusal.into()),
                _ if permitted.is_empty() => Err(Unresolved::NoAddress.into()),
                _ => Ok(Box::new(permitted.into_iter()) as reqwest::dns::Addrs),
            }
        })
    }
}
