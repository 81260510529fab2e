use std::sync::Arc;

use fairness::{Each, Remainder, Share, Shares};

use crate::owner::Owner;

/// The maximum number of hosts that are looked up or wait for it, and how many more may if they resolved recently.
/// The next ones are not looked up. One owner can have a quarter of them.
const MAX_PENDING: u64 = 4 * 2_048;
const MAX_PENDING_KNOWN: u64 = 4 * 2_048;
/// The maximum number of concurrent lookups of any hosts. One owner can have a quarter of them: what name servers that
/// do not respond hold does not come back when another owner needs it, so it has to be free before.
const MAX_LOOKUPS: u64 = 4 * 128;
/// How many more are for hosts that resolved recently. So hosts that never resolve, however many, cannot delay them.
const MAX_LOOKUPS_OF_KNOWN_HOSTS: u64 = 4 * 128;
/// The maximum number of concurrent lookups in one domain, so that no domain takes all of them.
const MAX_LOOKUPS_PER_DOMAIN: u64 = 64;
/// How many of them one owner can have.
const MAX_LOOKUPS_PER_DOMAIN_AND_OWNER: u64 = 16;

/// The right to look up a host, until it is dropped.
pub(crate) type LookupPermit = (
    Share<(String, Owner), Each>,
    Share<String, Each>,
    Share<Owner>,
);

/// Limits the concurrent lookups, and those that wait for it. Each limit has a share for each owner.
pub(crate) struct LookupPermits {
    pending: Arc<Shares<Owner>>,
    pending_known: Arc<Shares<Owner>>,
    any: Arc<Shares<Owner>>,
    known: Arc<Shares<Owner>>,
    domains: Arc<Shares<String, Each>>,
    owners_in_domains: Arc<Shares<(String, Owner), Each>>,
}

impl LookupPermits {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn try_enter(&self, owner: &Owner, is_known: bool) -> Option<Share<Owner>> {
        let enter = |pending: &Arc<Shares<_>>| pending.try_acquire(owner.clone(), 1).ok();
        let entered = enter(&self.pending);
        entered.or_else(|| enter(&self.pending_known).filter(|_| is_known))
    }

    /// Waits for the right to look up a host.
    pub(crate) async fn acquire(
        &self,
        host: &str,
        owner: &Owner,
        is_known: bool,
    ) -> Option<LookupPermit> {
        // First the shares in the domain, so that a busy domain waits for itself.
        let domain = domain_of(host).to_owned();
        let in_domain = (domain.clone(), owner.clone());
        let own = self.owners_in_domains.acquire(in_domain, 1).await.ok()?;
        let of_domain = self.domains.acquire(domain, 1).await.ok()?;
        let any = self.any.acquire(owner.clone(), 1);
        let permit = if is_known {
            tokio::select! {
                biased;
                permit = self.known.acquire(owner.clone(), 1) => permit,
                permit = any => permit,
            }
        } else {
            any.await
        };
        Some((own, of_domain, permit.ok()?))
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
