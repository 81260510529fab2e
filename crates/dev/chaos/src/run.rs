//! One run: starts the system, applies load and faults, waits for recovery, and checks the outcome.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rig::{Workspace, interrupt, join, lock, say};

use crate::account_workload::{AccountWorkload, Recipients};
use crate::callers::{OneShotClient, TestUser};
use crate::checker::{self, Times};
use crate::databases::FailoverResults;
use crate::fault_injector::FaultInjector;
use crate::history::{Finding, Task, Violation};
use crate::receiver;
use crate::report::Report;
use crate::system::System;
use crate::task_workload::{self, Load, TaskWorkload};
use crate::{Arguments, final_state, schedule, settings};

const SUPERVISION_INTERVAL: Duration = Duration::from_millis(250);
/// The first fault does not affect deliveries of decisions that were made this long before it.
const CALM_MARGIN: Duration = Duration::from_secs(1);

/// Runs the whole test. The caller stops what it starts.
pub(crate) fn run(
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
) -> anyhow::Result<Report> {
    let recipients = Recipients::open()?;
    let system = System::start(workspace, arguments, &recipients)?;
    let changed = settings::changed(arguments.duration).into_iter();
    let changed: Vec<_> = changed
        .map(|(name, value)| format!("{name}={value:.30}"))
        .collect();
    say(&changed.join(" "));
    let rate = task_workload::limit_rate(arguments.rate, arguments.duration);
    let client = OneShotClient::new(&system.gateways, Some(&system.databases.failovers));
    let run = Run {
        duration: arguments.duration,
        system: &system,
        recipients: &recipients,
        load: Load::open(seed, rate, true, client, receiver::behaviours())?,
    };
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let supervisor = scope.spawn(|| supervise(&system, &finished));
        let report = run.execute();
        finished.store(true, Ordering::Relaxed);
        join(supervisor)??;
        report
    })
}

fn supervise(system: &System, finished: &AtomicBool) -> anyhow::Result<()> {
    while !finished.load(Ordering::Relaxed) && !interrupt::came() {
        system.rig.restart_exited()?;
        thread::sleep(SUPERVISION_INTERVAL);
    }
    Ok(())
}

struct Run<'run> {
    duration: Duration,
    system: &'run System,
    recipients: &'run Recipients,
    load: Load<'run>,
}

impl Run<'_> {
    fn execute(&self) -> anyhow::Result<Report> {
        let (system, load, duration) = (self.system, &self.load, self.duration);
        let tasks = TaskWorkload::new(load)?;
        let faults = FaultInjector::plan(system, &load.receivers, load.seed, duration)?;
        let admin = &system.rig.admin;
        let accounts = AccountWorkload::new(&load.client, admin, self.recipients)?;
        say(&format!(
            "{} tasks per second and {} faults for {} s",
            load.rate,
            faults.faults.len(),
            duration.as_secs()
        ));
        let healed = thread::scope(|scope| {
            for _ in 0..task_workload::CALLERS {
                scope.spawn(|| tasks.run_caller());
            }
            scope.spawn(|| accounts.run(faults.begin, duration));
            interrupt::sleep_until(faults.begin + schedule::CALM);
            load.client.set_calm(false);
            let healed = faults.inject_all().map(|()| Instant::now());
            interrupt::sleep_until(faults.begin + duration);
            tasks.stop();
            healed
        })?;
        say("the last fault has ended; waiting for the remaining deliveries");
        system.wait_ready()?;
        self.check(&faults, &tasks, &accounts, healed)
    }

    /// Waits for the remaining deliveries, and checks the outcome.
    fn check(
        &self,
        faults: &FaultInjector<'_>,
        workload: &TaskWorkload<'_>,
        accounts: &AccountWorkload<'_>,
        healed: Instant,
    ) -> anyhow::Result<Report> {
        let (creator, approver) = (&workload.creator, &workload.approver);
        let tasks = lock(&self.load.history.tasks).clone();
        creator.sign_in_again(&self.load.client)?;
        let end = healed + settings::RECOVERY_LIMIT + settings::LONGEST_PAUSE;
        let (client, history) = (&self.load.client.repeating, &self.load.history);
        let states = final_state::wait_settled(client, creator, history, &tasks, end)?;
        let admin = &accounts.admin;
        // Some deletions start only now. A lost delivery has used up the time until `end`.
        let mut accounts = accounts.check(end.max(Instant::now() + settings::RECOVERY_LIMIT))?;
        let times = Times {
            calm_until: faults.begin + schedule::CALM - CALM_MARGIN,
            healed,
        };
        let arrivals = lock(&self.load.history.arrivals).clone();
        let mut result = checker::check(&tasks, &states, &arrivals, times);
        let mut failovers = self.check_failovers(&tasks, &[creator, approver, admin]);
        let findings = &mut result.findings;
        findings.extend(workload.check_creations()?);
        findings.append(&mut accounts.findings);
        findings.append(&mut failovers.findings);
        let panics = self.system.rig.panics()?.into_iter();
        findings.extend(panics.map(|what| Finding::new(Violation::Panic, "-", what)));
        Ok(Report {
            result,
            faults: faults.counts(),
            slow_stops: faults.slow_stops.load(Ordering::Relaxed),
            unexpected_exits: self.system.rig.unexpected_exits.load(Ordering::Relaxed),
            uncreated: lock(&self.load.history.uncreated).len(),
            accounts,
            failovers,
        })
    }

    /// Checks promotions of the standby, and that no process accepts a token from before the last one.
    fn check_failovers(&self, tasks: &[Task], users: &[&TestUser]) -> FailoverResults {
        let failovers = &self.system.databases.failovers;
        let mut results = failovers.check(tasks);
        let killed = lock(&failovers.killed).last().copied();
        if let Some(killed) = killed {
            let processes: Vec<_> = self.system.rig.token_verifiers().collect();
            for user in users {
                results.tokens += user.check_revoked(&processes, killed, &mut results.findings);
            }
        }
        results
    }
}
