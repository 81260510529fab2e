use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairness::{Each, Remainder, Share, Shares};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, ready};
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::proto::rr::Name;
use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::system_config::{Names, SystemConfig};

/// How long a lookup waits until it may start. Waiting, looking up, and connecting to the address share the
/// time for connecting.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a lookup takes at most: as long as two tries.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(2_500);
/// A lookup that takes this long and fails has met a name server that does not respond.
const STALL: Duration = Duration::from_secs(1);
/// How long a host is not looked up again after that.
const STALL_PAUSE: Duration = Duration::from_secs(3);
/// How long a host counts as known after it resolved.
const KNOWN_FOR: Duration = Duration::from_hours(24);
const MAX_REMEMBERED: u64 = 10_000;
/// How many addresses of a host are used.
const MAX_ADDRESSES: usize = 64;
/// The maximum number of hosts that are looked up or wait for it, and how many more may if they resolved recently.
/// The next ones are not looked up. One owner can have a quarter of them.
const MAX_PENDING: u64 = 4 * 2_048;
const MAX_PENDING_KNOWN: u64 = 4 * 2_048;
/// The maximum number of concurrent lookups of any hosts. One owner can have a quarter of them: what name servers that
/// do not respond hold does not come back when another owner needs it, so it has to be free before.
const MAX_LOOKUPS: u64 = 4 * 128;
/// How many more are for hosts that resolved recently. So hosts that never resolve, however many, cannot delay them.
const MAX_LOOKUPS_OF_KNOWN_HOSTS: u64 = 4 * 128;
/// The maximum number of concurrent lookups of hosts of one domain that are not known, so that no domain takes all of them.
const MAX_LOOKUPS_PER_DOMAIN: u64 = 64;
/// How many of them one owner can have.
const MAX_LOOKUPS_PER_DOMAIN_AND_OWNER: u64 = 16;

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
    /// The addresses of a host, at least one. The caller may be [`for_owner`].
    fn resolve(&self, host: &str) -> Resolved;
}

impl fmt::Debug for dyn Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolve")
    }
}

/// Who shares lookups: `None` for calls that are made for no one in particular. The HTTP client asks the resolver for a name
/// only, so the owner is a value of the task.
type Owner = Option<Arc<str>>;

tokio::task_local! {
    static OWNER: Owner;
}

/// Makes a call or a lookup for an owner, so that it uses that owner's share of all lookups. The text tells owners
/// apart.
pub async fn for_owner<F: Future>(owner: &str, call: F) -> F::Output {
    scoped(Some(owner.into()), call).await
}

/// Lets a part of a call, which another task may finish, be for the same owner.
pub(crate) fn scoped<F: Future>(owner: Owner, call: F) -> impl Future<Output = F::Output> {
    OWNER.scope(owner, call)
}

pub(crate) fn current_owner() -> Owner {
    OWNER.try_with(Clone::clone).ok().flatten()
}

/// Asks the name servers of `/etc/resolv.conf`, after `/etc/hosts`. Both are read again when they change.
///
/// No lookup takes longer than 3.5 seconds with its waiting, and an [owner](for_owner) and, for hosts that are not known, a
/// domain have a share of all lookups: [why](../../../docs/decisions/name-resolution.md). A host for which there is no capacity
/// is [not asked](Unresolved::NotAsked) for.
#[derive(Clone, derive_more::Debug)]
#[debug("SystemResolver {{ .. }}")]
pub struct SystemResolver(Arc<State>);

struct State {
    config: Arc<SystemConfig>,
    lookups: Mutex<HashMap<Key, Lookup>>,
    permits: LookupPermits,
    /// Hosts whose name servers did not respond.
    stalled: Cache<String, ()>,
    /// Hosts that resolved recently.
    known: Cache<String, ()>,
}

type Key = (String, Stage);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Stage {
    /// It waits until its owner may look up another host. So nothing waits for the lookups of other owners.
    WaitingFor(Owner),
    /// It is under way, for all.
    Running,
}

type Lookup = Shared<BoxFuture<'static, Result<Vec<IpAddr>, Unresolved>>>;

impl SystemResolver {
    /// Reads `/etc/resolv.conf` and `/etc/hosts`. Without name servers it asks the local host, as the C library
    /// does.
    ///
    /// # Errors
    /// A file exists and cannot be read, or the name servers cannot be set up.
    pub fn from_system() -> anyhow::Result<Self> {
        Self::from_files("/etc/resolv.conf", "/etc/hosts")
    }

    /// Like [`SystemResolver::from_system`], with files at other paths.
    ///
    /// # Errors
    /// A file exists and cannot be read, or the name servers cannot be set up.
    pub fn from_files(
        resolv_conf: impl Into<PathBuf>,
        hosts: impl Into<PathBuf>,
    ) -> anyhow::Result<Self> {
        let files = [resolv_conf.into(), hosts.into()];
        Ok(Self::new(SystemConfig::from_files(files)?))
    }

    /// Asks one name server and ignores `/etc/hosts`, for tests.
    ///
    /// # Errors
    /// The name server cannot be set up.
    pub fn with_name_server(address: SocketAddr) -> anyhow::Result<Self> {
        let mut server = NameServerConfig::udp(address.ip());
        for connection in &mut server.connections {
            connection.port = address.port();
        }
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        Ok(Self::new(SystemConfig::fixed(config)?))
    }

    fn new(config: SystemConfig) -> Self {
        let remembered = |time| {
            let cache = Cache::builder().max_capacity(MAX_REMEMBERED);
            cache.time_to_live(time).build()
        };
        Self(Arc::new(State {
            config: Arc::new(config),
            lookups: Mutex::default(),
            permits: LookupPermits::new(),
            stalled: remembered(STALL_PAUSE),
            known: remembered(KNOWN_FOR),
        }))
    }
}

impl State {
    async fn resolve(
        self: Arc<Self>,
        host: String,
        owner: Owner,
    ) -> Result<Vec<IpAddr>, Unresolved> {
        let name = Name::from_ascii(&host).map_err(|_| Unresolved::NoAddress)?;
        let names = self.config.current().await;
        let addresses = names.addresses(&name);
        if addresses.is_empty() {
            self.look_up(host, owner, name, names).await
        } else {
            Ok(addresses)
        }
    }

    /// Joins the lookup of a host, or begins one when the owner may.
    fn look_up(
        self: &Arc<Self>,
        host: String,
        owner: Owner,
        name: Name,
        names: Arc<Names>,
    ) -> Lookup {
        let is_known = self.known.contains_key(&host);
        let mut lookups = self.lookups.lock();
        let running = lookups.get(&(host.clone(), Stage::Running));
        let key = (host.clone(), Stage::WaitingFor(owner.clone()));
        if let Some(lookup) = running.or_else(|| lookups.get(&key)) {
            return lookup.clone();
        }
        let is_stalled = self.stalled.contains_key(&host);
        let entered = self.permits.try_enter(&owner, is_known);
        let Some(entered) = entered.filter(|_| !is_stalled) else {
            return ready(Err(Unresolved::NotAsked)).boxed().shared();
        };
        let state = Arc::clone(self);
        let waiting = Listed(Arc::clone(self), key.clone());
        let lookup = async move {
            let _listed = (entered, waiting);
            let permit = state.permits.acquire(&host, &owner, is_known);
            let permit = timeout(QUEUE_TIMEOUT, permit).await;
            let permit = permit.ok().flatten().ok_or(Unresolved::NotAsked)?;
            state.run(host, name, names, permit).await
        };
        let lookup = lookup.boxed().shared();
        lookups.insert(key, lookup.clone());
        // A task drives the lookup, so that it ends even if all callers give up.
        tokio::spawn(lookup.clone());
        lookup
    }

    /// Joins the lookup of a host that is under way, or begins it. The permit is kept as long as the latter.
    fn run(
        self: &Arc<Self>,
        host: String,
        name: Name,
        names: Arc<Names>,
        permit: LookupPermit,
    ) -> Lookup {
        let mut lookups = self.lookups.lock();
        let key = (host.clone(), Stage::Running);
        if let Some(lookup) = lookups.get(&key) {
            return lookup.clone();
        }
        let state = Arc::clone(self);
        let running = Listed(Arc::clone(self), key.clone());
        let lookup = async move {
            let _listed = (running, permit);
            state.ask(&host, name, &names).await
        };
        let lookup = lookup.boxed().shared();
        lookups.insert(key, lookup.clone());
        lookup
    }

    async fn ask(&self, host: &str, name: Name, names: &Names) -> Result<Vec<IpAddr>, Unresolved> {
        let started = Instant::now();
        let found = timeout(LOOKUP_TIMEOUT, names.dns.lookup_ip(name)).await;
        let addresses: Vec<_> = match found {
            Ok(Ok(found)) => found.iter().take(MAX_ADDRESSES).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        if !addresses.is_empty() {
            self.known.insert(host.to_owned(), ());
            return Ok(addresses);
        }
        if started.elapsed() >= STALL {
            self.stalled.insert(host.to_owned(), ());
        }
        Err(Unresolved::NoAddress)
    }
}

/// Removes a lookup from the list, however it ends.
struct Listed(Arc<State>, Key);

impl Drop for Listed {
    fn drop(&mut self) {
        let Self(state, key) = self;
        state.lookups.lock().remove(key);
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolved {
        let (state, host) = (Arc::clone(&self.0), host.to_ascii_lowercase());
        // The owner is that of the task that waits.
        Box::pin(async move { state.resolve(host, current_owner()).await })
    }
}

/// The right to look up a host, until it is dropped: of the lookups in its domain, unless the host is known, and of all.
type LookupPermit = (Option<InDomain>, Share<Owner>);
type InDomain = (Share<(String, Owner), Each>, Share<String, Each>);

/// Limits the concurrent lookups, and those that wait for it. Each limit has a share for each owner.
struct LookupPermits {
    pending: Arc<Shares<Owner>>,
    pending_known: Arc<Shares<Owner>>,
    any: Arc<Shares<Owner>>,
    known: Arc<Shares<Owner>>,
    domains: Arc<Shares<String, Each>>,
    owners_in_domains: Arc<Shares<(String, Owner), Each>>,
}

impl LookupPermits {
    fn new() -> Self {
        let max_waiting = MAX_PENDING + MAX_PENDING_KNOWN;
        Self {
            pending: Shares::new(Remainder(MAX_PENDING)),
            pending_known: Shares::new(Remainder(MAX_PENDING_KNOWN)),
            any: Shares::with_waiting(Remainder(MAX_LOOKUPS), max_waiting),
            known: Shares::with_waiting(Remainder(MAX_LOOKUPS_OF_KNOWN_HOSTS), max_waiting),
            domains: Shares::with_waiting(Each(MAX_LOOKUPS_PER_DOMAIN), max_waiting),
            owners_in_domains: Shares::with_waiting(
                Each(MAX_LOOKUPS_PER_DOMAIN_AND_OWNER),
                max_waiting,
            ),
        }
    }

    /// Gives an owner the right to wait for a lookup, unless too many do.
    fn try_enter(&self, owner: &Owner, is_known: bool) -> Option<Share<Owner>> {
        let enter = |pending: &Arc<Shares<_>>| pending.try_acquire(owner.clone(), 1).ok();
        let entered = enter(&self.pending);
        entered.or_else(|| enter(&self.pending_known).filter(|_| is_known))
    }

    async fn acquire(&self, host: &str, owner: &Owner, is_known: bool) -> Option<LookupPermit> {
        let any = self.any.acquire(owner.clone(), 1);
        if is_known {
            let permit = tokio::select! {
                biased;
                permit = self.known.acquire(owner.clone(), 1) => permit,
                permit = any => permit,
            };
            return Some((None, permit.ok()?));
        }
        // First the shares in the domain, so that a busy domain waits for itself.
        let domain = domain_of(host).to_owned();
        let in_domain = (domain.clone(), owner.clone());
        let own = self.owners_in_domains.acquire(in_domain, 1).await.ok()?;
        let of_domain = self.domains.acquire(domain, 1).await.ok()?;
        Some((Some((own, of_domain)), any.await.ok()?))
    }
}

/// The part of a host that is registered below a public suffix. A host without such a part is its own domain.
fn domain_of(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    psl::domain_str(host).unwrap_or(host)
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
