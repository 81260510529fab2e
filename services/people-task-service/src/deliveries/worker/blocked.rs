//! Hosts with claims that found no free attempt.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// They wait in two queues, because a host without any request may use attempts that others may not.
#[derive(Default)]
pub(super) struct BlockedHosts {
    without_requests: VecDeque<Arc<str>>,
    others: VecDeque<Arc<str>>,
    names: HashSet<Arc<str>>,
}

impl BlockedHosts {
    /// Adds a host, unless it waits already.
    pub(super) fn push(&mut self, name: &Arc<str>, has_requests: bool) {
        if self.names.insert(Arc::clone(name)) {
            let queue = if has_requests {
                &mut self.others
            } else {
                &mut self.without_requests
            };
            queue.push_back(Arc::clone(name));
        }
    }

    /// Takes the host that has waited longest, of those without requests if there are some; of the others only if they
    /// may be started, too.
    pub(super) fn pop(&mut self, others_may_start: bool) -> Option<Arc<str>> {
        let mut next = self.without_requests.pop_front();
        if next.is_none() && others_may_start {
            next = self.others.pop_front();
        }
        let next = next?;
        self.names.remove(&next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::BlockedHosts;

    #[test]
    fn hosts_without_requests_come_first_and_each_host_waits_once() {
        let names = ["a", "b", "c"].map(Arc::<str>::from);
        let [a, b, c] = &names;
        let mut blocked = BlockedHosts::default();
        for (name, has_requests) in [(a, true), (b, true), (a, true), (c, false), (c, true)] {
            blocked.push(name, has_requests);
        }
        assert_eq!(blocked.pop(false).as_ref(), Some(c));
        assert_eq!(blocked.pop(false), None);
        assert_eq!(blocked.pop(true).as_ref(), Some(a));
        assert_eq!(blocked.pop(true).as_ref(), Some(b));
        assert_eq!(blocked.pop(true), None);
        blocked.push(a, false);
        assert_eq!(blocked.pop(false).as_ref(), Some(a));
    }
}
