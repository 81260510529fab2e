//! What a person reads at the end of a run.

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use xtask::{outln, paint};

use crate::{
    journal::Told,
    schedule::Kind,
    verdict::{Fault, Finding, Verdict},
    visitors::Visits,
};

/// Findings that are shown one by one; the rest is counted.
const SHOWN: usize = 20;

/// A run that has ended.
pub(crate) struct Report {
    pub(crate) verdict: Verdict,
    pub(crate) faults: BTreeMap<Kind, usize>,
    pub(crate) slow_stops: usize,
    pub(crate) ended_by_themselves: usize,
    pub(crate) tasks: usize,
    pub(crate) uncreated: Vec<Told>,
    pub(crate) visits: Visits,
}

impl Report {
    /// Whether nothing was lost and nothing was made up.
    pub(crate) fn holds(&self) -> bool {
        self.verdict.findings.is_empty() && self.verdict.answered > 0
    }

    pub(crate) fn print(&self) {
        outln!(
            "\n{}",
            paint::bold("what callers were told and what receivers got")
        );
        self.print_comparison();
        self.print_visits();
        self.print_faults();
        self.explain();
    }

    fn print_comparison(&self) {
        let verdict = &self.verdict;
        let created = format!("{} (not: {})", self.tasks, self.uncreated.len());
        row("tasks created", created);
        row("decisions answered 200", verdict.answered);
        let decided = verdict.unknown_decided;
        let unknown = format!("{} (of these decided: {decided})", verdict.unknown);
        row("decisions unknown", unknown);
        row("decisions lost to another", verdict.conflicts);
        row("deliveries due", verdict.expected);
        row("delivered at least once", verdict.delivered);
        self.must_be_zero("lost", Fault::Lost);
        self.must_be_zero("delivered, never decided: phantom", Fault::Phantom);
        row("duplicates (same webhook-id)", verdict.duplicates);
        self.must_be_zero("under another webhook-id", Fault::OtherId);
        row("signatures checked", verdict.requests);
        self.must_be_zero("bad signatures", Fault::Forged);
        row("receivers that answered 410", verdict.gone);
        self.must_be_zero("status unlike what happened", Fault::Unsettled);
        self.must_be_zero("sooner than Retry-After", Fault::Hasty);
        row("latest delivery after healing", seconds(verdict.latest));
        let [half, most] = [50, 99].map(|percent| milliseconds(verdict.latency(percent)));
        let count = verdict.latencies.len();
        let calm = format!("p50 {half}, p99 {most} (of {count})");
        row("in calm: decision to delivery", calm);
        self.must_be_zero("unexpected answers", Fault::Answer);
    }

    fn print_visits(&self) {
        let visits = &self.visits;
        row("sign-ups answered 200", visits.signed_up);
        let deletions = format!(
            "{} (completed: {}, and {} unanswered)",
            visits.deletions, visits.deleted, visits.deleted_unheard
        );
        row("deletions answered 200", deletions);
        let codes = format!("{} (arrived: {})", visits.codes, visits.arrived);
        row("messages answered 200", codes);
        self.must_be_zero("accounts unlike what was told", Fault::Account);
        self.must_be_zero("panics in the logs", Fault::Panic);
    }

    fn print_faults(&self) {
        row("faults", self.faults.values().sum::<usize>());
        for (kind, count) in &self.faults {
            row(&format!("  {}", kind.name()), count);
        }
        row("processes that ended unasked", self.ended_by_themselves);
        row("SIGTERM not obeyed in time", self.slow_stops);
    }

    fn must_be_zero(&self, name: &str, fault: Fault) {
        let count = self.verdict.count(fault);
        let text = format!("{count} (must be 0)");
        row(name, if count == 0 { text } else { paint::red(&text) });
    }

    /// Takes what is wrong with accounts and creations into the verdict.
    pub(crate) fn complete(mut self, panics: Vec<String>, unexpected: Vec<String>) -> Self {
        let uncreated = self.uncreated.iter().filter_map(|told| match told {
            Told::Unexpected(said) => Some(format!("creating a task: {said}")),
            Told::Resolved(_) => Some("creating a task: 409".to_owned()),
            _ => None,
        });
        let answers = uncreated
            .chain(unexpected)
            .map(|what| (Fault::Answer, what));
        let panics = panics.into_iter().map(|what| (Fault::Panic, what));
        let all = answers.chain(panics).map(|(fault, what)| Finding {
            fault,
            task: "-".to_owned(),
            what,
        });
        let all: Vec<_> = all.collect();
        self.verdict.findings.extend(all);
        self.verdict.findings.append(&mut self.visits.findings);
        self
    }

    /// Names what is wrong.
    fn explain(&self) {
        let findings = &self.verdict.findings;
        for finding in findings.iter().take(SHOWN) {
            let fault = format!("{:?}", finding.fault).to_lowercase();
            outln!(
                "{} task {} {}",
                paint::red(&fault),
                finding.task,
                finding.what
            );
        }
        if findings.len() > SHOWN {
            outln!("and {} more", findings.len() - SHOWN);
        }
        if self.verdict.answered == 0 {
            outln!("{} no decision was answered with 200", paint::red("error:"));
        }
    }
}

fn row(name: &str, value: impl Display) {
    outln!("  {name:34} {value}");
}

fn seconds(duration: Option<Duration>) -> String {
    duration.map_or_else(
        || "-".to_owned(),
        |duration| format!("{:.1} s", duration.as_secs_f64()),
    )
}

fn milliseconds(duration: Option<Duration>) -> String {
    duration.map_or_else(
        || "-".to_owned(),
        |duration| format!("{} ms", duration.as_millis()),
    )
}
