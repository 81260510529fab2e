//! What is printed at the end.

use std::time::Duration;

use rig::{outln, paint};

use crate::{checker::CheckResult, finding::Violation, one_shot_client::Statistics};

/// At most this many findings are listed.
const MAX_LISTED: usize = 20;

/// The most calls without a response while a version is replaced that cannot drain its connections: one for each process
/// that serves requests.
const MAX_UNKNOWN: usize = 6;

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
        let fine = |Phase { calls, .. }: &Phase| {
            calls.failed == 0 && calls.calls > 0 && calls.unknown <= MAX_UNKNOWN
        };
        self.phases.iter().all(fine)
            && self.result.findings.is_empty()
            && self.result.succeeded > 0
            && self.panics.is_empty()
    }

    pub(super) fn print(&self) {
        let header = format!(
            "{:22} {:>8} {:>9} {:>7} {:>12} {:>8}",
            "phase", "seconds", "requests", "failed", "no response", "slowest"
        );
        outln!("\n{}", paint::bold(&header));
        for Phase { name, took, calls } in &self.phases {
            outln!(
                "{name:22} {:>8.1} {:>9} {:>7} {:>12} {:>5} ms",
                took.as_secs_f64(),
                calls.calls,
                calls.failed,
                calls.unknown,
                calls.slowest.as_millis()
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
            outln!("  {problem}");
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
