//! The table that is printed at the end of a run.

use rig::outln;
use rig::paint::{BOLD, RED, Style};
use std::{collections::BTreeMap, fmt::Display, time::Duration};

use crate::account_workload::AccountResults;
use crate::checker::CheckResult;
use crate::databases::FailoverResults;
use crate::history::{Finding, Violation};
use crate::schedule::FaultKind;

/// At most this many findings are listed; the rest are counted.
const MAX_LISTED: usize = 20;

pub(crate) struct Report {
    pub(crate) result: CheckResult,
    pub(crate) faults: BTreeMap<FaultKind, usize>,
    pub(crate) slow_stops: usize,
    pub(crate) unexpected_exits: usize,
    pub(crate) uncreated: usize,
    pub(crate) accounts: AccountResults,
    pub(crate) failovers: FailoverResults,
}

impl Report {
    pub(crate) fn print(&self) {
        outln!("\n{BOLD}responses to callers and requests to receivers{BOLD:#}");
        self.print_tasks();
        self.print_accounts();
        self.print_failovers();
        self.print_faults();
        self.result.print_findings();
    }

    fn print_tasks(&self) {
        let result = &self.result;
        let created = format!("{} (failed: {})", result.tasks, self.uncreated);
        row("tasks created", created);
        row("decisions with 200", result.succeeded);
        let decided = result.unknown_decided;
        let unknown = format!("{} (of these decided: {decided})", result.unknown);
        row("decisions unknown", unknown);
        row("decisions that lost a race", result.conflicts);
        row("deliveries due", result.expected);
        row("  of these for due dates", result.due);
        row("delivered at least once", result.delivered);
        self.must_be_zero("lost", Violation::Lost);
        self.must_be_zero("delivered, never decided: phantom", Violation::Phantom);
        row("duplicates (same webhook-id)", result.duplicates);
        self.must_be_zero("wrong webhook-id", Violation::WebhookId);
        row("signatures checked", result.requests);
        self.must_be_zero("bad signatures", Violation::Signature);
        row("webhooks refused with 410", result.gone);
        self.must_be_zero("wrong webhook status", Violation::WebhookStatus);
        self.must_be_zero("retried before Retry-After", Violation::RetriedTooEarly);
        let seconds = |latest: Duration| format!("{:.1} s", latest.as_secs_f64());
        let latest = result.latest.map_or_else(|| "-".to_owned(), seconds);
        row("latest delivery after recovery", latest);
        let count = result.latencies.len();
        let milliseconds = |time: Duration| format!("{} ms", time.as_millis());
        let [p50, p99] = [50, 99].map(|percent| {
            let latency = result.latency(percent);
            latency.map_or_else(|| "-".to_owned(), milliseconds)
        });
        let calm = format!("p50 {p50}, p99 {p99} (of {count})");
        row("decision to delivery, no faults", calm);
        self.must_be_zero("unexpected responses", Violation::UnexpectedResponse);
    }

    fn print_accounts(&self) {
        let accounts = &self.accounts;
        row("sign-ups with 200", accounts.signed_up);
        let seen = |effects: &[bool]| effects.iter().filter(|is_seen| **is_seen).count();
        let deletions = format!(
            "{} (completed: {}, and {} with unknown outcome)",
            accounts.deletions.len(),
            seen(&accounts.deletions),
            accounts.deleted_unknown
        );
        row("deletions with 200", deletions);
        let arrivals = |all: &[bool]| format!("{} (arrived: {})", all.len(), seen(all));
        row("password codes with 200", arrivals(&accounts.codes));
        row(
            "tasks with a mail to the approver",
            arrivals(&accounts.mails),
        );
        self.must_be_zero("wrong account state", Violation::AccountState);
        self.must_be_zero("panics in the logs", Violation::Panic);
    }

    fn print_failovers(&self) {
        let failovers = &self.failovers;
        if failovers.rows.is_empty() {
            return;
        }
        row("decisions refused: signed out", self.result.signed_out);
        row("earlier tokens tried", failovers.tokens);
        self.must_be_zero("earlier tokens accepted", Violation::EarlierToken);
        self.must_be_zero("decided without the standby", Violation::Unreplicated);
        for (name, value) in &failovers.rows {
            row(name, value);
        }
    }

    fn print_faults(&self) {
        row("faults", self.faults.values().sum::<usize>());
        for (kind, count) in &self.faults {
            row(&format!("  {}", kind.name()), count);
        }
        row("unexpected process exits", self.unexpected_exits);
        row("slow stops after SIGTERM", self.slow_stops);
    }

    fn must_be_zero(&self, name: &str, violation: Violation) {
        let count = self.result.count(violation);
        let style = if count == 0 { Style::new() } else { RED };
        row(name, format!("{style}{count} (must be 0){style:#}"));
    }
}

impl CheckResult {
    /// Whether at least one decision succeeded and nothing is wrong.
    pub(crate) fn passed(&self) -> bool {
        self.findings.is_empty() && self.succeeded > 0
    }

    pub(crate) fn print_findings(&self) {
        for finding in self.findings.iter().take(MAX_LISTED) {
            let violation = format!("{:?}", finding.violation).to_lowercase();
            let Finding { task, what, .. } = finding;
            outln!("{RED}{violation}{RED:#} task {task} {what}");
        }
        if self.findings.len() > MAX_LISTED {
            outln!("and {} more", self.findings.len() - MAX_LISTED);
        }
        if self.succeeded == 0 {
            outln!("{RED}error:{RED:#} no decision succeeded");
        }
    }
}

fn row(name: &str, value: impl Display) {
    outln!("  {name:34} {value}");
}
