use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairness::{Each, Shares};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, ready};
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::proto::rr::Name;
use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::BuildError;
use crate::system_config::{Files, Names, SystemConfig};

/// The maximum number of hosts that are looked up or wait for it, and how many more may if they resolved recently.
/// The next ones are not looked up.
const MAX_PENDING: usize = 2_048;
const MAX_PENDING_KNOWN: usize = 2_048;
/// How long a lookup waits until it may start. Waiting, looking up, and connecting to the address share the
/// connection timeout of [`Limits`](crate::Limits).
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a lookup takes at most: as long as two tries.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(2_500);
/// A lookup that takes this long and fails has met a name server that does not respond.
const STALL: Duration = Duration::from_secs(1);
/// How long a host is not looked up again after that.
const STALL_PAUSE: Duration = Duration::from_secs(3);
/// How long a host counts as known after it resolved.
const KNOWN_FOR: Duration = Duration::from_hours(24);
/// The maximum number of hosts that are remembered.
const MAX_REMEMBERED: u64 = 10_000;
/// The maximum number of concurrent lookups of any hosts.
const MAX_LOOKUPS: usize = 128;
/// How many more are for hosts that resolved recently. So hosts that never resolve, however many, cannot delay them.
const MAX_LOOKUPS_OF_KNOWN_HOSTS: usize = 128;
/// The maximum number of concurrent lookups in one domain, so that no domain takes all of them.
const MAX_LOOKUPS_PER_DOMAIN: u64 = 16;
/// How many addresses of a host are used.
const MAX_ADDRESSES: usize = 64;

/// Why there are no addresses of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The host has no address, or no name server responded.
    #[error("the host does not resolve")]
    NoAddress,
    /// No name server was asked: too many lookups wait, or none responded for this host a moment ago. A later lookup
    /// may find the host.
    #[error("the host was not looked up, because too many lookups wait or fail")]
    NotAsked,
}

/// The future of [`Resolve::resolve`].
pub type Resolved = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, Unresolved>> + Send>>;

/// Finds the addresses of a host. Tests implement it.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, at least one.
    fn resolve(&self, host: &str) -> Resolved;
}

/// Asks the name servers of `/etc/resolv.conf`, after `/etc/hosts`. Both are read again when they change.
///
/// Callers choose the hosts, so some have name servers that never respond. No lookup takes longer than
/// 3.5 seconds with its waiting, and a host without a response is not looked up again for three. Concurrent lookups of
/// a host are one. A domain has a share of all lookups, and half of them are for hosts that resolved recently. A host
/// for which there is no capacity is [not asked](Unresolved::NotAsked) for.
#[derive(Clone)]
pub struct SystemResolver(Arc<State>);

struct State {
    config: Arc<SystemConfig>,
    pending: Mutex<HashMap<String, Lookup>>,
    permits: LookupPermits,
    /// Hosts whose name servers did not respond.
    stalled: Cache<String, ()>,
    /// Hosts that resolved recently.
    known: Cache<String, ()>,
}

type Lookup = Shared<BoxFuture<'static, Result<Vec<IpAddr>, Unresolved>>>;

impl SystemResolver {
    /// Reads `/etc/resolv.conf` and `/etc/hosts`. Without name servers it asks the local host, as the C library
    /// does.
    ///
    /// # Errors
    /// A file exists and cannot be read, or the name servers cannot be set up.
    pub fn from_system() -> Result<Self, BuildError> {
        Self::from_files("/etc/resolv.conf", "/etc/hosts")
    }

    /// Like [`SystemResolver::from_system`], with files at other paths.
    ///
    /// # Errors
    /// A file exists and cannot be read, or the name servers cannot be set up.
    pub fn from_files(
        resolv_conf: impl Into<PathBuf>,
        hosts: impl Into<PathBuf>,
    ) -> Result<Self, BuildError> {
        let (resolv_conf, hosts) = (resolv_conf.into(), hosts.into());
        let files = Files { resolv_conf, hosts };
        Ok(Self::new(SystemConfig::from_files(files)?))
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
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        let config = SystemConfig::fixed(config, ResolverOpts::default())?;
        Ok(Self::new(config))
    }

    fn new(config: SystemConfig) -> Self {
        let remembered = |time| {
            let cache = Cache::builder().max_capacity(MAX_REMEMBERED);
            cache.time_to_live(time).build()
        };
        Self(Arc::new(State {
            config: Arc::new(config),
            pending: Mutex::default(),
            permits: LookupPermits::new((MAX_PENDING + MAX_PENDING_KNOWN) as u64),
            stalled: remembered(STALL_PAUSE),
            known: remembered(KNOWN_FOR),
        }))
    }
}

impl State {
    async fn resolve(self: Arc<Self>, host: String) -> Result<Vec<IpAddr>, Unresolved> {
        let name = Name::from_ascii(&host).map_err(|_| Unresolved::NoAddress)?;
        let names = self.config.current().await;
        let addresses = names.addresses(&name);
        if addresses.is_empty() {
            self.shared_lookup(host, name, names).await
        } else {
            Ok(addresses)
        }
    }

    fn shared_lookup(self: &Arc<Self>, host: String, name: Name, names: Arc<Names>) -> Lookup {
        let is_known = self.known.contains_key(&host);
        let mut pending = self.pending.lock();
        if let Some(lookup) = pending.get(&host) {
            return lookup.clone();
        }
        let limit = MAX_PENDING + if is_known { MAX_PENDING_KNOWN } else { 0 };
        if pending.len() >= limit || self.stalled.contains_key(&host) {
            return ready(Err(Unresolved::NotAsked)).boxed().shared();
        }
        let lookup = Arc::clone(self).look_up(host.clone(), name, names, is_known);
        let lookup = lookup.boxed().shared();
        pending.insert(host, lookup.clone());
        // A task drives the lookup, so that it ends even if all callers give up.
        tokio::spawn(lookup.clone());
        lookup
    }

    async fn look_up(
        self: Arc<Self>,
        host: String,
        name: Name,
        names: Arc<Names>,
        is_known: bool,
    ) -> Result<Vec<IpAddr>, Unresolved> {
        let pending = Pending { state: &self, host };
        let host = &pending.host;
        let permit = timeout(QUEUE_TIMEOUT, self.permits.acquire(host, is_known)).await;
        let _permit = permit.ok().flatten().ok_or(Unresolved::NotAsked)?;
        let started = Instant::now();
        let found = timeout(LOOKUP_TIMEOUT, names.dns.lookup_ip(name)).await;
        let addresses: Vec<_> = match found {
            Ok(Ok(found)) => found.iter().take(MAX_ADDRESSES).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        if !addresses.is_empty() {
            self.known.insert(host.clone(), ());
            return Ok(addresses);
        }
        if started.elapsed() >= STALL {
            self.stalled.insert(host.clone(), ());
        }
        Err(Unresolved::NoAddress)
    }
}

/// Removes a lookup from the pending ones, however it ends.
struct Pending<'a> {
    state: &'a State,
    host: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.state.pending.lock().remove(&self.host);
    }
}

/// Limits the concurrent lookups.
struct LookupPermits {
    any: Semaphore,
    known: Semaphore,
    domains: Arc<Shares<String, Each>>,
}

impl LookupPermits {
    /// At most `max_waiting` lookups wait.
    fn new(max_waiting: u64) -> Self {
        Self {
            any: Semaphore::new(MAX_LOOKUPS),
            known: Semaphore::new(MAX_LOOKUPS_OF_KNOWN_HOSTS),
            domains: Shares::with_waiting(Each(MAX_LOOKUPS_PER_DOMAIN), max_waiting),
        }
    }

    /// Waits for the right to look up a host, which lasts until it is dropped.
    async fn acquire(&self, host: &str, is_known: bool) -> Option<impl Sized> {
        // First the share, so that a busy domain waits for itself.
        let share = self.domains.acquire(domain_of(host).to_owned(), 1);
        let share = share.await.ok()?;
        let any = self.any.acquire();
        let permit = if is_known {
            tokio::select! {
                biased;
                permit = self.known.acquire() => permit,
                permit = any => permit,
            }
        } else {
            any.await
        };
        Some((share, permit.ok()?))
    }
}

/// The part of a host that is registered below a public suffix. A host without such a part is its own domain.
fn domain_of(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    psl::domain_str(host).unwrap_or(host)
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolved {
        Box::pin(Arc::clone(&self.0).resolve(host.to_ascii_lowercase()))
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
    fn a_domain_is_registered_below_a_public_suffix() {
        for (host, domain) in [
            ("hooks.a.example.com", "example.com"),
            ("example.com", "example.com"),
            ("example.com.", "example.com"),
            ("hooks.shop.co.uk", "shop.co.uk"),
            ("x7.evil.co.uk", "evil.co.uk"),
            ("co.uk", "co.uk"),
            ("a.flows.github.io", "flows.github.io"),
            ("hooks.engine.internal", "engine.internal"),
            ("my_hooks.example.net", "example.net"),
            ("engine", "engine"),
            ("a..", "a"),
            ("", ""),
        ] {
            assert_eq!(domain_of(host), domain);
        }
    }
}
