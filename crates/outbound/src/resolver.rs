use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, ready};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::BuildError;

/// The maximum number of concurrent lookups.
const MAX_LOOKUPS: usize = 256;
/// The maximum number of concurrent lookups in one domain, so that no domain takes all of them.
const MAX_LOOKUPS_PER_DOMAIN: usize = 16;
/// The maximum number of hosts that are looked up or wait for it. The next ones do not resolve.
const MAX_PENDING: usize = 2_048;
/// How long a lookup waits until it may start.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a lookup takes at most.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long one of its two tries takes at most.
const TRY_TIMEOUT: Duration = Duration::from_millis(1_250);
/// A lookup that takes this long and fails has met a name server that does not respond.
const STALL: Duration = Duration::from_secs(1);
/// How long a host is not looked up again after that.
const STALL_PAUSE: Duration = Duration::from_secs(10);
/// The maximum number of domains and of hosts that are remembered.
const MAX_REMEMBERED: u64 = 10_000;
/// How many addresses of a host are used.
const MAX_ADDRESSES: usize = 64;

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

/// Asks the name servers of `/etc/resolv.conf`, after `/etc/hosts`.
///
/// Callers choose the hosts, so some have name servers that never respond. No lookup takes longer than
/// five seconds, and a host without a response is not looked up again for ten. Concurrent lookups of a host are
/// one, and a domain has a share of all lookups. A host for which there is no capacity does not resolve.
#[derive(Clone)]
pub struct SystemResolver(Arc<State>);

struct State {
    dns: TokioResolver,
    pending: Mutex<HashMap<String, Lookup>>,
    permits: Arc<Semaphore>,
    /// The share of each domain.
    shares: Cache<String, Arc<Semaphore>>,
    /// Hosts whose name servers did not respond.
    stalled: Cache<String, ()>,
}

type Lookup = Shared<BoxFuture<'static, Result<Vec<IpAddr>, Unresolved>>>;

impl SystemResolver {
    /// Reads `/etc/resolv.conf` and `/etc/hosts`. Without name servers it asks the local host, as the C library
    /// does.
    ///
    /// # Errors
    /// The name servers cannot be set up.
    pub fn from_system() -> Result<Self, BuildError> {
        let (config, options) = read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "/etc/resolv.conf names no name server; asking 127.0.0.1");
            let local = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![local]);
            (config, ResolverOpts::default())
        });
        Self::new(config, options)
    }

    /// Asks one name server and ignores `/etc/hosts`, for tests.
    ///
    /// # Errors
    /// The name server cannot be set up.
    pub fn with_name_server(address: SocketAddr) -> Result<Self, BuildError> {
        let mut server = NameServerConfig::udp(address.ip());
        for connection in &mut server.connections {
            connection.port = address.port();
        }
        let mut options = ResolverOpts::default();
        options.use_hosts_file = ResolveHosts::Never;
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        Self::new(config, options)
    }

    fn new(config: ResolverConfig, mut options: ResolverOpts) -> Result<Self, BuildError> {
        options.timeout = TRY_TIMEOUT;
        options.attempts = 1;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        // Callers choose the hosts, so a cache would hold as much as their name servers send.
        options.cache_size = 0;
        let provider = TokioRuntimeProvider::default();
        let builder = TokioResolver::builder_with_config(config, provider).with_options(options);
        Ok(Self(Arc::new(State {
            dns: builder.build()?,
            pending: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            shares: Cache::new(MAX_REMEMBERED),
            stalled: Cache::builder()
                .max_capacity(MAX_REMEMBERED)
                .time_to_live(STALL_PAUSE)
                .build(),
        })))
    }
}

impl State {
    fn shared_lookup(self: &Arc<Self>, host: String) -> Lookup {
        let mut pending = self.lock_pending();
        if let Some(lookup) = pending.get(&host) {
            return lookup.clone();
        }
        if pending.len() >= MAX_PENDING || self.stalled.contains_key(&host) {
            return ready(Err(Unresolved)).boxed().shared();
        }
        let lookup = Arc::clone(self).look_up(host.clone()).boxed().shared();
        pending.insert(host, lookup.clone());
        // A task drives the lookup, so that it ends even if all callers give up.
        tokio::spawn(lookup.clone());
        lookup
    }

    async fn look_up(self: Arc<Self>, host: String) -> Result<Vec<IpAddr>, Unresolved> {
        let pending = Pending { state: &self, host };
        let host = &pending.host;
        let name = Name::from_ascii(host).map_err(|_| Unresolved)?;
        let permits = timeout(QUEUE_TIMEOUT, self.acquire(host)).await;
        let _permits = permits.ok().flatten().ok_or(Unresolved)?;
        let started = Instant::now();
        let found = timeout(LOOKUP_TIMEOUT, self.dns.lookup_ip(name)).await;
        let addresses: Vec<_> = match found {
            Ok(Ok(found)) => found.iter().take(MAX_ADDRESSES).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        if !addresses.is_empty() {
            return Ok(addresses);
        }
        if started.elapsed() >= STALL {
            self.stalled.insert(host.clone(), ());
        }
        Err(Unresolved)
    }

    /// Waits for the right to look up a host.
    async fn acquire(&self, host: &str) -> Option<[OwnedSemaphorePermit; 2]> {
        let share = || Arc::new(Semaphore::new(MAX_LOOKUPS_PER_DOMAIN));
        let share = self.shares.get_with(domain_of(host).to_owned(), share);
        // First the share, so that a busy domain waits for itself.
        let share = share.acquire_owned().await.ok()?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some([share, permit])
    }

    fn lock_pending(&self) -> MutexGuard<'_, HashMap<String, Lookup>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a lookup from the pending ones, however it ends.
struct Pending<'a> {
    state: &'a State,
    host: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.state.lock_pending().remove(&self.host);
    }
}

/// The last two labels of a host: for most names the registered domain.
fn domain_of(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at);
    dots.nth(1)
        .and_then(|at| host.get(at + 1..))
        .unwrap_or(host)
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolved {
        Box::pin(self.0.shared_lookup(host.to_ascii_lowercase()))
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemResolver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::domain_of;

    #[test]
    fn a_domain_is_the_last_two_labels() {
        for (host, domain) in [
            ("hooks.a.example.com", "example.com"),
            ("example.com", "example.com"),
            ("example.com.", "example.com"),
            ("engine", "engine"),
            ("a..", "a"),
            ("", ""),
        ] {
            assert_eq!(domain_of(host), domain);
        }
    }
}
