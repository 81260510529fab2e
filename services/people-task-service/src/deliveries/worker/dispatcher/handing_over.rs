//! Takes shards, and gives them up.

use std::time::{Duration, Instant};

use super::Dispatching;
use crate::deliveries::worker::lane::Lane;
use crate::deliveries::worker::ownership::Member;
use crate::deliveries::worker::shards::Shards;

/// How long nothing is started for a shard that another worker should have and that is busy.
const DRAINING: Duration = Duration::from_secs(1);

impl Dispatching {
    /// Takes what the ownership says of this worker. Deliveries of shards that it has lost, or that others may have had
    /// meanwhile, are not its own any more.
    pub(super) fn adopt_member(&mut self) {
        let before = self.member;
        self.member = *self.dispatcher.member.borrow_and_update();
        let shards =
            |member: Option<Member>| member.map(|member| member.shards).unwrap_or_default();
        let id = |member: Option<Member>| member.map(|member| member.id);
        let (before, id_before) = (shards(before), id(before));
        let owned = shards(self.member);
        self.given_up = Shards(self.given_up.0 & owned.0);
        let kept = if id_before == id(self.member) {
            owned
        } else {
            Shards::default()
        };
        let lost = before.without(kept);
        if lost != Shards::default() {
            self.drop_lanes(lost);
        }
        if owned.without(before) != Shards::default() {
            self.dispatcher.loads.scan(false);
        }
    }

    pub(super) fn drop_lanes(&mut self, shards: Shards) {
        let lanes = self.lanes.values_mut();
        let lanes = lanes.filter(|lane| shards.contain(&lane.host));
        let unstarted: Vec<_> = lanes.flat_map(Lane::hold).collect();
        self.give_back(unstarted);
    }

    /// Gives shards up that others should have and of which nothing is under way. If there are too few, nothing is started
    /// for some of the others for a moment.
    pub(super) fn give_up_shards(&mut self) {
        let Some(member) = self.member.filter(|member| member.surplus > 0) else {
            self.draining = None;
            return;
        };
        let lanes = self.lanes.values().filter(|lane| lane.is_busy());
        let busy = lanes.fold(0, |busy, lane| busy | Shards::of_host(&lane.host).0);
        let idle = member.shards.without(self.given_up).without(Shards(busy));
        let surplus = member.surplus.saturating_sub(self.given_up.number());
        let given_up = idle.first(surplus);
        if given_up != Shards::default() {
            self.given_up.0 |= given_up.0;
            self.drop_lanes(given_up);
            self.dispatcher.given_up.add(given_up);
        }
        let now = Instant::now();
        let missing = surplus.saturating_sub(given_up.number());
        if self.draining.is_some_and(|(_, until)| until <= now) {
            self.draining = None;
        }
        if self.draining.is_none() && missing > 0 && self.next_drain <= now {
            let shards = member.shards.without(self.given_up).first(missing);
            self.draining = Some((shards, now + DRAINING));
            self.next_drain = now + DRAINING * 10;
            self.drop_lanes(shards);
        }
    }
}
