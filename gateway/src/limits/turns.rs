//! Keeps the requests of one client network from slowing down those of others.
//!
//! A network that has the gateway to itself may use nearly all of it. While other networks send requests, too,
//! only a few of its requests are worked on at a time, and the others wait.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_kit::client_network;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::routes::{Service, Work};

/// How long after its last request a network counts as one that needs the gateway.
const CONTENTION_WINDOW: Duration = Duration::from_secs(3);

/// How often a request that waits looks whether the other networks have stopped.
const RECHECK: Duration = Duration::from_secs(1);

/// How many requests of a network are worked on at a time while it is alone. More would not be faster, and the next
/// request of another network would wait for all of them.
const ALONE: usize = 64;

/// How much longer than a long request the pause after it is, so that a network takes a quarter of a core with them,
/// as long as they take less than a third of a second.
const PAUSE_PER_WORK: u32 = 3;
/// The longest such pause: a request may have waited for others, and not worked.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How many requests of a network with the same work are worked on at a time while other networks need the gateway.
const fn at_once(work: Work) -> usize {
    match work {
        Work::Long => 1,
        Work::Short => 2,
        Work::Lookup => 4,
    }
}

/// The requests of all networks that are worked on or wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    recent: RecentNetworks,
    /// Only lines in which a request is worked on, or that had a pause since the last cleanup.
    lines: HashMap<Key, Line>,
}

/// The requests of a network that compete with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    network: IpAddr,
    service: Service,
    work: Work,
}

#[derive(Debug, Default)]
struct Line {
    active: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
    /// When the pause ends.
    pause_end: Option<Instant>,
}

impl Line {
    fn is_idle(&self, now: Instant) -> bool {
        self.active == 0 && self.pause_end.is_none_or(|end| end <= now)
    }
}

/// The two networks that sent requests last, the latest one first.
#[derive(Debug, Default)]
struct RecentNetworks([Option<(IpAddr, Instant)>; 2]);

impl RecentNetworks {
    fn record(&mut self, network: IpAddr, now: Instant) {
        let [latest, before] = &mut self.0;
        if latest.is_some_and(|(recorded, _)| recorded != network) {
            *before = *latest;
        }
        *latest = Some((network, now));
    }

    /// Whether another network than this one needs the gateway, too.
    fn compete_with(&self, network: IpAddr, now: Instant) -> bool {
        let mut others = self.0.iter().flatten();
        others.any(|(other, at)| {
            *other != network && now.saturating_duration_since(*at) < CONTENTION_WINDOW
        })
    }
}

impl State {
    /// Whether one more request may be worked on.
    fn may_start(&self, key: Key, active: usize, now: Instant) -> bool {
        let is_alone = !self.recent.compete_with(key.network, now);
        active < if is_alone { ALONE } else { at_once(key.work) }
    }

    /// The requests whose turns begin now, in the order of their arrival.
    fn next(&mut self, key: Key, now: Instant) -> Vec<oneshot::Sender<Turn>> {
        let Some(mut line) = self.lines.remove(&key) else {
            return Vec::new();
        };
        let mut next = Vec::new();
        while self.may_start(key, line.active, now)
            && let Some(waiting) = line.waiting.pop_front()
        {
            if !waiting.is_closed() {
                line.active += 1;
                next.push(waiting);
            }
        }
        if !line.is_idle(now) {
            self.lines.insert(key, line);
        }
        next
    }
}

impl Turns {
    /// Waits until a request may be sent to its service.
    ///
    /// Requests of a network that wait for the same service with the same [`Work`] are served in the order of
    /// their arrival. The caller limits how many there are, and for how long they wait.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        client: IpAddr,
        service: Service,
        work: Work,
    ) -> Turn {
        let key = Key {
            network: client_network(client),
            service,
            work,
        };
        let mut turn = match self.start_or_wait(key, Instant::now()) {
            Ok(turn) => turn,
            Err(waiting) => {
                metrics::counter!("gateway_requests_delayed_total").increment(1);
                self.turn_of(key, waiting).await
            }
        };
        if let Some(end) = self.pause_end(key, Instant::now()) {
            sleep_until(end).await;
        }
        turn.start = Some(Instant::now());
        turn
    }

    /// Records that a network sends requests, without a turn for this one.
    pub(crate) fn record(&self, client: IpAddr) {
        let network = client_network(client);
        self.state().recent.record(network, Instant::now());
    }

    async fn turn_of(self: &Arc<Self>, key: Key, mut waiting: oneshot::Receiver<Turn>) -> Turn {
        loop {
            self.recheck(key, Instant::now());
            if let Ok(turn) = timeout(RECHECK, &mut waiting).await {
                // A line is kept as long as a request waits in it.
                return turn.unwrap_or_else(|_| self.turn(key));
            }
        }
    }

    /// Starts a turn at once, or returns what it will come from.
    fn start_or_wait(
        self: &Arc<Self>,
        key: Key,
        now: Instant,
    ) -> Result<Turn, oneshot::Receiver<Turn>> {
        let mut state = self.state();
        state.recent.record(key.network, now);
        let active = state.lines.get(&key).map_or(0, |line| line.active);
        let may_start = state.may_start(key, active, now);
        let line = state.lines.entry(key).or_default();
        if may_start && line.waiting.is_empty() {
            line.active += 1;
            return Ok(self.turn(key));
        }
        let (sender, receiver) = oneshot::channel();
        line.waiting.push_back(sender);
        Err(receiver)
    }

    /// When the pause of a line ends, if it has one and another network needs the gateway.
    fn pause_end(&self, key: Key, now: Instant) -> Option<Instant> {
        let state = self.state();
        let end = state.lines.get(&key)?.pause_end?;
        (end > now && state.recent.compete_with(key.network, now)).then_some(end)
    }

    /// Forgets the lines whose pause is over.
    pub(crate) fn remove_idle(&self, now: Instant) {
        self.state().lines.retain(|_, line| !line.is_idle(now));
    }

    /// Ends a turn, and starts those that may begin now.
    fn end(self: &Arc<Self>, key: Key, took: Duration, now: Instant) {
        let mut state = self.state();
        if let Some(line) = state.lines.get_mut(&key) {
            line.active = line.active.saturating_sub(1);
            if key.work == Work::Long {
                let end = now + (took * PAUSE_PER_WORK).min(MAX_PAUSE);
                line.pause_end = line.pause_end.max(Some(end));
            }
        }
        let next = state.next(key, now);
        drop(state);
        self.start(key, next);
    }

    /// Starts the turns that may begin now, because other networks have stopped.
    fn recheck(self: &Arc<Self>, key: Key, now: Instant) {
        let next = self.state().next(key, now);
        self.start(key, next);
    }

    fn start(self: &Arc<Self>, key: Key, next: Vec<oneshot::Sender<Turn>>) {
        for waiting in next {
            // If its caller is gone, the turn comes back and ends, too. So the state must not be locked here.
            drop(waiting.send(self.turn(key)));
        }
    }

    fn turn(self: &Arc<Self>, key: Key) -> Turn {
        Turn {
            turns: Arc::clone(self),
            key,
            start: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being worked on. Dropping it ends its turn.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    key: Key,
    /// When the work began; `None` while the turn still waits for the end of a pause.
    start: Option<Instant>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        let took = self.start.map_or(Duration::ZERO, |start| now - start);
        self.turns.end(self.key, took, now);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::pin::pin;
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::future::{FutureExt as _, join_all};
    use tokio::time::Instant;

    use super::{ALONE, CONTENTION_WINDOW, Key, RecentNetworks, Turn, Turns};
    use crate::routes::{Service, Work};

    fn client(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    /// The turn of a request, if it need not wait.
    fn start(turns: &Arc<Turns>, last: u8, work: Work) -> Option<Turn> {
        let turn = turns.wait(client(last), Service::User, work);
        turn.now_or_never()
    }

    /// All turns of the first network for short requests, while the second one needs the gateway, too.
    fn contended(turns: &Arc<Turns>) -> Vec<Turn> {
        drop(start(turns, 2, Work::Short));
        start_all(turns, 1, Work::Short)
    }

    fn start_all(turns: &Arc<Turns>, last: u8, work: Work) -> Vec<Turn> {
        std::iter::from_fn(|| start(turns, last, work))
            .take(100)
            .collect()
    }

    #[tokio::test]
    async fn a_network_that_is_alone_does_not_wait() {
        let turns = Arc::default();
        assert_eq!(start_all(&turns, 1, Work::Long).len(), ALONE);
        assert_eq!(start_all(&turns, 1, Work::Short).len(), ALONE);
    }

    #[tokio::test]
    async fn networks_that_send_at_the_same_time_get_a_few_turns_each() {
        let turns = Arc::default();
        drop(start(&turns, 1, Work::Short));
        let second = start_all(&turns, 2, Work::Short);
        let first = start_all(&turns, 1, Work::Short);
        assert_eq!((first.len(), second.len()), (2, 2));
        assert_eq!(start_all(&turns, 1, Work::Long).len(), 1);
        let other_service = turns.wait(client(1), Service::PeopleTask, Work::Short);
        assert!(other_service.now_or_never().is_some());
    }

    #[tokio::test]
    async fn requests_of_a_network_are_served_in_the_order_of_their_arrival() {
        let turns: Arc<Turns> = Arc::default();
        let mut active = contended(&turns);
        let wait = || turns.wait(client(1), Service::User, Work::Short);
        let (mut first, mut second) = (pin!(wait()), pin!(wait()));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(active.pop());
        assert!(second.as_mut().now_or_never().is_none());
        let first = first.now_or_never().expect("its turn has come");
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn those_who_left_while_they_waited_keep_no_turn() {
        let turns: Arc<Turns> = Arc::default();
        let mut active = contended(&turns);
        let wait = || turns.wait(client(1), Service::User, Work::Short);
        let (mut before, mut after) = (Box::pin(wait()), Box::pin(wait()));
        let mut last = pin!(wait());
        for waiting in [&mut before, &mut after] {
            assert!(waiting.now_or_never().is_none());
        }
        assert!(last.as_mut().now_or_never().is_none());
        drop(before);
        drop(active.pop());
        // This one leaves when its turn has already come.
        drop(after);
        let last = last.now_or_never();
        assert!(last.is_some() && start(&turns, 1, Work::Short).is_none());
        drop(last);
        assert!(start(&turns, 1, Work::Short).is_some());
    }

    #[tokio::test]
    async fn everything_that_waits_starts_when_no_other_network_sends_requests_any_more() {
        let turns: Arc<Turns> = Arc::default();
        let active = contended(&turns);
        let wait = |_| turns.wait(client(1), Service::User, Work::Short);
        let mut waiting = pin!(join_all((0..10).map(wait)));
        assert!(waiting.as_mut().now_or_never().is_none());
        let later = Instant::now() + CONTENTION_WINDOW;
        turns.end(active[0].key, Duration::ZERO, later);
        let turns_of_all = waiting.now_or_never().expect("all turns have come");
        assert_eq!(turns_of_all.len(), 10);
    }

    #[tokio::test]
    async fn networks_without_requests_are_forgotten() {
        let turns = Arc::default();
        let active: Vec<_> = (1..=10)
            .map(|last| start(&turns, last, Work::Short))
            .collect();
        assert_eq!(turns.state().lines.len(), 10);
        drop(active);
        assert!(turns.state().lines.is_empty());
    }

    #[tokio::test]
    async fn a_network_competes_with_others_until_a_while_after_its_last_request() {
        let (mut recent, start) = (RecentNetworks::default(), Instant::now());
        recent.record(client(1), start);
        let later = start + Duration::from_secs(1);
        recent.record(client(2), later);
        recent.record(client(2), later);
        let competes = |last, at| recent.compete_with(client(last), at);
        assert!(competes(1, later) && competes(2, later) && competes(3, later));
        let end = start + CONTENTION_WINDOW;
        assert_eq!((competes(1, end), competes(2, end)), (true, false));
        let end = later + CONTENTION_WINDOW;
        assert!(!competes(1, end) && !competes(3, end));
    }

    #[tokio::test]
    async fn long_requests_of_a_network_leave_a_pause_only_while_others_send_requests() {
        let turns: Arc<Turns> = Arc::default();
        let (took, now) = (Duration::from_millis(100), Instant::now());
        let key = Key {
            network: client(1),
            service: Service::User,
            work: Work::Long,
        };
        turns.start_or_wait(key, now).unwrap().forget();
        turns.end(key, took, now);
        assert_eq!(turns.pause_end(key, now), None);

        drop(start(&turns, 2, Work::Short));
        assert_eq!(turns.pause_end(key, now), Some(now + 3 * took));
        assert_eq!(turns.pause_end(key, now + 3 * took), None);
        turns.remove_idle(now);
        assert_eq!(turns.state().lines.len(), 1);
        turns.remove_idle(now + 3 * took);
        assert!(turns.state().lines.is_empty());
    }

    impl Turn {
        /// Does not end by itself.
        fn forget(self) {
            std::mem::forget(self);
        }
    }
}
