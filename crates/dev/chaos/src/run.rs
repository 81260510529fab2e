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
use rig::{interrupt::Interrupt, output::say, sync::lock, workspace::Workspace};

use crate::{
    account_workload::AccountWorkload,
    arguments::Arguments,
    checker::{self, Times},
    failovers::FailoverResults,
    fault_injector::{self, FaultInjector},
    final_state::StateReader,
    history::{History, Task},
    one_shot_client::OneShotClient,
    receiver::{BEHAVIOURS, Receiver},
    recipients::Recipients,
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
    interrupt: &Interrupt,
) -> anyhow::Result<Report> {
    let history = Arc::new(History::default());
    let recipients = Recipients::open()?;
    let system = System::start(workspace, arguments, &recipients.urls(), interrupt)?;
    say(&settings::description(arguments.duration));
    let gateway = system.gateways.first().context("there is no gateway")?;
    let receivers = open_receivers(seed, &Keys::published(gateway)?, &history)?;
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let supervisor = scope.spawn(|| supervise(&system, &finished, interrupt));
        let run = Run {
            arguments,
            seed,
            system: &system,
            gateway,
            receivers: &receivers,
            recipients: &recipients,
            history: &history,
            interrupt,
        };
        let report = run.execute();
        finished.store(true, Ordering::Relaxed);
        let supervised = supervisor.join();
        supervised.unwrap_or_else(|_| Err(anyhow::anyhow!("the supervisor panicked")))?;
        report
    })
}

fn open_receivers(seed: u64, keys: &Keys, history: &Arc<History>) -> anyhow::Result<Vec<Receiver>> {
    let open = |(number, behaviour)| Receiver::open(number, behaviour, seed, keys, history);
    (1..).zip(BEHAVIOURS).map(open).collect()
}

fn supervise(system: &System, finished: &AtomicBool, interrupt: &Interrupt) -> anyhow::Result<()> {
    while !finished.load(Ordering::Relaxed) && !interrupt.came() {
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
    receivers: &'run [Receiver],
    recipients: &'run Recipients,
    history: &'run History,
    interrupt: &'run Interrupt,
}

impl Run<'_> {
    fn execute(&self) -> anyhow::Result<Report> {
        let users = [
            TestUser::sign_up(self.gateway, "creator")?,
            TestUser::sign_up(self.gateway, "approver")?,
        ];
        let begin = Instant::now();
        let failovers = &self.system.databases.failovers;
        let client = OneShotClient::new(&self.system.gateways, begin + schedule::CALM, failovers);
        let accounts = AccountWorkload::new(
            &client,
            self.gateway,
            &self.system.rig.admin,
            self.recipients,
            self.interrupt,
        )?;
        let faults = FaultInjector::new(self.system, self.receivers, self.interrupt, begin);
        let approver = users[1].clone();
        let creator = users[0].clone();
        let (healed, unexpected) =
            self.apply_load_and_faults(&faults, users, &client, &accounts)?;
        say("the last fault has ended; waiting for the remaining deliveries");
        self.system.wait_ready()?;
        let report = self.check(&faults, [&creator, &approver], &accounts, healed)?;
        Ok(report.complete(self.system.rig.panics()?, unexpected))
    }

    /// Waits for the remaining deliveries, and checks the outcome.
    fn check(
        &self,
        faults: &FaultInjector<'_>,
        users: [&TestUser; 2],
        accounts: &AccountWorkload<'_>,
        healed: Instant,
    ) -> anyhow::Result<Report> {
        let tasks = lock(&self.history.tasks).clone();
        let [creator, _] = users;
        creator.sign_in_again(self.gateway)?;
        let reader = StateReader {
            gateway: self.gateway,
            user: creator,
            history: self.history,
            interrupt: self.interrupt,
        };
        let end = healed + settings::RECOVERY_LIMIT + settings::LONGEST_PAUSE;
        let states = reader.wait_settled(&tasks, end)?;
        let admin = &accounts.admin;
        // Some deletions start only now. A lost delivery has used up the time until `end`.
        let accounts = accounts.check(end.max(Instant::now() + settings::RECOVERY_LIMIT))?;
        let times = Times {
            calm_until: faults.begin + schedule::CALM - CALM_MARGIN,
            healed,
        };
        let arrivals = lock(&self.history.arrivals).clone();
        Ok(Report {
            result: checker::check(&tasks, &states, &arrivals, times),
            faults: faults.counts(),
            slow_stops: faults.slow_stops(),
            unexpected_exits: self.system.rig.unexpected_exits(),
            tasks: tasks.len(),
            uncreated: lock(&self.history.uncreated).clone(),
            accounts,
            failovers: self.check_failovers(&tasks, &[creator, users[1], admin]),
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

    /// Returns when the last fault ended, and the unexpected responses of the account workload.
    fn apply_load_and_faults(
        &self,
        faults: &FaultInjector<'_>,
        users: [TestUser; 2],
        client: &OneShotClient,
        accounts: &AccountWorkload<'_>,
    ) -> anyhow::Result<(Instant, Vec<String>)> {
        let duration = self.arguments.duration;
        let profile = LoadProfile {
            seed: self.seed,
            rate: task_workload::limit_rate(self.arguments.rate, duration),
            with_due: true,
            first: 0,
            end: faults.begin + duration,
        };
        let tasks = TaskWorkload::new(
            &profile,
            client,
            users,
            self.receivers,
            self.history,
            self.interrupt,
        );
        let parts = fault_injector::parts(self.system, self.receivers);
        let planned = schedule::plan_faults(self.seed, duration, &parts);
        say(&format!(
            "{} tasks per second and {} faults for {} s",
            profile.rate,
            planned.len(),
            duration.as_secs()
        ));
        thread::scope(|scope| {
            for _ in 0..task_workload::CALLERS {
                scope.spawn(|| tasks.run_caller());
            }
            let accounts = scope.spawn(|| accounts.run(faults.begin, duration));
            faults.inject_all(&planned)?;
            let healed = Instant::now();
            let unexpected = accounts.join();
            let unexpected =
                unexpected.map_err(|_| anyhow::anyhow!("the account workload panicked"))?;
            Ok((healed, unexpected))
        })
    }
}
