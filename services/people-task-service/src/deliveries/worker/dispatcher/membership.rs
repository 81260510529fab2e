//! Follows the ownership: which hosts this worker serves, and what it gives up.

use std::time::{Duration, Instant};

use super::Dispatcher;
use crate::deliveries::worker::lane::Lane;
use crate::deliveries::worker::ownership::{Member, Wishes};
use crate::deliveries::worker::shards::Shards;

/// How long nothing is started for a shard that another worker should have and that is busy.
const DRAINING: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Whether no other worker can take this one for dead.
    pub(super) fn is_alive(&self) -> bool {
        let member = self.member;
        member.is_some_and(|member| Instant::now() < member.alive_until)
    }

    /// The shards that this worker serves now. None, if others may take it for dead.
    pub(super) fn shards(&self) -> Shards {
        let Some(member) = self.member.filter(|_| self.is_alive()) else {
            return Shards::default();
        };
        let draining = self.draining.unzip().0.unwrap_or_default();
        member.shards.without(self.given_up()).without(draining)
    }

    /// Shards that are given up, until the ownership has done so.
    pub(super) fn given_up(&self) -> Shards {
        self.wishes.borrow().given_up
    }

    /// Takes what the ownership says of this worker. Deliveries of shards that it has lost, or that others may have had
    /// meanwhile, are not its own any more.
    pub(super) fn adopt_member(&mut self) {
        let (before, was_alive) = (self.member, self.is_alive());
        self.member = *self.membership.borrow_and_update();
        let is_same = before.map(|member| member.id) == self.member.map(|member| member.id);
        let shards = |member: Option<Member>| member.map(|member| member.shards);
        let before = shards(before).unwrap_or_default();
        let owned = shards(self.member).unwrap_or_default();
        // Each beat of the ownership tells of a member, and it beats as soon as the wishes change.
        self.wishes.send_if_modified(|wishes| {
            let before = *wishes;
            wishes.adopt(owned);
            *wishes != before
        });
        let kept = if is_same { owned } else { Shards::default() };
        let lost = before.without(kept);
        if lost != Shards::default() {
            self.drop_lanes(lost);
        }
        // While it was not alive, it forgot what waits.
        if owned.without(before) != Shards::default() || !was_alive && self.is_alive() {
            self.loads.scan_all();
        }
    }

    pub(super) fn drop_lanes(&mut self, shards: Shards) {
        let lanes = self.lanes.values_mut();
        let lanes = lanes.filter(|lane| shards.contain(&lane.host));
        let unstarted: Vec<_> = lanes.flat_map(Lane::hold).collect();
        self.give_back(unstarted);
    }

    /// Gives shards up that others should have and of which nothing is under way. If there are too few, nothing is started
    /// for some of the others for a moment, and their slow requests are ended.
    pub(super) fn give_up_shards(&mut self) {
        let Some(member) = self.member.filter(|member| member.surplus > 0) else {
            self.draining = None;
            return;
        };
        let lanes = self.lanes.values().filter(|lane| lane.is_busy());
        let busy = lanes.fold(0, |busy, lane| busy | Shards::of_host(&lane.host).0);
        let kept = member.shards.without(self.given_up());
        let surplus = member.surplus.saturating_sub(self.given_up().number());
        let given_up = kept.without(Shards(busy)).first(surplus);
        if given_up != Shards::default() {
            let give_up = |wishes: &mut Wishes| wishes.given_up.0 |= given_up.0;
            self.wishes.send_modify(give_up);
            self.drop_lanes(given_up);
        }
        let now = Instant::now();
        let missing = surplus.saturating_sub(given_up.number());
        self.draining.take_if(|(_, until)| *until <= now);
        if self.draining.is_none() && missing > 0 && self.next_drain <= now {
            let shards = kept.without(given_up).first(missing);
            self.draining = Some((shards, now + DRAINING));
            self.next_drain = now + DRAINING * 10;
            self.drop_lanes(shards);
        }
        if let Some((shards, _)) = self.draining {
            self.end_slow(shards);
        }
    }
}
