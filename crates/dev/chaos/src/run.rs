//! One run: starts the system, applies load and faults, waits for recovery, and checks the outcome.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use rig::{
    interrupt,
    output::say,
    sync::{join, lock},
    workspace::Workspace,
};

use crate::{
    Arguments,
    account_workload::{AccountWorkload, Recipients},
    checker::{self, Times},
    creations,
    databases::FailoverResults,
    fault_injector::FaultInjector,
    final_state::StateReader,
    history::{Finding, History, Task, Violation},
    one_shot_client::OneShotClient,
    receiver::{BEHAVIOURS, Receiver},
    report::Report,
    schedule, settings,
    signature::Keys,
    system::System,
    task_workload::{self, LoadProfile, TaskWorkload},
    test_user::TestUser,
};

const SUPERVISION_INTERVAL: Duration = Duration::from_millis(250);
/// The first fault does not affect deliveries of decisions that were made this long before it.
const CALM_MARGIN: Duration = Duration::from_secs(1);

/// Runs the whole test. The caller stops what it starts.
pub(crate) fn run(
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
) -> anyhow::Result<Report> {
    let history = Arc::new(History::default());
    let recipients = Recipients::open()?;
    let system = System::start(workspace, arguments, &recipients)?;
    let changed = settings::changed(arguments.duration).into_iter();
    let changed: Vec<_> = changed
        .map(|(name, value)| format!("{name}={value:.30}"))
        .collect();
    say(&changed.join(" "));
    let gateway = system.gateways.first().context("there is no gateway")?;
    let keys = Keys::published(gateway)?;
    let open = |(number, behaviour)| Receiver::open(number, behaviour, seed, &keys, &history);
    let receivers = (1..).zip(BEHAVIOURS).map(open);
    let run = Run {
        arguments,
        seed,
        system: &system,
        gateway,
        receivers: receivers.collect::<anyhow::Result<_>>()?,
        recipients: &recipients,
        history: &history,
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

/// A run on a system that is ready.
struct Run<'run> {
    arguments: &'run Arguments,
    seed: u64,
    system: &'run System,
    gateway: &'run str,
    receivers: Vec<Receiver>,
    recipients: &'run Recipients,
    history: &'run History,
}

impl Run<'_> {
    fn execute(&self) -> anyhow::Result<Report> {
        let users = [
            TestUser::sign_up(self.gateway, "creator")?,
            TestUser::sign_up(self.gateway, "approver")?,
        ];
        let duration = self.arguments.duration;
        let faults = FaultInjector::plan(self.system, &self.receivers, self.seed, duration);
        let failovers = &self.system.databases.failovers;
        let client = OneShotClient::new(&self.system.gateways, failovers);
        let admin = &self.system.rig.admin;
        let accounts = AccountWorkload::new(&client, self.gateway, admin, self.recipients)?;
        let healed = self.apply_load_and_faults(&faults, &users, &client, &accounts)?;
        say("the last fault has ended; waiting for the remaining deliveries");
        self.system.wait_ready()?;
        self.check(&faults, &users, &accounts, healed)
    }

    /// Waits for the remaining deliveries, and checks the outcome.
    fn check(
        &self,
        faults: &FaultInjector<'_>,
        [creator, approver]: &[TestUser; 2],
        accounts: &AccountWorkload<'_>,
        healed: Instant,
    ) -> anyhow::Result<Report> {
        let tasks = lock(&self.history.tasks).clone();
        creator.sign_in_again(self.gateway)?;
        let reader = StateReader {
            gateway: self.gateway,
            user: creator,
            history: self.history,
        };
        let end = healed + settings::RECOVERY_LIMIT + settings::LONGEST_PAUSE;
        let states = reader.wait_settled(&tasks, end)?;
        let admin = &accounts.admin;
        // Some deletions start only now. A lost delivery has used up the time until `end`.
        let mut accounts = accounts.check(end.max(Instant::now() + settings::RECOVERY_LIMIT))?;
        let times = Times {
            calm_until: faults.begin + schedule::CALM - CALM_MARGIN,
            healed,
        };
        let arrivals = lock(&self.history.arrivals).clone();
        let mut result = checker::check(&tasks, &states, &arrivals, times);
        let mut failovers = self.check_failovers(&tasks, &[creator, approver, admin]);
        let findings = &mut result.findings;
        findings.extend(creations::check(self.history, self.gateway, creator)?);
        findings.append(&mut accounts.findings);
        findings.append(&mut failovers.findings);
        findings.extend(Finding::of_run(Violation::Panic, self.system.rig.panics()?));
        Ok(Report {
            result,
            faults: faults.counts(),
            slow_stops: faults.slow_stops.load(Ordering::Relaxed),
            unexpected_exits: self.system.rig.unexpected_exits(),
            tasks: tasks.len(),
            uncreated: lock(&self.history.uncreated).len(),
            accounts,
            failovers,
        })
    }

    /// Checks promotions of the standby, and that no process accepts a token from before the last one.
    fn check_failovers(&self, tasks: &[Task], users: &[&TestUser]) -> FailoverResults {
        let failovers = &self.system.databases.failovers;
        let mut results = failovers.check(tasks);
        if let Some(killed) = failovers.last_killed() {
            let processes = self.system.rig.token_verifiers();
            for user in users {
                results.tokens += user.check_revoked(&processes, killed, &mut results.findings);
            }
        }
        results
    }

    /// Returns when the last fault ended.
    fn apply_load_and_faults(
        &self,
        faults: &FaultInjector<'_>,
        users: &[TestUser; 2],
        client: &OneShotClient,
        accounts: &AccountWorkload<'_>,
    ) -> anyhow::Result<Instant> {
        let duration = self.arguments.duration;
        let profile = LoadProfile {
            seed: self.seed,
            rate: task_workload::limit_rate(self.arguments.rate, duration),
            with_due: true,
            end: faults.begin + duration,
        };
        let tasks = TaskWorkload::new(&profile, client, users, &self.receivers, self.history);
        say(&format!(
            "{} tasks per second and {} faults for {} s",
            profile.rate,
            faults.faults.len(),
            duration.as_secs()
        ));
        thread::scope(|scope| {
            for _ in 0..task_workload::CALLERS {
                scope.spawn(|| tasks.run_caller());
            }
            scope.spawn(|| accounts.run(faults.begin, duration));
            interrupt::sleep_until(faults.begin + schedule::CALM);
            client.set_calm(false);
            faults.inject_all()?;
            Ok(Instant::now())
        })
    }
}
