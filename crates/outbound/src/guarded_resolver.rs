use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::{AddressPolicy, Resolve, Unresolved};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Resolves hosts for the HTTP client, to permitted addresses only.
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) policy: AddressPolicy,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl Service<Name> for GuardedResolver {
    type Response = IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
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
                _ => Ok(permitted.into_iter()),
            }
        })
    }
}
