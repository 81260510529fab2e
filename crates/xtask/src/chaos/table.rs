//! What a person reads at the end of a run.

use std::{collections::BTreeMap, time::Duration};

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
        let Verdict {
            answered,
            unknown,
            unknown_decided,
            expected,
            delivered,
            duplicates,
            ..
        } = self.verdict;
        outln!(
            "\n{}",
            paint::bold("what callers were told and what receivers got")
        );
        let uncreated = self.uncreated.len();
        row(
            "tasks created",
            &format!("{} ({uncreated} not)", self.tasks),
        );
        row("decisions answered 200", &answered.to_string());
        row(
            "decisions unknown",
            &format!("{unknown} (of these decided: {unknown_decided})"),
        );
        row("webhooks expected", &expected.to_string());
        row("delivered at least once", &delivered.to_string());
        self.must_be_zero("lost", Fault::Lost);
        self.must_be_zero("phantom", Fault::Phantom);
        self.must_be_zero("under different webhook-ids", Fault::OtherId);
        self.must_be_zero("delivered, not marked sent", Fault::Unsettled);
        row("duplicates (same webhook-id)", &duplicates.to_string());
        row(
            "latest delivery after healing",
            &seconds(self.verdict.latest),
        );
        let [half, most] = [50, 99].map(|percent| milliseconds(self.verdict.latency(percent)));
        row(
            "in calm: decision to delivery",
            &format!("p50 {half}, p99 {most}"),
        );
        let count: usize = self.faults.values().sum();
        row("faults", &count.to_string());
        for (kind, count) in &self.faults {
            row(&format!("  {}", kind.name()), &count.to_string());
        }
        row(
            "processes that ended by themselves",
            &self.ended_by_themselves.to_string(),
        );
        row("SIGTERM not obeyed in time", &self.slow_stops.to_string());
        row(
            "told 409 with nobody else deciding",
            &self.verdict.conflicts.to_string(),
        );
        row("other refusals", &self.refusals().len().to_string());
        self.explain();
    }

    fn must_be_zero(&self, name: &str, fault: Fault) {
        let count = self.verdict.count(fault);
        let text = format!("{count} (must be 0)");
        row(name, &if count == 0 { text } else { paint::red(&text) });
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

fn row(name: &str, value: &str) {
    outln!("  {name:36} {value}");
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
