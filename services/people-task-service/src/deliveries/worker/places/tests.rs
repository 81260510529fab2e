use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use values::DeliveryId;

use super::{ChangedPauses, Host, Lane, Origin, Owners, PausedHosts, SLOW, WaitingLanes};
use crate::deliveries::worker::lane::Health;

const LIMIT: u32 = 16;

fn owner(name: &str) -> Arc<str> {
    name.into()
}

/// How many requests an owner can start.
fn fill(host: &mut Host, owner: &Arc<str>, is_fast: bool, now: Instant) -> u32 {
    let before = host.in_flight;
    while host.in_flight < LIMIT && host.has_place(owner, is_fast, LIMIT, now) {
        start(host, owner, now);
    }
    host.in_flight - before
}

/// Starts a request of an owner. Returns what recalls its place, if it is on loan.
fn start(host: &mut Host, owner: &Arc<str>, now: Instant) -> Option<CancellationToken> {
    host.started(owner, DeliveryId::generate(), LIMIT, now)
}

/// A host that an owner has called.
fn called_by(owner: &Arc<str>, now: Instant) -> Host {
    let (mut host, delivery) = (Host::default(), DeliveryId::generate());
    host.started(owner, delivery, LIMIT, now);
    host.ended(owner, delivery, LIMIT);
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
fn a_slow_request_on_loan_is_recalled_when_another_group_waits() {
    let (now, a) = (Instant::now(), owner("g/a"));
    let mut host = Host::default();
    assert_eq!(fill(&mut host, &a, true, now), LIMIT);
    let delivery = host.loans[0].delivery;
    let recalled = |host: &Host, at: Instant| {
        host.recall(LIMIT, at);
        let recalled = host.loans.iter().filter(|loan| loan.recall.is_cancelled());
        (host.loans.len(), recalled.count())
    };
    let later = now + SLOW;
    assert!(host.waiting.push(&owner("g/b"), "of the same group".into()));
    assert_eq!(recalled(&host, later), (4, 0));
    assert!(host.waiting.push(&owner("b"), "of another".into()));
    assert_eq!(recalled(&host, now), (4, 0));
    // While a place is free, none is recalled.
    host.ended(&a, delivery, LIMIT);
    assert_eq!(recalled(&host, later), (3, 0));
    assert!(start(&mut host, &a, later).is_some());
    assert_eq!(recalled(&host, later), (4, 3));
    // A group has no more loans than it has places beyond its own.
    host.ended(&a, DeliveryId::generate(), LIMIT);
    assert_eq!(recalled(&host, later), (3, 2));
}

fn failed(times: usize, now: Instant) -> Lane {
    let mut lane = Lane::new("http://a.example:80 5f0c3a7e1b2d4c5e6f708192");
    for _ in 0..times {
        lane.request_ended(Health::Unreachable, Duration::ZERO, now);
    }
    lane
}

#[test]
fn failures_of_others_keep_no_lane_from_trying() {
    let now = Instant::now();
    let mut origin = Origin::default();
    for _ in 0..5 {
        origin.circuit.failed(now);
    }
    let (new, failing, mut trusted) = (failed(0, now), failed(1, now), failed(0, now));
    trusted.request_ended(Health::Responds, Duration::ZERO, now);
    assert!(origin.permits(&new, now) && origin.permits(&trusted, now));
    // One that has failed itself waits for the pause.
    assert!(!origin.permits(&failing, now));
    let later = now + Duration::from_millis(250);
    let name = owner("http://a.example:80 5f0c3a7e1b2d4c5e6f708192");
    assert!(origin.permits(&failing, later));
    origin.in_flight = 4;
    assert!(!origin.permits(&new, later) && origin.permits(&trusted, later));
    // Of those that have failed, one tries at a time, whatever hangs beside it.
    assert!(origin.permits(&failing, later));
    origin.started(&name, &failing);
    assert!(!origin.permits(&failing, later));
    origin.ended(&name, Health::Unknown, later);
    assert!(origin.permits(&failing, later));
    trusted.in_flight = 1;
    assert!(!origin.permits(&trusted, later));
    origin.circuit.succeeded();
    assert!(origin.permits(&failing, later));
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
    assert_eq!(fill(&mut host, &b, false, now), 0);
    assert_eq!(fill(&mut host, &b, true, now), 8);
}

#[test]
fn groups_take_turns_and_so_do_the_owners_of_a_group() {
    let mut waiting = WaitingLanes::new();
    for (name, lane) in [
        ("g/a", "a1"),
        ("g/a", "a2"),
        ("g/b", "b1"),
        ("c", "c1"),
        ("c", "c2"),
    ] {
        assert!(waiting.push(&owner(name), lane.into()));
    }
    let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
    let order: Vec<_> = order.iter().map(|lane| &**lane).collect();
    assert_eq!(order, ["a1", "c1", "b1", "c2", "a2"]);
    assert!(waiting.lanes.is_empty());
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
fn a_scan_tells_which_hosts_were_paused_and_resumed_since_the_last_one() {
    let mut hosts = PausedHosts::default();
    for (found, paused, resumed) in [
        (vec!["a.example"], vec!["a.example"], vec![]),
        (vec!["a.example", "b.example"], vec!["b.example"], vec![]),
        (vec!["b.example"], vec![], vec!["a.example"]),
    ] {
        let changed = hosts.replace(found.iter().map(ToString::to_string).collect());
        let names = |names: Vec<&str>| names.into_iter().map(Into::into).collect();
        let expected = ChangedPauses {
            paused: names(paused),
            resumed: names(resumed),
        };
        assert_eq!(changed, expected);
    }
    assert!(hosts.contains("b.example") && !hosts.contains("a.example"));
}
