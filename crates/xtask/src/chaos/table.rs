//! What a person reads at the end of a run.

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use crate::{
    chaos::{
        journal::Told,
        schedule::Kind,
        verdict::{Fault, Verdict},
    },
    paint,
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
        row("webhooks expected", verdict.expected);
        row("delivered at least once", verdict.delivered);
        self.must_be_zero("lost", Fault::Lost);
        self.must_be_zero("phantom", Fault::Phantom);
        self.must_be_zero("under different webhook-ids", Fault::OtherId);
        self.must_be_zero("delivered, not marked sent", Fault::Unsettled);
        row("duplicates (same webhook-id)", verdict.duplicates);
        row("latest delivery after healing", seconds(verdict.latest));
        let [half, most] = [50, 99].map(|percent| milliseconds(verdict.latency(percent)));
        let count = verdict.latencies.len();
        let calm = format!("p50 {half}, p99 {most} (of {count})");
        row("in calm: decision to delivery", calm);
        row("told 409, nobody else deciding", verdict.conflicts);
        row("other refusals", self.refusals().len());
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

    fn refusals(&self) -> Vec<String> {
        let uncreated = self.uncreated.iter().filter_map(|told| match told {
            Told::Refused(said) => Some(format!("creating a task: {said}")),
            _ => None,
        });
        uncreated
            .chain(self.verdict.refusals.iter().cloned())
            .collect()
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
        for refusal in self.refusals().iter().take(SHOWN) {
            outln!("{} {refusal}", paint::yellow("refused"));
        }
        if self.verdict.answered == 0 {
            outln!("{} no decision was answered with 200", paint::red("error:"));
        }
    }
}

fn row(name: &str, value: impl Display) {
    outln!("  {name:32} {value}");
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
