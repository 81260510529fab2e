//! Compares what callers were told with what receivers got and with what the system says at the end.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use crate::{
    fate::{Fate, Fates},
    journal::{Answer, Arrival, Arrivals, Decision, Hook, Task, Told},
};

/// What the clocks of two programs may differ in a pause of seconds.
const CLOCKS: Duration = Duration::from_millis(50);

/// What must never be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Something that was answered with 200 is gone, or a webhook of a decision never arrived.
    Lost,
    /// Something arrived that was not decided so, or two decisions of one task were answered with 200.
    Phantom,
    /// A webhook arrived under two webhook-ids, or two webhooks under one.
    OtherId,
    /// A signature is missing or wrong.
    Forged,
    /// A webhook arrived, and the system does not say `sent`; or it was refused for good, and the system
    /// does not say `fail`.
    Unsettled,
    /// An attempt came sooner than the `Retry-After` of the one before it allowed.
    Hasty,
    /// What a person's account was answered with 200 for did not happen.
    Account,
    /// An answer that nobody has to expect, whatever is broken.
    Answer,
    /// A process panicked.
    Panic,
}

/// One thing that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) fault: Fault,
    pub(crate) task: String,
    pub(crate) what: String,
}

/// What a run came to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) answered: usize,
    pub(crate) unknown: usize,
    /// Of the unknown ones, those that happened.
    pub(crate) unknown_decided: usize,
    /// Callers who were told that another one had decided.
    pub(crate) conflicts: usize,
    pub(crate) expected: usize,
    pub(crate) delivered: usize,
    /// Webhooks whose receivers answered 410.
    pub(crate) gone: usize,
    /// Requests that receivers got, all of them with their signatures checked.
    pub(crate) requests: usize,
    /// Deliveries that a receiver took beyond the first of a webhook.
    pub(crate) duplicates: usize,
    /// From the end of the last fault to the latest first delivery.
    pub(crate) latest: Option<Duration>,
    /// From a decision's answer to the delivery at a fast receiver, before the first fault; sorted.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) findings: Vec<Finding>,
}

/// When what was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Decisions before this were made while all was well.
    pub(crate) calm_until: Instant,
    /// The last fault was over.
    pub(crate) healed: Instant,
}

/// Judges a run.
pub(crate) fn judge(tasks: &[Task], fates: &Fates, arrivals: &Arrivals, times: Times) -> Verdict {
    let mut judge = Judge {
        arrivals,
        times,
        verdict: Verdict::default(),
        webhook_ids: HashMap::new(),
    };
    let gone = Fate {
        status: None,
        hooks: Vec::new(),
    };
    for task in tasks {
        judge.decisions(task, fates.get(&task.id).unwrap_or(&gone));
        judge.webhooks(task, fates.get(&task.id).unwrap_or(&gone));
    }
    judge.strangers(tasks);
    judge.verdict.latencies.sort_unstable();
    judge.verdict.findings.sort_by_key(|finding| finding.fault);
    judge.verdict
}

impl Verdict {
    pub(crate) fn count(&self, fault: Fault) -> usize {
        let same = |finding: &&Finding| finding.fault == fault;
        self.findings.iter().filter(same).count()
    }

    /// The latency that `percent` of a hundred do not exceed.
    pub(crate) fn latency(&self, percent: usize) -> Option<Duration> {
        let place = (self.latencies.len() * percent).div_ceil(100);
        self.latencies.get(place.saturating_sub(1)).copied()
    }
}

struct Judge<'run> {
    arrivals: &'run Arrivals,
    times: Times,
    verdict: Verdict,
    /// Under which webhook each webhook-id was seen first.
    webhook_ids: HashMap<&'run str, &'run str>,
}

impl<'run> Judge<'run> {
    fn find(&mut self, fault: Fault, task: &str, what: impl Into<String>) {
        self.verdict.findings.push(Finding {
            fault,
            task: task.to_owned(),
            what: what.into(),
        });
    }

    fn decisions(&mut self, task: &Task, fate: &Fate) {
        let Some(status) = &fate.status else {
            return self.find(Fault::Lost, &task.id, "was created with 200 and is gone");
        };
        let mut won = 0;
        for decision in &task.decisions {
            match &decision.told {
                Told::Done => {
                    won += 1;
                    self.verdict.answered += 1;
                    if status != decision.wish {
                        let what =
                            format!("was answered 200 as {}, and is {status}", decision.wish);
                        self.find(Fault::Lost, &task.id, what);
                    }
                }
                Told::Unknown => {
                    self.verdict.unknown += 1;
                    self.verdict.unknown_decided += usize::from(status == decision.wish);
                }
                Told::Resolved(by) => {
                    self.verdict.conflicts += 1;
                    self.lost_race(task, decision, by, status);
                }
                Told::Unexpected(said) => {
                    let what = format!("was to be {}, and the answer was {said}", decision.wish);
                    self.find(Fault::Answer, &task.id, what);
                }
            }
        }
        if won > 1 {
            self.find(Fault::Phantom, &task.id, "was decided twice with 200");
        }
    }

    /// Somebody was told that the task is decided `by` one status already.
    fn lost_race(&mut self, task: &Task, lost: &Decision, by: &str, status: &str) {
        if by != status {
            let what = format!("was answered 409 as {by}, and is {status}");
            self.find(Fault::Phantom, &task.id, what);
        }
        let won = |one: &Decision| {
            one.wish == by
                && matches!(one.told, Told::Done | Told::Unknown)
                && one.wish != lost.wish
        };
        if !task.decisions.iter().any(won) {
            let what = "was answered 409, and nobody else had decided";
            self.find(Fault::Answer, &task.id, what);
        }
    }

    fn webhooks(&mut self, task: &'run Task, fate: &Fate) {
        let registered = fate.hooks.iter().map(|(key, _)| key.as_str());
        let mut keys: BTreeSet<&str> = registered.collect();
        for hook in &task.hooks {
            match &hook.told {
                Told::Done if !keys.contains(hook.key.as_str()) => {
                    let what = format!("webhook {} was registered with 200 and is gone", hook.key);
                    self.find(Fault::Lost, &task.id, what);
                    keys.insert(&hook.key);
                }
                Told::Unexpected(said) => {
                    let what = format!("webhook {} was answered {said}", hook.key);
                    self.find(Fault::Answer, &task.id, what);
                }
                Told::Resolved(_) => {
                    let what = format!("webhook {} was refused before any decision", hook.key);
                    self.find(Fault::Answer, &task.id, what);
                }
                _ => {}
            }
        }
        for hook in &task.hooks {
            let all = self.arrivals.get(&hook.key).map_or(&[][..], Vec::as_slice);
            self.contents(task, hook, fate, all);
            self.pauses(task, hook, all);
            if fate.is_decided() && keys.contains(hook.key.as_str()) {
                self.delivery(task, hook, fate, all);
            } else if !all.is_empty() {
                let what = format!("webhook {} arrived without a decision", hook.key);
                self.find(Fault::Phantom, &task.id, what);
            }
        }
    }

    fn delivery(&mut self, task: &Task, hook: &Hook, fate: &Fate, all: &[Arrival]) {
        let mut taken = all.iter().filter(|arrival| arrival.is_taken());
        let key = &hook.key;
        let listed = fate.hooks.iter().find(|(listed, _)| listed == key);
        let said = listed.map_or("nothing", |(_, said)| said.as_str());
        if hook.gone {
            return self.ended_by_410(task, key, all, said);
        }
        self.verdict.expected += 1;
        let Some(first) = taken.next() else {
            let what = format!(
                "webhook {key} never arrived; {} attempts did; the system says {said}",
                all.len()
            );
            return self.find(Fault::Lost, &task.id, what);
        };
        self.verdict.delivered += 1;
        self.verdict.duplicates += taken.count();
        if said != "sent" {
            let what = format!("webhook {key} arrived, and the system says {said}");
            self.find(Fault::Unsettled, &task.id, what);
        }
        let after = first.answered.saturating_duration_since(self.times.healed);
        self.verdict.latest = self.verdict.latest.max(Some(after));
        if let [decision] = task.decisions.as_slice()
            && decision.told == Told::Done
            && decision.at < self.times.calm_until
            && hook.fast
        {
            let latency = first.answered.saturating_duration_since(decision.at);
            self.verdict.latencies.push(latency);
        }
    }

    /// A receiver that wants nothing any more was asked at least once, and then left alone.
    fn ended_by_410(&mut self, task: &Task, key: &str, all: &[Arrival], said: &str) {
        self.verdict.gone += 1;
        if all.is_empty() {
            let what = format!("webhook {key} never arrived; the system says {said}");
            self.find(Fault::Lost, &task.id, what);
        } else if said != "fail" {
            let what = format!("webhook {key} was answered 410, and the system says {said}");
            self.find(Fault::Unsettled, &task.id, what);
        }
    }

    /// The pauses that the receiver asked for. They are shorter than the lease of an attempt whose answer
    /// nobody heard.
    fn pauses(&mut self, task: &Task, hook: &Hook, all: &[Arrival]) {
        for (before, after) in all.iter().zip(all.iter().skip(1)) {
            if let Answer::Failed(pause) = before.answer
                && after.at + CLOCKS < before.answered + pause
            {
                let what = format!(
                    "webhook {} came again after {:?}, and {pause:?} was asked for",
                    hook.key,
                    after.at.saturating_duration_since(before.answered)
                );
                self.find(Fault::Hasty, &task.id, what);
            }
        }
    }

    /// What every request says.
    fn contents(&mut self, task: &Task, hook: &'run Hook, fate: &Fate, all: &'run [Arrival]) {
        let key = &hook.key;
        let mut ids = BTreeSet::new();
        self.verdict.requests += all.len();
        for arrival in all {
            if let Some(fault) = arrival.forged {
                let what = format!("webhook {key}: {fault}");
                self.find(Fault::Forged, &task.id, what);
            }
            let id = arrival.webhook_id.as_str();
            let of = *self.webhook_ids.entry(id).or_insert(key);
            if of != key {
                let what = format!("webhooks {key} and {of} both arrived as {id}");
                self.find(Fault::OtherId, &task.id, what);
            }
            ids.insert(id);
            if arrival.task != task.id || Some(&arrival.status) != fate.status.as_ref() {
                let what = format!(
                    "webhook {key} said {} of task {}, and the task is {}",
                    arrival.status,
                    arrival.task,
                    fate.status.as_deref().unwrap_or("gone")
                );
                self.find(Fault::Phantom, &task.id, what);
            }
        }
        if ids.len() > 1 {
            let what = format!("webhook {key} arrived under the webhook-ids {ids:?}");
            self.find(Fault::OtherId, &task.id, what);
        }
    }

    /// Requests that belong to nothing that anybody registered.
    fn strangers(&mut self, tasks: &[Task]) {
        let hooks = tasks.iter().flat_map(|task| &task.hooks);
        let known: BTreeSet<&str> = hooks.map(|hook| hook.key.as_str()).collect();
        for (key, all) in self.arrivals {
            if let (false, Some(arrival)) = (known.contains(key.as_str()), all.first()) {
                let what = format!("webhook {key:?} arrived, and nobody registered it");
                self.find(Fault::Phantom, &arrival.task, what);
            }
        }
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
