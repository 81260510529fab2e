use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use super::{Host, Lane, Origin, Owners, SLOW};
use crate::deliveries::worker::lane::Health;

const LIMIT: u32 = 16;

fn owner(name: &str) -> Arc<str> {
    name.into()
}

/// How many requests an owner can start.
fn fill(host: &mut Host, owner: &Arc<str>, is_fast: bool, now: Instant) -> u32 {
    let before = host.in_flight();
    while host.in_flight() < LIMIT && host.has_place(owner, is_fast, LIMIT, now) {
        start(host, owner, now);
    }
    host.in_flight() - before
}

/// Starts a request of an owner. Returns what recalls its place.
fn start(host: &mut Host, owner: &Arc<str>, now: Instant) -> CancellationToken {
    host.started(owner, DeliveryId::generate(), false, now)
}

/// How many requests end when slow ones are recalled and lanes that wait may start.
fn recalled(host: &Host, at: Instant) -> usize {
    host.recall(LIMIT, at, |_| true);
    let requests = host.requests.iter();
    requests
        .filter(|request| request.recall.is_cancelled())
        .count()
}

/// A host that an owner has called.
fn called_by(owner: &Arc<str>, now: Instant) -> Host {
    let (mut host, delivery) = (Host::default(), DeliveryId::generate());
    host.started(owner, delivery, false, now);
    host.ended(owner, delivery);
    host
}

#[test]
fn an_owner_alone_has_every_place_of_a_host_if_it_is_fast_and_else_three_quarters() {
    let now = Instant::now();
    for (is_fast, expected) in [(true, LIMIT), (false, 12)] {
        let mut host = Host::default();
        assert_eq!(fill(&mut host, &owner("a"), is_fast, now), expected);
    }
}

#[test]
fn slow_owners_leave_places_of_a_shared_host_to_others() {
    let (now, newcomer) = (Instant::now(), owner("new"));
    let mut host = called_by(&newcomer, now);
    for (name, expected) in [("a", 8), ("b", 4), ("c", 2), ("d", 1)] {
        assert_eq!(
            fill(&mut host, &owner(name), false, now),
            expected,
            "{name}"
        );
    }
    assert_eq!(fill(&mut host, &newcomer, true, now), 1);
    // They are alone again after a while.
    let later = now + Duration::from_mins(10);
    let mut host = called_by(&newcomer, now);
    assert_eq!(fill(&mut host, &owner("a"), false, later), 12);
}

#[test]
fn fast_owners_leave_places_of_a_shared_host_to_slow_ones() {
    let (now, fast, slow) = (Instant::now(), owner("fast"), owner("slow"));
    let mut host = called_by(&slow, now);
    let deliveries: Vec<_> = (0..LIMIT).map(|_| DeliveryId::generate()).collect();
    for delivery in &deliveries {
        assert!(host.has_place(&fast, true, LIMIT, now));
        host.started(&fast, *delivery, true, now);
    }
    // One after the other gives its place up, and both want it.
    for delivery in deliveries {
        host.ended(&fast, delivery);
        if host.has_place(&slow, false, LIMIT, now) {
            start(&mut host, &slow, now);
        } else {
            assert!(host.has_place(&fast, true, LIMIT, now));
            host.started(&fast, DeliveryId::generate(), true, now);
        }
    }
    let slow = host.groups.get(&slow).copied();
    assert_eq!(slow, Some(LIMIT / 4));
}

#[test]
fn a_fast_owner_has_an_equal_part_while_others_wait() {
    let (now, a, b, c) = (Instant::now(), owner("a"), owner("b"), owner("c"));
    let mut host = Host::default();
    for expected in [LIMIT, 8, 5] {
        let mut host = Host::default();
        let others = [&b, &c].into_iter().take((LIMIT / expected) as usize - 1);
        for other in others {
            assert!(host.waiting.push(other, Arc::clone(other)));
        }
        assert_eq!(fill(&mut host, &a, true, now), expected);
    }
    assert_eq!(fill(&mut host, &a, true, now), LIMIT);
    let (first, second) = (host.requests[0].delivery, host.requests[1].delivery);
    assert!(host.waiting.push(&b, "of b".into()));
    host.ended(&a, first);
    // It has more than its part, and gives the places back that become free.
    assert!(!host.has_place(&a, true, LIMIT, now));
    assert!(host.has_place(&b, true, LIMIT, now));
    assert!(host.waiting.pop().is_some());
    host.ended(&a, second);
    assert!(host.has_place(&a, true, LIMIT, now));
}

#[test]
fn no_slow_request_is_recalled_for_a_newcomer_while_half_of_the_places_are_free_soon() {
    let (now, slow, fast) = (Instant::now(), owner("slow"), owner("fast"));
    let later = now + SLOW;
    for (number, expected) in [(8, 0), (7, 1)] {
        let mut host = Host::default();
        for _ in number..LIMIT {
            start(&mut host, &slow, now);
        }
        for _ in 0..number {
            host.started(&fast, DeliveryId::generate(), true, later);
        }
        assert!(host.waiting.push(&owner("new"), "has none".into()));
        assert_eq!(recalled(&host, later), expected, "{number}");
        // Those that hang are slow, whatever their lane was before.
        assert_eq!(recalled(&host, later + SLOW), 1, "{number}");
    }
}

#[test]
fn many_owners_of_a_group_have_no_more_places_than_one() {
    let (now, other) = (Instant::now(), owner("other"));
    let mut host = called_by(&other, now);
    let started = (0..20).filter(|number| {
        let member = owner(&format!("g/{number}"));
        let has_place = host.has_place(&member, false, LIMIT, now);
        if has_place {
            start(&mut host, &member, now);
        }
        has_place
    });
    assert_eq!(started.count(), 8);
    assert_eq!(fill(&mut host, &other, true, now), 8);
    // What one of the group gives up is not taken from the other owner.
    let first = host.requests[0].delivery;
    host.ended(&owner("g/0"), first);
    start(&mut host, &other, now);
    let another = host.requests.pop().unwrap();
    host.ended(&other, another.delivery);
    assert!(!host.has_place(&owner("g/20"), false, LIMIT, now));
}

#[test]
fn slow_requests_on_loan_are_recalled_when_another_group_waits() {
    let (now, a) = (Instant::now(), owner("g/a"));
    let mut host = Host::default();
    assert_eq!(fill(&mut host, &a, true, now), LIMIT);
    let (first, last) = (host.requests[0].delivery, host.requests[15].delivery);
    let later = now + SLOW;
    assert!(host.waiting.push(&owner("g/b"), "of the same group".into()));
    assert_eq!(recalled(&host, later), 0);
    assert!(host.waiting.push(&owner("b"), "of another".into()));
    assert_eq!(recalled(&host, now), 0);
    // While a place is free, none is recalled.
    host.ended(&a, first);
    assert_eq!(recalled(&host, later), 0);
    let newest = start(&mut host, &a, later);
    // The newest of the four on loan is not slow yet.
    assert_eq!(recalled(&host, later), 3);
    assert!(!newest.is_cancelled());
    host.ended(&a, last);
    assert_eq!(recalled(&host, later), 2);
}

#[test]
fn a_group_without_a_place_gets_one_of_the_group_with_the_most() {
    let (now, a, b) = (Instant::now(), owner("a"), owner("b"));
    let mut host = Host::default();
    for _ in 0..9 {
        start(&mut host, &a, now);
    }
    for _ in 0..7 {
        start(&mut host, &b, now);
    }
    let later = now + SLOW;
    assert!(host.waiting.push(&b, "has places".into()));
    assert_eq!(recalled(&host, later), 0);
    assert!(host.waiting.push(&owner("c"), "has none".into()));
    host.recall(LIMIT, later, |lane| &**lane != "has none");
    assert_eq!(recalled(&host, later - Duration::from_millis(1)), 0);
    for _ in 0..2 {
        // One at a time.
        assert_eq!(recalled(&host, later), 1);
        assert!(host.requests[0].recall.is_cancelled());
    }
    let oldest = host.requests[0].delivery;
    host.ended(&a, oldest);
    start(&mut host, &owner("c"), later);
    assert_eq!(recalled(&host, later), 0);
    // Every group keeps one.
    let mut host = Host::default();
    for number in 0..LIMIT {
        start(&mut host, &owner(&number.to_string()), now);
    }
    assert!(host.waiting.push(&owner("c"), "has none".into()));
    assert_eq!(recalled(&host, later), 0);
}

const ORIGIN: &str = "http://a.example:80";

fn failed(times: usize, owner: &str, now: Instant) -> Lane {
    let mut lane = Lane::new(&format!("{ORIGIN} {owner}"));
    for _ in 0..times {
        lane.request_ended(Health::Unreachable, Duration::ZERO, now);
    }
    lane
}

fn unreachable(now: Instant) -> Origin {
    let mut origin = Origin::default();
    for _ in 0..5 {
        origin.circuit.failed(now);
    }
    origin
}

#[test]
fn failures_of_others_keep_no_lane_from_trying() {
    let now = Instant::now();
    let mut origin = unreachable(now);
    let (new, mut trusted) = (failed(0, "new", now), failed(0, "trusted", now));
    trusted.request_ended(Health::Responds, Duration::ZERO, now);
    let permits = |origin: &Origin, lane: &Lane| origin.permits(lane, false, now);
    assert!(permits(&origin, &new) && permits(&origin, &trusted));
    origin.in_flight = 4;
    assert!(!permits(&origin, &new) && permits(&origin, &trusted));
    // Other requests of a group count, those of other groups do not.
    assert!(origin.permits(&new, true, now));
    trusted.in_flight = 1;
    assert!(!permits(&origin, &trusted));
    origin.circuit.succeeded();
    assert!(permits(&origin, &trusted) && permits(&origin, &new));
}

#[test]
fn an_origin_that_responds_is_reachable_whatever_it_answers() {
    let now = Instant::now();
    for (health, is_open) in [
        (Health::Responds, false),
        (Health::Fails, false),
        (Health::Unreachable, true),
        (Health::Unknown, true),
    ] {
        let mut origin = unreachable(now);
        origin.ended(&owner("a"), health, now);
        assert_eq!(origin.circuit.is_open(), is_open, "{health:?}");
    }
}

#[test]
fn of_the_lanes_that_have_failed_one_of_each_group_tries_after_the_pause() {
    let now = Instant::now();
    let mut origin = unreachable(now);
    let lanes: Vec<_> = ["g/a", "g/b", "c", "d", "e", "f"]
        .into_iter()
        .map(|owner| failed(1, owner, now))
        .collect();
    assert!(!origin.permits(&lanes[0], true, now));
    let later = now + Duration::from_millis(250);
    // Whatever hangs beside it.
    origin.in_flight = 9;
    let mut tried = Vec::new();
    for lane in &lanes {
        if origin.permits(lane, false, later) {
            origin.started(&lane.owner, lane);
            tried.push(&*lane.owner);
        }
    }
    assert_eq!(tried, ["g/a", "c", "d", "e"]);
    origin.ended(&owner("g/a"), Health::Unknown, later);
    assert!(origin.permits(&lanes[1], false, later));
}

#[test]
fn an_owner_that_is_not_alone_leaves_room_to_others() {
    let (now, a, b) = (Instant::now(), owner("a"), owner("b"));
    let mut owners = Owners::new(1_000, 1_000);
    owners.add(&a, 0, now);
    assert_eq!(owners.room(&a, 5_000, now), 750);
    owners.add(&a, 750, now);
    assert_eq!(owners.room(&a, 5_000, now), 0);
    assert_eq!(owners.room(&b, 5_000, now), 62);
    owners.add(&b, 62, now);
    owners.remove(&a, 700);
    assert_eq!(owners.room(&a, 5_000, now), (888 - 150) / 4);
    let later = now + Duration::from_secs(10);
    assert_eq!(owners.room(&a, 5_000, later), 750 - 112);
}

#[test]
fn a_group_has_one_share_and_each_of_its_owners_a_few_deliveries() {
    let (now, a, b) = (Instant::now(), owner("g/a"), owner("g/b"));
    let mut owners = Owners::new(1_000, 1_000);
    owners.add(&a, 750, now);
    assert_eq!(owners.room(&b, 100, now), 4);
    owners.add(&b, 3, now);
    assert_eq!(owners.room(&b, 100, now), 1);
    owners.add(&owner("other"), 0, now);
    // Until an eighth is left, which is for other groups.
    owners.add(&a, 123, now);
    assert_eq!(owners.room(&owner("g/c"), 100, now), 0);
    assert_eq!(owners.room(&owner("other"), 100, now), 31);
    let mut host = called_by(&b, now);
    assert_eq!(fill(&mut host, &a, false, now), 8);
    // Each may always have one.
    assert_eq!(fill(&mut host, &b, false, now), 1);
    assert_eq!(fill(&mut host, &b, true, now), 7);
}

#[test]
fn an_owner_has_a_share_of_the_lanes() {
    let mut owners = Owners::new(1_000, 1_000);
    let lanes = (0..1_000).filter(|_| owners.add_lane(&owner("a")));
    assert_eq!(lanes.count(), 250);
    assert!(owners.add_lane(&owner("b")));
    owners.remove_lane(&owner("a"));
    owners.remove_lane(&owner("a"));
    assert!(owners.add_lane(&owner("a")));
}

#[test]
fn each_end_is_that_of_one_request() {
    let (now, owner, delivery) = (Instant::now(), owner("a"), DeliveryId::generate());
    let mut host = Host::default();
    for _ in 0..2 {
        host.started(&owner, delivery, false, now);
    }
    host.ended(&owner, delivery);
    assert_eq!(host.in_flight(), 1);
    assert!(host.has_request_of(&owner));
    host.ended(&owner, delivery);
    assert_eq!(host.in_flight(), 0);
    assert!(!host.has_request_of(&owner));
}
