/// The number of shards. The migration that creates the rows has it, too.
pub(super) const SHARDS: u32 = u64::BITS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shards(pub(super) u64);

impl Shards {
    pub(super) const ALL: Self = Self(u64::MAX);

    pub(super) fn contain(self, host: &str) -> bool {
        self.0 & Self::of_host(host).0 != 0
    }

    /// The shard of a host. Every worker and every version must find the same one: FNV-1a, folded to six bits.
    pub(super) fn of_host(host: &str) -> Self {
        let hash = host.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(1 << ((hash ^ (hash >> 32)) % u64::from(SHARDS)))
    }

    pub(super) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub(super) fn number(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) fn first(self, number: u32) -> Self {
        self.ids().into_iter().take(number as usize).collect()
    }

    /// Their numbers, as `delivery_shards` has them.
    pub(super) fn ids(self) -> Vec<i32> {
        (0..64).filter(|id| self.0 & (1 << id) != 0).collect()
    }
}

impl FromIterator<i32> for Shards {
    fn from_iter<T: IntoIterator<Item = i32>>(ids: T) -> Self {
        let valid = ids.into_iter().filter(|id| (0..64).contains(id));
        Self(valid.fold(0, |set, id| set | 1 << id))
    }
}

#[cfg(test)]
mod tests {
    use super::Shards;

    #[test]
    fn every_version_finds_the_same_shard_for_a_host() {
        for (host, shard) in [("engine.example.com", 14), ("127.0.0.1", 15), ("[::1]", 0)] {
            assert_eq!(Shards::of_host(host).ids(), [shard], "{host}");
        }
    }

    #[test]
    fn hosts_are_spread_over_all_shards() {
        let hosts = (0..2_000).map(|number| format!("hooks-{number}.example.com"));
        let shards = hosts.fold(0, |shards, host| shards | Shards::of_host(&host).0);
        assert_eq!(shards, u64::MAX);
        let some: Shards = [1, 5, 63].into_iter().collect();
        assert_eq!(some.first(2).ids(), [1, 5]);
        assert_eq!(some.without(some.first(2)).ids(), [63]);
    }
}
