//! Loads deliveries ahead, in turn by owner, and takes what was loaded.

use std::sync::Arc;
use std::time::Instant;

use super::Dispatcher;
use crate::deliveries::worker::due_store::Trial;
use crate::deliveries::worker::loads::{Ended, LoadRequest, Loaded};
use crate::deliveries::worker::recorder::Settled;

/// Nothing is loaded while more results than this wait to be recorded.
const MAX_UNRECORDED: usize = 4_096;

impl Dispatcher {
    /// Loads deliveries for the lanes that can start them soon, in turn by owner.
    pub(super) fn load(&mut self) {
        let has_none = self.to_load.total() == 0 && self.suspects.is_empty();
        if !self.loads.has_capacity() || self.unrecorded > MAX_UNRECORDED || has_none {
            return;
        }
        let (now, limit) = (Instant::now(), self.max_in_flight_per_host);
        let (shards, mut others) = (self.shards(), Vec::new());
        let took_over = self.member.and_then(|member| member.took_over);
        let mut request = LoadRequest::new(took_over);
        let mut suspect = self.suspects.pop_front();
        let is_alone = suspect.is_some();
        while !request.is_full()
            && let Some(name) = if is_alone {
                suspect.take()
            } else {
                self.to_load.pop()
            }
        {
            let Some(lane) = self.lanes.get_mut(&name) else {
                continue;
            };
            lane.is_queued = false;
            if !shards.contain(&lane.host) {
                others.extend(lane.hold());
                continue;
            }
            let wanted = lane.wants(limit, now);
            let number = self.owners.room(&lane.owner, wanted, now);
            if number > 0 {
                let wanted = lane.take_wanted(number);
                self.owners.add(&lane.owner, wanted.number(), now);
                request.add(&name, wanted, lane.under_way.iter());
            } else if wanted > 0 {
                lane.is_queued = true;
                let waiting = self.without_room.entry(Arc::clone(&lane.owner));
                waiting.or_default().push_back(name);
            }
        }
        self.loads.start(request);
        self.give_back(others);
    }

    /// An owner may have more loaded than before.
    pub(super) fn make_room(&mut self, owner: &Arc<str>, number: usize) {
        self.owners.remove(owner, number);
        self.retry_without_room(owner, number);
    }

    /// Lets lanes of an owner that found no room try again, those that wait longest first.
    pub(super) fn retry_without_room(&mut self, owner: &Arc<str>, number: usize) {
        let Some(lanes) = self.without_room.get_mut(owner) else {
            return;
        };
        for name in lanes.drain(..number.min(lanes.len())) {
            self.to_load.push(owner, name);
        }
        if lanes.is_empty() {
            self.without_room.remove(owner);
        }
    }

    pub(super) fn take_ended_load(&mut self, ended: Ended) {
        match ended {
            Ended::Load(loaded) => self.take_loaded(loaded),
            Ended::Trial(trial) => {
                let Trial { row, lost, parked } = trial;
                if lost > 0 {
                    let deliveries = lost;
                    tracing::warn!(deliveries, "workers ended while they tried deliveries");
                }
                if parked > 0 {
                    tracing::error!(
                        deliveries = parked,
                        "parked deliveries that end workers; they are pending until they are redelivered"
                    );
                }
                if let Some(row) = row {
                    self.start_trial(row);
                }
            }
            Ended::Scan(None) => {}
            Ended::Scan(Some(found)) => {
                self.adopt_pauses(found.paused);
                self.add_scanned(found.due.into_iter().map(Into::into));
                self.loads.scan_on();
            }
        }
    }

    pub(super) fn take_loaded(&mut self, loaded: Loaded) {
        let (shards, is_alone) = (self.shards(), loaded.asked.len() == 1);
        let mut refused = Vec::new();
        for row in loaded.rows {
            let lane = self.lanes.get_mut(row.lane.as_str());
            let is_served = |host: &str| shards.contain(host) && !self.paused.contains(host);
            match lane.filter(|lane| is_served(&lane.host)) {
                Some(lane) => lane.push_ready(row),
                None => refused.push(row),
            }
        }
        self.refuse(refused);
        for name in loaded.with_more {
            if let Some(lane) = self.lanes.get_mut(&name) {
                lane.backlog = true;
            }
        }
        for name in loaded.asked {
            if let Some(lane) = self.lanes.get_mut(&name) {
                let missing = lane.load_ended(loaded.failed);
                if loaded.is_unreadable && is_alone {
                    tracing::error!(server.address = %lane.host, "deliveries of a user to a host cannot be read; it is tried again in a minute");
                    lane.set_aside(Instant::now());
                } else if loaded.is_unreadable {
                    lane.is_queued = true;
                    self.suspects.push_back(Arc::clone(&name));
                }
                let owner = Arc::clone(&lane.owner);
                self.make_room(&owner, missing);
            }
            self.enqueue_ready(&name);
            self.queue(&name);
            self.start_at(&name);
        }
    }

    /// The ends of these deliveries are recorded.
    pub(super) fn settle(&mut self, settled: Settled) {
        self.unrecorded = self.unrecorded.saturating_sub(settled.len());
        let mut trial_is_over = false;
        for (name, id) in settled {
            trial_is_over |= self.trial.take_if(|(trial, _)| *trial == id).is_some();
            if let Some(lane) = self.lanes.get_mut(&name) {
                lane.under_way.remove(&id);
            }
        }
        // Not before its end is recorded: if the next one ends this worker, it would be blamed for it.
        if trial_is_over {
            self.begin_trial(self.shards(), Instant::now());
        }
        self.give_up_shards();
    }
}
