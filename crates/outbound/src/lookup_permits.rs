use std::sync::Arc;

use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of concurrent lookups of any hosts.
const MAX_LOOKUPS: usize = 128;
/// How many more are for hosts that resolved recently. So hosts that never resolve, however many, cannot delay them.
const MAX_LOOKUPS_OF_KNOWN_HOSTS: usize = 128;
/// The maximum number of concurrent lookups in one domain, so that no domain takes all of them.
const MAX_LOOKUPS_PER_DOMAIN: usize = 16;
/// The maximum number of domains that are remembered.
const MAX_DOMAINS: u64 = 10_000;

/// Limits the concurrent lookups.
pub(crate) struct LookupPermits {
    any: Arc<Semaphore>,
    known: Arc<Semaphore>,
    /// The share of each domain.
    shares: Cache<String, Arc<Semaphore>>,
}

impl LookupPermits {
    pub(crate) fn new() -> Self {
        Self {
            any: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            known: Arc::new(Semaphore::new(MAX_LOOKUPS_OF_KNOWN_HOSTS)),
            shares: Cache::new(MAX_DOMAINS),
        }
    }

    /// Waits for the right to look up a host.
    pub(crate) async fn acquire(
        &self,
        host: &str,
        is_known: bool,
    ) -> Option<[OwnedSemaphorePermit; 2]> {
        let share = || Arc::new(Semaphore::new(MAX_LOOKUPS_PER_DOMAIN));
        let share = self.shares.get_with(domain_of(host).to_owned(), share);
        // First the share, so that a busy domain waits for itself.
        let share = share.acquire_owned().await.ok()?;
        let any = Arc::clone(&self.any).acquire_owned();
        let permit = if is_known {
            tokio::select! {
                biased;
                permit = Arc::clone(&self.known).acquire_owned() => permit,
                permit = any => permit,
            }
        } else {
            any.await
        };
        Some([share, permit.ok()?])
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
