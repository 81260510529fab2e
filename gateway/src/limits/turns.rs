//! Keeps the requests of one client network from slowing down those of others.
//!
//! A network that has the gateway to itself may use nearly all of it. While other networks send requests, too,
//! only a few of its requests are worked on at a time, and the others wait.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairness::{Demand, Each, Recent, Refused, Rule, Share, Shares};
use http_kit::client_network;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::routes::{Service, Work};

/// How long after its last request a network counts as one that needs the gateway.
const CONTENTION_WINDOW: Duration = Duration::from_secs(3);

/// How many requests of a network are worked on at a time while it is alone. More would not be faster, and the next
/// request of another network would wait for all of them.
const ALONE: u64 = 64;

/// How much longer than a long request the pause after it is, so that a network takes a quarter of a core with them,
/// as long as they take less than a third of a second.
const PAUSE_PER_WORK: u32 = 3;
/// The longest such pause.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How many requests of a network with the same work are worked on at a time while other networks need the gateway.
const fn at_once(work: Work) -> u64 {
    match work {
        Work::Long | Work::LongLookup => 1,
        Work::Short => 2,
        Work::Lookup | Work::Creation => 4,
    }
}

fn pause_after(took: Duration) -> Duration {
    (took * PAUSE_PER_WORK).min(MAX_PAUSE)
}

/// The requests of all networks that are worked on or wait for their turn.
pub(crate) struct Turns(Arc<Shares<Key, AtOnce>>);

/// The requests of a network that compete with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    network: IpAddr,
    service: Service,
    work: Work,
}

/// The number of requests that are worked on at a time depends on who else needs the gateway.
struct AtOnce(Recent<IpAddr>);

impl AtOnce {
    fn is_contended(&self, key: &Key) -> bool {
        self.0.has_other_than(&key.network, Instant::now())
    }
}

impl Rule<Key> for AtOnce {
    fn check(&self, key: &Key, demand: Demand) -> Result<(), Refused> {
        let limit = if self.is_contended(key) {
            at_once(key.work)
        } else {
            ALONE
        };
        Each(limit).check(key, demand)
    }
}

impl Turns {
    /// At most `max_waiting` requests of a network wait for the same service with the same [`Work`].
    pub(crate) fn new(max_waiting: u64) -> Self {
        let rule = AtOnce(Recent::new(CONTENTION_WINDOW));
        Self(Shares::with_waiting(rule, max_waiting))
    }

    /// Waits until a request may be sent to its service. Requests of a network that wait for the same service with the same
    /// [`Work`] are served in the order of their arrival. The caller limits for how long they wait.
    pub(crate) async fn wait(
        &self,
        client: IpAddr,
        service: Service,
        work: Work,
    ) -> Result<Turn, Refused> {
        self.record(client);
        let key = Key {
            network: client_network(client),
            service,
            work,
        };
        let place = match self.0.try_acquire(key, 1) {
            Ok(place) => place,
            Err(_) => {
                metrics::counter!("gateway_requests_delayed_total").increment(1);
                self.0.acquire(key, 1).await?
            }
        };
        Ok(Turn {
            turns: Arc::clone(&self.0),
            key,
            start: Instant::now(),
            place: Some(place),
        })
    }

    /// Records that a network sends requests, without a turn for this one.
    pub(crate) fn record(&self, client: IpAddr) {
        let AtOnce(recent) = self.0.rule();
        recent.record(client_network(client), Instant::now());
    }
}

/// A request that is being worked on. Dropping it ends its turn, a long one after a pause if other networks need the
/// gateway.
pub(crate) struct Turn {
    turns: Arc<Shares<Key, AtOnce>>,
    key: Key,
    start: Instant,
    place: Option<Share<Key, AtOnce>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let place = self.place.take();
        if at_once(self.key.work) == 1
            && self.turns.rule().is_contended(&self.key)
            && let Ok(runtime) = Handle::try_current()
        {
            let took = self.start.elapsed();
            runtime.spawn(async move {
                sleep(pause_after(took)).await;
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::future::{FutureExt as _, join_all};
    use tokio::time::Instant;

    use super::{ALONE, CONTENTION_WINDOW, Turn, Turns, pause_after};
    use crate::routes::{Service, Work};

    fn turns() -> Turns {
        Turns::new(100)
    }

    fn client(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    /// The turn of a request, if it need not wait.
    fn start(turns: &Turns, last: u8, work: Work) -> Option<Turn> {
        let turn = turns.wait(client(last), Service::User, work);
        turn.now_or_never()?.ok()
    }

    /// All turns of the first network for short requests, while the second one needs the gateway, too.
    fn contended(turns: &Turns) -> Vec<Turn> {
        drop(start(turns, 2, Work::Short));
        start_all(turns, 1, Work::Short)
    }

    fn start_all(turns: &Turns, last: u8, work: Work) -> Vec<Turn> {
        std::iter::from_fn(|| start(turns, last, work))
            .take(100)
            .collect()
    }

    #[tokio::test]
    async fn a_network_that_is_alone_does_not_wait() {
        let turns = turns();
        assert_eq!(start_all(&turns, 1, Work::Long).len() as u64, ALONE);
        assert_eq!(start_all(&turns, 1, Work::Short).len() as u64, ALONE);
    }

    #[tokio::test]
    async fn networks_that_send_at_the_same_time_get_a_few_turns_each() {
        let turns = turns();
        drop(start(&turns, 1, Work::Short));
        let second = start_all(&turns, 2, Work::Short);
        let first = start_all(&turns, 1, Work::Short);
        assert_eq!((first.len(), second.len()), (2, 2));
        assert_eq!(start_all(&turns, 1, Work::Long).len(), 1);
        assert_eq!(start_all(&turns, 1, Work::Creation).len(), 4);
        let with_long_body = Work::Creation.with_long_body();
        assert_eq!(start_all(&turns, 1, with_long_body).len(), 1);
        let other_service = turns.wait(client(1), Service::PeopleTask, Work::Short);
        assert!(other_service.now_or_never().is_some());
    }

    #[tokio::test]
    async fn requests_of_a_network_are_served_in_the_order_of_their_arrival() {
        let turns = turns();
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
        let turns = turns();
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
        let turns = turns();
        let mut active = contended(&turns);
        let wait = |_| turns.wait(client(1), Service::User, Work::Short);
        let mut waiting = pin!(join_all((0..10).map(wait)));
        assert!(waiting.as_mut().now_or_never().is_none());
        let a_while_ago = Instant::now() - CONTENTION_WINDOW;
        for last in [2, 1] {
            turns.0.rule().0.record(client(last), a_while_ago);
        }
        drop(active.pop());
        let turns_of_all = waiting.now_or_never().expect("all turns have come");
        assert_eq!(turns_of_all.len(), 10);
    }

    #[tokio::test]
    async fn networks_without_requests_are_forgotten() {
        let turns = turns();
        let active: Vec<_> = (1..=10)
            .map(|last| start(&turns, last, Work::Short))
            .collect();
        assert_eq!(turns.0.total(), 10);
        drop(active);
        assert_eq!(turns.0.total(), 0);
    }

    #[tokio::test]
    async fn long_requests_of_a_network_leave_a_pause_only_while_others_send_requests() {
        let (turns, took) = (turns(), Duration::from_millis(100));
        let work = || {
            let mut turn = start(&turns, 1, Work::Long).expect("no earlier one takes its turn");
            turn.start -= took;
        };
        work();
        assert_eq!(turns.0.total(), 0);

        drop(start(&turns, 2, Work::Short));
        let end = Instant::now();
        work();
        assert!(start(&turns, 1, Work::Long).is_none());
        assert!(start(&turns, 1, Work::Short).is_some());
        let next = turns.wait(client(1), Service::User, Work::Long).await;
        assert!(next.is_ok() && end.elapsed() >= 3 * took);
    }

    #[test]
    fn a_pause_takes_three_times_as_long_as_the_work_but_at_most_a_second() {
        for (took, pause) in [(0, 0), (100, 300), (400, 1_000), (5_000, 1_000)] {
            let took = Duration::from_millis(took);
            assert_eq!(pause_after(took), Duration::from_millis(pause));
        }
    }
}
