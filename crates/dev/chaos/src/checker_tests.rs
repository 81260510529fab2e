use super::*;
use crate::history::{Creation, Decision};
use chrono::{TimeDelta, Utc};

fn now() -> Times {
    let now = Instant::now();
    Times {
        calm_until: now + Duration::from_secs(1),
        healed: now,
    }
}

fn task(outcome: CallOutcome) -> Task {
    Task {
        id: "t1".into(),
        creation: Creation::default(),
        due: None,
        hooks: vec![Hook {
            key: "1-0".into(),
            outcome: CallOutcome::Succeeded,
            fast: true,
            gone: false,
        }],
        decisions: vec![Decision {
            requested: "approved",
            outcome,
            at: Instant::now(),
        }],
    }
}

fn arrival(webhook_id: &str, status: &str, accepted: bool) -> Arrival {
    let now = Instant::now();
    Arrival {
        webhook_id: webhook_id.into(),
        task: "t1".into(),
        status: status.into(),
        signature_error: None,
        at: now,
        received: Utc::now(),
        outcome: if accepted {
            Outcome::Accepted
        } else {
            Outcome::None
        },
        replied_at: now,
    }
}

fn states(status: &str, hook: &str) -> FinalStates {
    let state = FinalState {
        status: Some(status.into()),
        hooks: [("1-0".into(), hook.into())].into(),
        refusals: [("1-0".into(), 1)].into(),
    };
    FinalStates::from([("t1".into(), state)])
}

fn checked(outcome: CallOutcome, states: &FinalStates, arrivals: Vec<Arrival>) -> CheckResult {
    let arrivals = Arrivals::from([("1-0".into(), arrivals)]);
    check(&[task(outcome)], states, &arrivals, now())
}

fn violations(result: &CheckResult) -> Vec<Violation> {
    result.findings.iter().map(|one| one.violation).collect()
}

#[test]
fn a_delivered_decision_violates_nothing() {
    let all = vec![
        arrival("a", "approved", false),
        arrival("a", "approved", true),
    ];
    let result = checked(CallOutcome::Succeeded, &states("approved", "sent"), all);
    assert_eq!(violations(&result), []);
    assert_eq!(
        (result.succeeded, result.expected, result.delivered),
        (1, 1, 1)
    );
    assert_eq!((result.duplicates, result.latencies.len()), (0, 1));
}

#[test]
fn a_second_delivery_is_a_duplicate_but_not_a_violation() {
    let all = vec![
        arrival("a", "approved", true),
        arrival("a", "approved", true),
    ];
    let result = checked(CallOutcome::Succeeded, &states("approved", "sent"), all);
    assert_eq!(violations(&result), []);
    assert_eq!(result.duplicates, 1);
}

#[test]
fn a_webhook_that_never_arrived_is_lost_whatever_its_status() {
    let all = vec![arrival("a", "approved", false)];
    for said in ["pending", "sent", "fail"] {
        let result = checked(
            CallOutcome::Succeeded,
            &states("approved", said),
            all.clone(),
        );
        assert_eq!(violations(&result), [Violation::Lost], "{said}");
    }
    let result = checked(
        CallOutcome::Unknown,
        &states("approved", "pending"),
        Vec::new(),
    );
    assert_eq!(violations(&result), [Violation::Lost]);
    assert_eq!((result.unknown, result.unknown_decided), (1, 1));
}

#[test]
fn a_decision_that_was_undone_is_lost() {
    for status in ["pending", "rejected"] {
        let result = checked(CallOutcome::Succeeded, &states(status, "sent"), Vec::new());
        assert!(violations(&result).contains(&Violation::Lost), "{status}");
    }
    let result = checked(CallOutcome::Succeeded, &FinalStates::new(), Vec::new());
    assert!(violations(&result).contains(&Violation::Lost));
}

#[test]
fn a_webhook_without_its_decision_is_a_phantom() {
    let all = vec![arrival("a", "approved", true)];
    for status in ["pending", "rejected"] {
        let result = checked(CallOutcome::Unknown, &states(status, "sent"), all.clone());
        assert!(
            violations(&result).contains(&Violation::Phantom),
            "{status}"
        );
    }
    let unknown = Arrivals::from([("9-9".into(), all)]);
    let result = check(&[], &FinalStates::new(), &unknown, now());
    assert_eq!(violations(&result), [Violation::Phantom]);
}

#[test]
fn a_webhook_keeps_its_webhook_id() {
    let all = vec![
        arrival("a", "approved", false),
        arrival("b", "approved", true),
    ];
    let result = checked(CallOutcome::Succeeded, &states("approved", "sent"), all);
    assert_eq!(violations(&result), [Violation::WebhookId]);
}

#[test]
fn a_webhook_that_arrived_must_be_sent() {
    let all = vec![arrival("a", "approved", true)];
    let result = checked(CallOutcome::Succeeded, &states("approved", "fail"), all);
    assert_eq!(violations(&result), [Violation::WebhookStatus]);
}

#[test]
fn an_undecided_task_needs_no_webhook() {
    let result = checked(
        CallOutcome::Unknown,
        &states("pending", "pending"),
        Vec::new(),
    );
    assert_eq!(violations(&result), []);
    assert_eq!((result.expected, result.unknown_decided), (0, 0));
}

#[test]
fn a_due_date_is_reported_once_it_has_passed() {
    let mut due = task(CallOutcome::Succeeded);
    due.decisions.clear();
    let states = states("pending", "pending");
    let mut checked = |after: TimeDelta, all: Vec<Arrival>| {
        due.due = Some(Utc::now() - after);
        let arrivals = Arrivals::from([("1-0".into(), all)]);
        check(&[due.clone()], &states, &arrivals, now())
    };
    let arrived = || vec![arrival("a", "due", true)];
    let result = checked(TimeDelta::seconds(1), arrived());
    assert_eq!(violations(&result), []);
    assert_eq!((result.expected, result.due, result.delivered), (1, 1, 1));
    let early = checked(TimeDelta::seconds(-1), arrived());
    assert_eq!(violations(&early), [Violation::Phantom]);
    let missing = checked(TimeDelta::seconds(1), Vec::new());
    assert_eq!(violations(&missing), [Violation::Lost]);
    let wrong = checked(TimeDelta::seconds(1), vec![arrival("a", "approved", true)]);
    assert_eq!(violations(&wrong), [Violation::Phantom]);
}

#[test]
fn one_of_two_racing_decisions_wins() {
    let mut racing = task(CallOutcome::Succeeded);
    racing.decisions.push(Decision {
        requested: "rejected",
        outcome: CallOutcome::AlreadyResolved("approved".into()),
        at: Instant::now(),
    });
    let all = Arrivals::from([("1-0".into(), vec![arrival("a", "approved", true)])]);
    let result = check(&[racing.clone()], &states("approved", "sent"), &all, now());
    assert_eq!(violations(&result), []);
    assert_eq!(result.conflicts, 1);
    if let Some(other) = racing.decisions.last_mut() {
        other.outcome = CallOutcome::Succeeded;
    }
    let result = check(&[racing], &states("approved", "sent"), &all, now());
    assert_eq!(violations(&result), [Violation::Lost, Violation::Phantom]);
}

#[test]
fn a_conflict_needs_another_decision() {
    let outcome = CallOutcome::AlreadyResolved("approved".into());
    let all = vec![arrival("a", "approved", true)];
    let result = checked(outcome, &states("approved", "sent"), all);
    assert_eq!(violations(&result), [Violation::UnexpectedResponse]);
}

#[test]
fn an_unexpected_response_is_a_violation() {
    let outcome = CallOutcome::Unexpected("500 internal".into());
    let result = checked(outcome, &states("pending", "pending"), Vec::new());
    assert_eq!(violations(&result), [Violation::UnexpectedResponse]);
}

#[test]
fn an_invalid_signature_is_a_violation() {
    let mut forged = arrival("a", "approved", false);
    forged.signature_error = Some("there is no v1 signature");
    let all = vec![forged, arrival("a", "approved", true)];
    let result = checked(CallOutcome::Succeeded, &states("approved", "sent"), all);
    assert_eq!(violations(&result), [Violation::Signature]);
    assert_eq!(result.requests, 2);
}

#[test]
fn a_webhook_that_is_refused_with_410_must_fail() {
    let mut gone = task(CallOutcome::Succeeded);
    gone.hooks[0].gone = true;
    let checked = |said, all: Vec<Arrival>| {
        let all = Arrivals::from([("1-0".into(), all)]);
        check(&[gone.clone()], &states("approved", said), &all, now())
    };
    let refused = || vec![arrival("a", "approved", false)];
    let result = checked("fail", refused());
    assert_eq!((violations(&result), result.gone), (vec![], 1));
    assert_eq!(
        violations(&checked("pending", refused())),
        [Violation::WebhookStatus]
    );
    assert_eq!(violations(&checked("fail", Vec::new())), [Violation::Lost]);
}

#[test]
fn a_retry_before_retry_after_is_a_violation() {
    let checked = |after: Duration, recorded: usize| {
        let mut states = states("approved", "sent");
        for state in states.values_mut() {
            state.refusals = [("1-0".into(), recorded)].into();
        }
        let mut first = arrival("a", "approved", false);
        first.outcome = Outcome::Failed(Duration::from_secs(2));
        let mut second = arrival("a", "approved", true);
        second.at = first.replied_at + after;
        checked(CallOutcome::Succeeded, &states, vec![first, second])
    };
    assert_eq!(violations(&checked(Duration::from_secs(2), 1)), []);
    let early = Duration::from_millis(1800);
    assert_eq!(violations(&checked(early, 1)), [Violation::RetriedTooEarly]);
    // The worker ended before it recorded the response.
    assert_eq!(violations(&checked(early, 0)), []);
}

#[test]
fn percentiles_are_measured_values() {
    let latencies = (1..=10).map(Duration::from_millis).collect();
    let result = CheckResult {
        latencies,
        ..CheckResult::default()
    };
    assert_eq!(result.latency(50), Some(Duration::from_millis(5)));
    assert_eq!(result.latency(99), Some(Duration::from_millis(10)));
    assert_eq!(CheckResult::default().latency(50), None);
}
