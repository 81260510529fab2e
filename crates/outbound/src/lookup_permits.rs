use std::sync::Arc;

use fairness::{Each, Shares};
use tokio::sync::Semaphore;

/// The maximum number of concurrent lookups of any hosts.
const MAX_LOOKUPS: usize = 128;
/// How many more are for hosts that resolved recently. So hosts that never resolve, however many, cannot delay them.
const MAX_LOOKUPS_OF_KNOWN_HOSTS: usize = 128;
/// The maximum number of concurrent lookups in one domain, so that no domain takes all of them.
const MAX_LOOKUPS_PER_DOMAIN: u64 = 16;

/// Limits the concurrent lookups.
pub(crate) struct LookupPermits {
    any: Semaphore,
    known: Semaphore,
    domains: Arc<Shares<String, Each>>,
}

impl LookupPermits {
    /// At most `max_waiting` lookups wait.
    pub(crate) fn new(max_waiting: u64) -> Self {
        Self {
            any: Semaphore::new(MAX_LOOKUPS),
            known: Semaphore::new(MAX_LOOKUPS_OF_KNOWN_HOSTS),
            domains: Shares::with_waiting(Each(MAX_LOOKUPS_PER_DOMAIN), max_waiting),
        }
    }

    /// Waits for the right to look up a host, which lasts until it is dropped.
    pub(crate) async fn acquire(&self, host: &str, is_known: bool) -> Option<impl Sized> {
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
