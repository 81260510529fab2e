use std::time::{Duration, Instant};

use values::DeliveryId;

use super::{Circuit, Health, Lane, RECORDING, RetryDecision};

const LIMIT: u32 = 16;

fn lane_with(known: usize) -> Lane {
    let mut lane = Lane::new("http://a.example:80 5f0c3a7e1b2d4c5e6f708192");
    for _ in 0..known {
        lane.add(DeliveryId::generate());
    }
    lane
}

/// Lets a lane be answered a number of times.
fn respond(lane: &mut Lane, times: usize, after: Duration) {
    for _ in 0..times {
        lane.in_flight += 1;
        lane.request_ended(Health::Responds, after, Instant::now());
    }
}

#[test]
fn a_lane_begins_with_four_requests_and_gets_more_as_it_is_answered() {
    let now = Instant::now();
    let mut lane = lane_with(0);
    assert_eq!(lane.limit(LIMIT, now), 4);
    respond(&mut lane, 3, Duration::from_millis(50));
    assert_eq!(lane.limit(LIMIT, now), 7);
    respond(&mut lane, 100, Duration::from_millis(50));
    assert_eq!(lane.limit(LIMIT, now), 16);
    assert_eq!(lane.limit(2, now), 2);
}

#[test]
fn a_lane_is_fast_once_it_is_answered_until_a_request_takes_long() {
    let now = Instant::now();
    let mut lane = lane_with(0);
    assert!(!lane.is_fast(now));
    respond(&mut lane, 1, Duration::from_millis(50));
    assert!(lane.is_fast(now));
    lane.request_ended(Health::Unknown, Duration::from_millis(500), now);
    respond(&mut lane, 1, Duration::from_millis(50));
    assert!(!lane.is_fast(now));
    assert!(lane.is_fast(now + Duration::from_mins(10)));
}

#[test]
fn more_is_loaded_in_advance_for_a_fast_lane_than_for_a_slow_one() {
    for (response_time, expected) in [(1, 256), (10, 80), (50, 16), (5_000, 16)] {
        let mut lane = lane_with(1_000);
        respond(&mut lane, 100, Duration::from_millis(response_time));
        let wanted = lane.wants(LIMIT, Instant::now());
        let wanted = lane.take_wanted(wanted);
        assert_eq!(wanted.known.len(), expected, "{response_time} ms");
        // They are on their way.
        assert_eq!(lane.wants(LIMIT, Instant::now()), 0);
    }
}

#[test]
fn a_lane_that_fails_gets_one_request_after_a_pause_and_forgets_what_it_knows() {
    for health in [Health::Fails, Health::Unreachable] {
        let mut now = Instant::now();
        let mut lane = lane_with(10);
        for _ in 0..5 {
            lane.in_flight += 1;
            lane.request_ended(health, Duration::ZERO, now);
            lane.take_surplus();
        }
        assert_eq!(lane.limit(LIMIT, now), 0);
        assert_eq!(lane.wants(LIMIT, now), 0);
        assert!(!lane.is_idle());
        now += Duration::from_millis(250);
        let wanted = lane.wants(LIMIT, now);
        let wanted = lane.take_wanted(wanted);
        assert_eq!((wanted.known.len(), wanted.more), (0, 1));
        lane.load_ended(false);
        lane.in_flight += 1;
        lane.request_ended(Health::Responds, Duration::ZERO, now);
        assert!(lane.limit(LIMIT, now) > 1);
    }
}

#[test]
fn what_is_asked_for_is_asked_for_again_after_a_failed_load() {
    let now = Instant::now();
    let mut lane = lane_with(3);
    assert_eq!(lane.take_wanted(4).number(), 3);
    lane.load_ended(true);
    assert_eq!(lane.wants(LIMIT, now), 4);
    let wanted = lane.take_wanted(4);
    assert_eq!((wanted.known.len(), wanted.more), (0, 4));
    lane.load_ended(false);
    assert!(lane.is_idle());
}

#[test]
fn what_becomes_due_during_a_load_is_loaded_after_it() {
    let now = Instant::now();
    let mut lane = lane_with(0);
    lane.backlog = true;
    assert_eq!(lane.take_wanted(4).more, 4);
    lane.retry(RetryDecision::Retry(Duration::ZERO), now);
    lane.tick(now + RECORDING);
    lane.load_ended(false);
    assert_eq!(lane.wants(LIMIT, now), 4);
}

#[test]
fn a_delivery_under_way_is_not_loaded_when_the_message_that_names_it_has_its_turn() {
    let mut lane = lane_with(3);
    let found = lane.known[1];
    lane.under_way.insert(found);
    let wanted = lane.take_wanted(3);
    assert_eq!(wanted.known.len(), 2);
    assert!(!wanted.known.contains(&found));
    lane.load_ended(false);
    lane.add(found);
    assert_eq!(lane.wants(LIMIT, Instant::now()), 0);
}

#[test]
fn a_retry_is_due_again_after_its_pause() {
    let now = Instant::now();
    let mut lane = lane_with(0);
    lane.retry(RetryDecision::Retry(Duration::from_secs(5)), now);
    lane.retry(RetryDecision::Postpone(Duration::from_secs(3)), now);
    lane.tick(now + Duration::from_secs(2));
    assert_eq!(lane.wants(LIMIT, now), 0);
    lane.tick(now + Duration::from_secs(3) + RECORDING);
    assert_eq!(lane.wants(LIMIT, now), 4);
}

fn open_circuit(now: Instant) -> Circuit {
    let mut circuit = Circuit::default();
    let opened = (0..5).map(|_| circuit.failed(now));
    assert_eq!(
        opened.collect::<Vec<_>>(),
        [false, false, false, false, true]
    );
    circuit
}

#[test]
fn it_opens_after_five_failures_in_a_row() {
    let now = Instant::now();
    let mut circuit = Circuit::default();
    for _ in 0..4 {
        circuit.failed(now);
    }
    circuit.succeeded();
    for _ in 0..4 {
        assert!(!circuit.failed(now));
    }
    assert!(!circuit.is_open());
    assert!(circuit.failed(now));
    assert!(circuit.is_open());
}

#[test]
fn trials_become_rarer_down_to_one_in_five_seconds() {
    let mut now = Instant::now();
    let mut circuit = open_circuit(now);
    for milliseconds in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
        let pause = Duration::from_millis(milliseconds);
        assert!(!circuit.permits(now + pause - Duration::from_millis(1)));
        now += pause;
        assert!(circuit.permits(now));
        assert!(!circuit.failed(now));
    }
}

#[test]
fn late_failures_do_not_extend_a_pause_and_a_success_closes_it() {
    let now = Instant::now();
    let mut circuit = open_circuit(now);
    for _ in 0..10 {
        circuit.failed(now + Duration::from_millis(100));
    }
    assert!(circuit.permits(now + Duration::from_millis(250)));
    circuit.succeeded();
    assert!(circuit.permits(now));
    assert!(!circuit.is_open());
}
