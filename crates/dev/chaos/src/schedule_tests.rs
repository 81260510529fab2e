use std::collections::BTreeSet;

use super::*;

fn parts() -> Parts {
    Parts {
        processes: vec![0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 5],
        connections: 15,
        receivers: 9,
        brokers: 1,
        standby: false,
    }
}

#[test]
fn the_same_seed_yields_the_same_faults() {
    let minute = Duration::from_secs(60);
    assert_eq!(
        plan_faults(1, minute, &parts()),
        plan_faults(1, minute, &parts())
    );
    assert_ne!(
        plan_faults(1, minute, &parts()),
        plan_faults(2, minute, &parts())
    );
}

#[test]
fn a_minute_has_every_kind_of_fault_and_all_end_within_it() {
    let minute = Duration::from_secs(60);
    for seed in 0..200 {
        let faults = plan_faults(seed, minute, &parts());
        for kind in round() {
            let found = faults.iter().any(|fault| fault.kind == kind);
            assert!(found, "seed {seed} has no {}", kind.name());
        }
        assert!(
            faults
                .iter()
                .all(|fault| fault.start >= CALM && fault.start + fault.duration <= minute)
        );
    }
}

#[test]
fn two_minutes_hit_every_process_and_connection_and_stop_the_broker_for_a_minute() {
    for seed in 0..500 {
        let faults = plan_faults(seed, Duration::from_secs(120), &parts());
        let hit = |kind: FaultKind| {
            let places = faults.iter().filter(|fault| fault.kind == kind);
            places
                .map(|fault| fault.index)
                .collect::<BTreeSet<_>>()
                .len()
        };
        let wanted = [
            (FaultKind::KillProcess, 6),
            (FaultKind::RestartProcess, 6),
            (FaultKind::CutConnection, 15),
        ];
        for (kind, count) in wanted {
            assert_eq!(hit(kind), count, "seed {seed}: {}", kind.name());
        }
        for kind in round() {
            assert!(hit(kind) > 0, "seed {seed} has no {}", kind.name());
        }
        let minute = |fault: &&InjectedFault| {
            fault.kind == FaultKind::StopBroker && fault.duration == Duration::from_secs(60)
        };
        assert_eq!(faults.iter().filter(minute).count(), 1, "seed {seed}");
    }
}

#[test]
fn a_standby_is_promoted_alone_first_and_stopped_later() {
    let parts = Parts {
        standby: true,
        ..parts()
    };
    for seed in 0..200 {
        let faults = plan_faults(seed, Duration::from_secs(120), &parts);
        let kinds: Vec<_> = faults.iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds[0], FaultKind::PromoteStandby);
        assert!(faults[1].start >= CALM + UNDISTURBED, "seed {seed}");
        let stopped = kinds.contains(&FaultKind::StopStandby);
        assert!(stopped, "seed {seed} does not stop the standby");
    }
}

#[test]
fn faults_overlap_but_not_on_the_same_target() {
    let faults = plan_faults(5, Duration::from_secs(60), &parts());
    let overlap = |a: &InjectedFault, b: &InjectedFault| b.start < a.start + a.duration;
    assert!(faults.windows(2).any(|pair| overlap(&pair[0], &pair[1])));
    for (number, one) in faults.iter().enumerate() {
        let later = &faults[number + 1..];
        let kinds = [FaultKind::CutConnection, FaultKind::StallConnection];
        assert!(!later.iter().any(|other| {
            kinds.contains(&one.kind)
                && kinds.contains(&other.kind)
                && one.index == other.index
                && overlap(one, other)
        }));
    }
}
