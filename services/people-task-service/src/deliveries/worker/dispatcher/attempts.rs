//! Starts attempts where a host and the worker have a place, and takes what has ended.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinError;

use super::Dispatching;
use crate::deliveries::worker::attempt::AttemptResult;
use crate::deliveries::worker::claims_store::ClaimedDelivery;
use crate::deliveries::worker::report;
use crate::deliveries::worker::results_store::ClaimEnd;

impl Dispatching {
    /// Starts what could not be started when it was claimed: hosts may be tried again, and the worker may have got places.
    pub(super) fn start_ready(&mut self) {
        let ready = self.hosts.iter().filter(|(_, host)| host.has_ready());
        let ready: Vec<_> = ready.map(|(name, _)| Arc::clone(name)).collect();
        for name in ready {
            self.start(&name);
        }
    }

    /// Starts what a host has places for.
    pub(super) fn start(&mut self, name: &Arc<str>) {
        let Some(member) = self.member().filter(|_| !self.paused.contains(name)) else {
            return;
        };
        let now = Instant::now();
        while self.has_free_attempt(name)
            && let Some(host) = self.hosts.get_mut(name)
            && let Some(claimed) = host.start_next(member.places, now)
        {
            self.spawn(claimed);
        }
        if let Some(host) = self.hosts.get(name).filter(|host| host.has_ready())
            && !self.has_free_attempt(name)
        {
            self.blocked.push(name, host.in_flight() > 0);
        }
    }

    fn has_free_attempt(&self, name: &Arc<str>) -> bool {
        let max = self.dispatcher.max_in_flight;
        let has_none = self
            .hosts
            .get(name)
            .is_some_and(|host| host.in_flight() == 0);
        let limit = if has_none { max } else { shared_attempts(max) };
        self.attempts.len() < limit
    }

    fn start_blocked(&mut self) {
        let max = self.dispatcher.max_in_flight;
        while self.attempts.len() < max
            && let Some(name) = self.blocked.pop(self.attempts.len() < shared_attempts(max))
        {
            self.start(&name);
        }
    }

    fn spawn(&mut self, claimed: ClaimedDelivery) {
        let sender = Arc::clone(&self.dispatcher.sender);
        self.attempts
            .spawn(async move { sender.attempt(claimed).await });
    }

    /// Takes every attempt that has already ended.
    pub(super) fn take_ended(&mut self) {
        while let Some(ended) = self.attempts.try_join_next() {
            self.finish(ended);
        }
    }

    pub(super) fn finish(&mut self, ended: Result<AttemptResult, JoinError>) {
        let result = match ended {
            Ok(result) => result,
            // A panic of a receiver's call is a result, so this one is the worker's own. It stops the process, and another
            // worker releases the claims.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => return,
            },
        };
        let name = Arc::clone(&result.lease.host);
        if self.suspect == Some(result.lease.delivery) {
            self.suspect = None;
        }
        if let Some(host) = self.hosts.get_mut(&name) {
            if host.request_ended(result.health, result.duration, Instant::now()) {
                report::circuit_opened();
            }
            let surplus = host.take_surplus();
            self.release(surplus);
        }
        self.dispatcher.ends.send(ClaimEnd::Attempted(result));
        // Hosts that had to wait come before this one.
        self.start_blocked();
        self.start(&name);
        self.changed.insert(name);
    }
}

/// How many attempts all hosts share. The others, a quarter, are kept for hosts that have none.
fn shared_attempts(max: usize) -> usize {
    max - max / 4
}
