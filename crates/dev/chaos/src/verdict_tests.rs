use super::*;
use crate::journal::Decision;

fn now() -> Times {
    let now = Instant::now();
    Times {
        calm_until: now + Duration::from_secs(1),
        healed: now,
    }
}

fn task(told: Told) -> Task {
    Task {
        id: "t1".into(),
        hooks: vec![Hook {
            key: "1-0".into(),
            told: Told::Done,
            fast: true,
            gone: false,
        }],
        decisions: vec![Decision {
            wish: "approved",
            told,
            at: Instant::now(),
        }],
    }
}

fn arrival(webhook_id: &str, status: &str, taken: bool) -> Arrival {
    let now = Instant::now();
    Arrival {
        webhook_id: webhook_id.into(),
        task: "t1".into(),
        status: status.into(),
        forged: None,
        at: now,
        answer: if taken { Answer::Taken } else { Answer::None },
        answered: now,
    }
}

fn fates(status: &str, hook: &str) -> Fates {
    let fate = Fate {
        status: Some(status.into()),
        hooks: vec![("1-0".into(), hook.into())],
    };
    Fates::from([("t1".into(), fate)])
}

fn judged(told: Told, fates: &Fates, arrivals: Vec<Arrival>) -> Verdict {
    let arrivals = Arrivals::from([("1-0".into(), arrivals)]);
    judge(&[task(told)], fates, &arrivals, now())
}

fn faults(verdict: &Verdict) -> Vec<Fault> {
    verdict.findings.iter().map(|one| one.fault).collect()
}

#[test]
fn a_delivered_decision_is_as_it_should_be() {
    let all = vec![
        arrival("a", "approved", false),
        arrival("a", "approved", true),
    ];
    let verdict = judged(Told::Done, &fates("approved", "sent"), all);
    assert_eq!(faults(&verdict), []);
    assert_eq!(
        (verdict.answered, verdict.expected, verdict.delivered),
        (1, 1, 1)
    );
    assert_eq!((verdict.duplicates, verdict.latencies.len()), (0, 1));
}

#[test]
fn a_second_delivery_is_a_duplicate_and_no_fault() {
    let all = vec![
        arrival("a", "approved", true),
        arrival("a", "approved", true),
    ];
    let verdict = judged(Told::Done, &fates("approved", "sent"), all);
    assert_eq!(faults(&verdict), []);
    assert_eq!(verdict.duplicates, 1);
}

#[test]
fn what_never_arrived_is_lost_whatever_the_system_says() {
    let all = vec![arrival("a", "approved", false)];
    for said in ["pending", "sent", "fail"] {
        let verdict = judged(Told::Done, &fates("approved", said), all.clone());
        assert_eq!(faults(&verdict), [Fault::Lost], "{said}");
    }
    let verdict = judged(Told::Unknown, &fates("approved", "pending"), Vec::new());
    assert_eq!(faults(&verdict), [Fault::Lost]);
    assert_eq!((verdict.unknown, verdict.unknown_decided), (1, 1));
}

#[test]
fn a_decision_that_is_undone_is_lost() {
    for status in ["pending", "rejected"] {
        let verdict = judged(Told::Done, &fates(status, "sent"), Vec::new());
        assert!(faults(&verdict).contains(&Fault::Lost), "{status}");
    }
    let verdict = judged(Told::Done, &Fates::new(), Vec::new());
    assert!(faults(&verdict).contains(&Fault::Lost));
}

#[test]
fn a_webhook_without_its_decision_is_a_phantom() {
    let all = vec![arrival("a", "approved", true)];
    for status in ["pending", "rejected"] {
        let verdict = judged(Told::Unknown, &fates(status, "sent"), all.clone());
        assert!(faults(&verdict).contains(&Fault::Phantom), "{status}");
    }
    let strangers = Arrivals::from([("9-9".into(), all)]);
    let verdict = judge(&[], &Fates::new(), &strangers, now());
    assert_eq!(faults(&verdict), [Fault::Phantom]);
}

#[test]
fn a_webhook_has_one_id_of_its_own() {
    let all = vec![
        arrival("a", "approved", false),
        arrival("b", "approved", true),
    ];
    let verdict = judged(Told::Done, &fates("approved", "sent"), all);
    assert_eq!(faults(&verdict), [Fault::OtherId]);
}

#[test]
fn what_arrived_has_to_be_marked_as_sent() {
    let all = vec![arrival("a", "approved", true)];
    let verdict = judged(Told::Done, &fates("approved", "fail"), all);
    assert_eq!(faults(&verdict), [Fault::Unsettled]);
}

#[test]
fn an_undecided_task_needs_no_webhook() {
    let verdict = judged(Told::Unknown, &fates("pending", "pending"), Vec::new());
    assert_eq!(faults(&verdict), []);
    assert_eq!((verdict.expected, verdict.unknown_decided), (0, 0));
}

#[test]
fn one_of_two_racing_decisions_wins() {
    let mut racing = task(Told::Done);
    racing.decisions.push(Decision {
        wish: "rejected",
        told: Told::Resolved("approved".into()),
        at: Instant::now(),
    });
    let all = Arrivals::from([("1-0".into(), vec![arrival("a", "approved", true)])]);
    let verdict = judge(&[racing.clone()], &fates("approved", "sent"), &all, now());
    assert_eq!(faults(&verdict), []);
    assert_eq!(verdict.conflicts, 1);
    if let Some(other) = racing.decisions.last_mut() {
        other.told = Told::Done;
    }
    let verdict = judge(&[racing], &fates("approved", "sent"), &all, now());
    assert_eq!(faults(&verdict), [Fault::Lost, Fault::Phantom]);
}

#[test]
fn nobody_loses_a_race_against_himself() {
    let told = Told::Resolved("approved".into());
    let all = vec![arrival("a", "approved", true)];
    let verdict = judged(told, &fates("approved", "sent"), all);
    assert_eq!(faults(&verdict), [Fault::Answer]);
}

#[test]
fn an_answer_that_nobody_expects_is_a_fault() {
    let told = Told::Unexpected("500 internal".into());
    let verdict = judged(told, &fates("pending", "pending"), Vec::new());
    assert_eq!(faults(&verdict), [Fault::Answer]);
}

#[test]
fn every_request_is_signed() {
    let mut forged = arrival("a", "approved", false);
    forged.forged = Some("there is no v1 signature");
    let all = vec![forged, arrival("a", "approved", true)];
    let verdict = judged(Told::Done, &fates("approved", "sent"), all);
    assert_eq!(faults(&verdict), [Fault::Forged]);
    assert_eq!(verdict.requests, 2);
}

#[test]
fn a_webhook_that_is_refused_for_good_ends_as_failed() {
    let mut gone = task(Told::Done);
    gone.hooks[0].gone = true;
    let judged = |said, all: Vec<Arrival>| {
        let all = Arrivals::from([("1-0".into(), all)]);
        judge(&[gone.clone()], &fates("approved", said), &all, now())
    };
    let refused = || vec![arrival("a", "approved", false)];
    let verdict = judged("fail", refused());
    assert_eq!((faults(&verdict), verdict.gone), (vec![], 1));
    assert_eq!(faults(&judged("pending", refused())), [Fault::Unsettled]);
    assert_eq!(faults(&judged("fail", Vec::new())), [Fault::Lost]);
}

#[test]
fn the_pause_that_a_receiver_asks_for_is_kept() {
    let judged = |after: Duration| {
        let mut first = arrival("a", "approved", false);
        first.answer = Answer::Failed(Duration::from_secs(2));
        let mut second = arrival("a", "approved", true);
        second.at = first.answered + after;
        judged(Told::Done, &fates("approved", "sent"), vec![first, second])
    };
    assert_eq!(faults(&judged(Duration::from_secs(2))), []);
    let hasty = judged(Duration::from_millis(1800));
    assert_eq!(faults(&hasty), [Fault::Hasty]);
}

#[test]
fn percentiles_are_values_that_were_seen() {
    let latencies = (1..=10).map(Duration::from_millis).collect();
    let verdict = Verdict {
        latencies,
        ..Verdict::default()
    };
    assert_eq!(verdict.latency(50), Some(Duration::from_millis(5)));
    assert_eq!(verdict.latency(99), Some(Duration::from_millis(10)));
    assert_eq!(Verdict::default().latency(50), None);
}
