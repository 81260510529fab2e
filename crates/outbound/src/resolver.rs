use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;

/// The maximum number of concurrent lookups. Each blocks a thread until the name server responds.
const MAX_LOOKUPS: usize = 128;

/// The host has no address, or no name server responded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host does not resolve")]
pub struct Unresolved;

/// The future of [`Resolve::resolve`].
pub type Resolved = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, Unresolved>> + Send>>;

/// Finds the addresses of a host. Tests implement it.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, at least one.
    fn resolve(&self, host: &str) -> Resolved;
}

/// The system's resolver. Concurrent lookups of a host share one thread, even if many requests wait for a name
/// server that does not respond.
#[derive(Debug, Clone)]
pub struct SystemResolver {
    lookups: Arc<Mutex<HashMap<String, Lookup>>>,
    permits: Arc<Semaphore>,
}

type Lookup = Shared<BoxFuture<'static, Result<Vec<IpAddr>, Unresolved>>>;

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            lookups: Arc::default(),
            permits: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        }
    }
}

impl SystemResolver {
    fn shared_lookup(&self, host: String) -> Lookup {
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lookup) = lookups.get(&host) {
            return lookup.clone();
        }
        let lookup = self.clone().look_up(host.clone()).boxed().shared();
        lookups.insert(host, lookup.clone());
        // A task drives the lookup, so that it ends even if all callers give up.
        tokio::spawn(lookup.clone());
        lookup
    }

    async fn look_up(self, host: String) -> Result<Vec<IpAddr>, Unresolved> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let name = host.clone();
        let found = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let found = (name.as_str(), 0).to_socket_addrs();
            found.map(|found| found.map(|a| a.ip()).collect::<Vec<_>>())
        });
        let found = found.await;
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        lookups.remove(&host);
        match found {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            _ => Err(Unresolved),
        }
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolved {
        Box::pin(self.shared_lookup(host.to_ascii_lowercase()))
    }
}
