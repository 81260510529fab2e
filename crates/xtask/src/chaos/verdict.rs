//! Compares what callers were told with what receivers got and with what the system says at the end.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use crate::chaos::{
    fate::{Fate, Fates},
    journal::{Arrival, Arrivals, Hook, Task, Told},
};

/// What must never be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Something that was answered with 200 is gone, or a webhook of a decision never arrived.
    Lost,
    /// Something arrived that was not decided so, or two decisions of one task were answered with 200.
    Phantom,
    /// A webhook arrived under two webhook-ids, or two webhooks under one.
    OtherId,
    /// A webhook arrived, and the system does not say `sent`.
    Unsettled,
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
    /// Callers who were told that somebody else had decided, though nobody had.
    pub(crate) conflicts: usize,
    /// What callers were told that is neither 200 nor unknown nor a lost race.
    pub(crate) refusals: Vec<String>,
    pub(crate) expected: usize,
    pub(crate) delivered: usize,
    /// Webhook-ids that a receiver took more than once.
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
                Told::Refused(said) if said.starts_with("409 ") => {
                    self.verdict.conflicts += usize::from(task.decisions.len() == 1);
                }
                Told::Refused(said) => {
                    self.verdict.refusals.push(format!("{}: {said}", task.id));
                }
            }
        }
        if won > 1 {
            self.find(Fault::Phantom, &task.id, "was decided twice with 200");
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
                Told::Refused(said) => {
                    let what = format!("{}: webhook {}: {said}", task.id, hook.key);
                    self.verdict.refusals.push(what);
                }
                _ => {}
            }
        }
        for hook in &task.hooks {
            let all = self.arrivals.get(&hook.key).map_or(&[][..], Vec::as_slice);
            self.contents(task, hook, fate, all);
            if fate.is_decided() && keys.contains(hook.key.as_str()) {
                self.delivery(task, hook, fate, all);
            } else if !all.is_empty() {
                let what = format!("webhook {} arrived without a decision", hook.key);
                self.find(Fault::Phantom, &task.id, what);
            }
        }
    }

    fn delivery(&mut self, task: &Task, hook: &Hook, fate: &Fate, all: &[Arrival]) {
        self.verdict.expected += 1;
        let mut taken = all.iter().filter(|arrival| arrival.taken);
        let key = &hook.key;
        let listed = fate.hooks.iter().find(|(listed, _)| listed == key);
        let said = listed.map_or("nothing", |(_, said)| said.as_str());
        let Some(first) = taken.next() else {
            let what = format!(
                "webhook {key} never arrived; {} attempts did; the system says {said}",
                all.len()
            );
            return self.find(Fault::Lost, &task.id, what);
        };
        self.verdict.delivered += 1;
        self.verdict.duplicates += usize::from(taken.next().is_some());
        if said != "sent" {
            let what = format!("webhook {key} arrived, and the system says {said}");
            self.find(Fault::Unsettled, &task.id, what);
        }
        let after = first.at.saturating_duration_since(self.times.healed);
        self.verdict.latest = self.verdict.latest.max(Some(after));
        if let [decision] = task.decisions.as_slice()
            && decision.told == Told::Done
            && decision.at < self.times.calm_until
            && hook.fast
        {
            let latency = first.at.saturating_duration_since(decision.at);
            self.verdict.latencies.push(latency);
        }
    }

    /// What every request says.
    fn contents(&mut self, task: &Task, hook: &'run Hook, fate: &Fate, all: &'run [Arrival]) {
        let key = &hook.key;
        let mut ids = BTreeSet::new();
        for arrival in all {
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
