use std::collections::HashMap;
use std::sync::Arc;

use fairness::FairQueue;

use crate::deliveries::group_of;

/// The largest number of lanes that wait in one place.
const MAX_WAITING: usize = 100_000;

/// Lanes that wait. Groups take turns, and the owners of a group, too.
pub(super) struct WaitingLanes {
    groups: FairQueue<Arc<str>, Arc<str>>,
    lanes: LanesOfGroups,
}

/// The lanes of each group, whose owners take turns.
#[derive(Default)]
pub(super) struct LanesOfGroups(HashMap<Arc<str>, FairQueue<Arc<str>, Arc<str>>>);

impl LanesOfGroups {
    /// Adds a lane of an owner. There is a place for each lane of a worker.
    pub(super) fn push(&mut self, owner: &Arc<str>, lane: Arc<str>) -> bool {
        let lanes = self.0.entry(group_key(&self.0, owner));
        let lanes = lanes.or_insert_with(|| FairQueue::new(MAX_WAITING));
        lanes.push(owner, lane).is_ok()
    }

    pub(super) fn pop(&mut self, group: &str) -> Option<Arc<str>> {
        let lanes = self.0.get_mut(group)?;
        let lane = lanes.pop();
        if lanes.total() == 0 {
            self.0.remove(group);
        }
        lane
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl WaitingLanes {
    pub(super) fn new() -> Self {
        Self {
            groups: FairQueue::new(MAX_WAITING),
            lanes: LanesOfGroups::default(),
        }
    }

    pub(super) fn total(&self) -> usize {
        self.groups.total()
    }

    /// Adds a lane of an owner. There is a place for each lane of a worker.
    pub(super) fn push(&mut self, owner: &Arc<str>, lane: Arc<str>) -> bool {
        let group = group_key(&self.lanes.0, owner);
        let is_added = self.groups.push(&group, Arc::clone(&group)).is_ok();
        is_added && self.lanes.push(owner, lane)
    }

    /// The groups whose lanes wait.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        self.lanes.0.keys().map(|group| &**group)
    }

    pub(super) fn has_other_than(&self, group: &Arc<str>) -> bool {
        self.groups.total() > self.groups.total_of(group)
    }

    /// Whether a lane of a group that is none of these waits and may start.
    pub(super) fn has_startable(
        &self,
        others: &HashMap<Arc<str>, u32>,
        may_start: impl Fn(&Arc<str>) -> bool,
    ) -> bool {
        let mut lanes = self.lanes.0.iter();
        lanes.any(|(group, lanes)| !others.contains_key(group) && lanes.items().any(&may_start))
    }

    pub(super) fn pop(&mut self) -> Option<Arc<str>> {
        let group = self.groups.pop()?;
        self.lanes.pop(&group)
    }
}

/// The group of an owner, as the map knows it.
pub(super) fn group_key<T>(known: &HashMap<Arc<str>, T>, owner: &Arc<str>) -> Arc<str> {
    let group = group_of(owner);
    match known.get_key_value(group) {
        Some((known, _)) => Arc::clone(known),
        None if group.len() == owner.len() => Arc::clone(owner),
        None => group.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::WaitingLanes;

    #[test]
    fn groups_take_turns_and_so_do_the_owners_of_a_group() {
        let mut waiting = WaitingLanes::new();
        for (owner, lane) in [
            ("g/a", "a1"),
            ("g/a", "a2"),
            ("g/b", "b1"),
            ("c", "c1"),
            ("c", "c2"),
        ] {
            assert!(waiting.push(&owner.into(), lane.into()));
        }
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let order: Vec<_> = order.iter().map(|lane| &**lane).collect();
        assert_eq!(order, ["a1", "c1", "b1", "c2", "a2"]);
        assert!(waiting.lanes.0.is_empty());
    }
}
