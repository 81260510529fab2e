use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;

use crate::AddressPolicy;

/// Lookups at once. The system's resolver blocks a thread for as long as a name server is silent.
const LOOKUPS: usize = 128;

/// A host has no address, or nobody answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host does not resolve")]
pub struct Unresolved;

/// What a [`Resolve`] promises.
pub type Resolved = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, Unresolved>> + Send>>;

/// Finds the addresses of a host. Tests bring their own.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, at least one.
    fn resolve(&self, host: &str) -> Resolved;
}

/// The system's resolver. Simultaneous questions for one host are asked once, so a host whose name
/// server is silent holds one thread, however many requests wait for it.
#[derive(Debug, Clone)]
pub struct SystemResolver {
    asked: Arc<Mutex<HashMap<String, Question>>>,
    lookups: Arc<Semaphore>,
}

type Question = Shared<BoxFuture<'static, Result<Vec<IpAddr>, Unresolved>>>;

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            asked: Arc::default(),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }
}

impl SystemResolver {
    fn ask(&self, host: String) -> Question {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(question) = asked.get(&host) {
            return question.clone();
        }
        let question = self.clone().answer(host.clone()).boxed().shared();
        asked.insert(host, question.clone());
        // Driven by a task of its own: those who wait may give up, and the question still ends.
        tokio::spawn(question.clone());
        question
    }

    async fn answer(self, host: String) -> Result<Vec<IpAddr>, Unresolved> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await;
        let name = host.clone();
        let found = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let found = (name.as_str(), 0).to_socket_addrs();
            found.map(|found| found.map(|a| a.ip()).collect::<Vec<_>>())
        });
        let found = found.await;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.remove(&host);
        match found {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            _ => Err(Unresolved),
        }
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolved {
        Box::pin(self.ask(host.to_ascii_lowercase()))
    }
}

/// Hands only permitted addresses to the connector.
pub(crate) struct Guarded {
    pub(crate) policy: AddressPolicy,
    pub(crate) resolver: Arc<dyn Resolve>,
}

impl reqwest::dns::Resolve for Guarded {
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
                _ if permitted.is_empty() => Err(Unresolved.into()),
                _ => Ok(Box::new(permitted.into_iter()) as reqwest::dns::Addrs),
            }
        })
    }
}
