//! What is printed at the end.

use std::time::Duration;

use xtask::{outln, paint};

use crate::{
    checker::{CheckResult, Violation},
    one_shot_client::Statistics,
};

/// At most this many findings are listed.
const MAX_LISTED: usize = 20;

/// A phase and the calls of its load.
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) took: Duration,
    pub(super) calls: Statistics,
}

/// The results of a run.
pub(super) struct Summary {
    pub(super) phases: Vec<Phase>,
    pub(super) tasks: usize,
    pub(super) result: CheckResult,
    pub(super) panics: Vec<String>,
}

impl Summary {
    /// Whether calls were made in each phase, no call failed, and no webhook is lost.
    pub(super) fn passed(&self) -> bool {
        let fine = |phase: &Phase| phase.calls.failed == 0 && phase.calls.calls > 0;
        self.phases.iter().all(fine)
            && self.result.findings.is_empty()
            && self.result.succeeded > 0
            && self.panics.is_empty()
    }

    pub(super) fn print(&self) {
        let header = format!(
            "{:24} {:>9} {:>9} {:>9} {:>9}",
            "phase", "seconds", "requests", "failed", "slowest"
        );
        outln!("\n{}", paint::bold(&header));
        for Phase { name, took, calls } in &self.phases {
            let failed = format!("{:>9}", calls.failed);
            let failed = if calls.failed == 0 {
                failed
            } else {
                paint::red(&failed)
            };
            let slowest = format!("{} ms", calls.slowest.as_millis());
            let seconds = took.as_secs_f64();
            outln!(
                "{name:24} {seconds:>9.1} {:>9} {failed} {slowest:>9}",
                calls.calls
            );
        }
        self.print_webhooks();
        let examples = self.phases.iter().flat_map(|phase| {
            let name = phase.name;
            phase
                .calls
                .examples
                .iter()
                .map(move |example| format!("{name}: {example}"))
        });
        let findings = self.result.findings.iter();
        let findings = findings.map(|finding| format!("task {}: {}", finding.task, finding.what));
        let all = examples.chain(findings).chain(self.panics.iter().cloned());
        for problem in all.take(MAX_LISTED) {
            outln!("{} {problem}", paint::red("failed:"));
        }
    }

    fn print_webhooks(&self) {
        let result = &self.result;
        outln!(
            "\n{} tasks, {} decisions with 200, {} webhooks due, {} delivered, {} lost, {} delivered twice, {} signatures checked, {} wrong",
            self.tasks,
            result.succeeded,
            result.expected,
            result.delivered,
            result.count(Violation::Lost),
            result.duplicates,
            result.requests,
            result.count(Violation::Signature),
        );
    }
}
