//! Hosts with claims that found no free attempt.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// They wait in two queues, because a host without any request may use attempts that others may not.
#[derive(Default)]
pub(super) struct BlockedHosts {
    without_requests: VecDeque<Arc<str>>,
    others: VecDeque<Arc<str>>,
    /// The hosts that wait, and whether they are among the others.
    names: HashMap<Arc<str>, bool>,
}

impl BlockedHosts {
    /// Adds a host, unless it waits already. One that has no requests any more changes queues.
    pub(super) fn push(&mut self, name: &Arc<str>, has_requests: bool) {
        let waits_among_others = self.names.get(name).copied();
        if waits_among_others.is_some_and(|among_others| has_requests || !among_others) {
            return;
        }
        self.names.insert(Arc::clone(name), has_requests);
        let queue = if has_requests {
            &mut self.others
        } else {
            &mut self.without_requests
        };
        queue.push_back(Arc::clone(name));
    }

    /// Takes the host that has waited longest, of those without requests if there are some; of the others only if they
    /// may be started, too.
    pub(super) fn pop(&mut self, others_may_start: bool) -> Option<Arc<str>> {
        loop {
            let mut next = self.without_requests.pop_front();
            if next.is_none() && others_may_start {
                next = self.others.pop_front();
            }
            let next = next?;
            // One that has changed queues was taken before.
            if self.names.remove(&next).is_some() {
                return Some(next);
            }
        }
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
        for (name, has_requests) in [(a, true), (b, true), (b, false)] {
            blocked.push(name, has_requests);
        }
        assert_eq!(blocked.pop(false).as_ref(), Some(b));
        assert_eq!(blocked.pop(true).as_ref(), Some(a));
        assert_eq!(blocked.pop(true), None);
    }
}
