//! `cargo xtask upgrade-test`: replaces the processes of a running system, one after the other, and no call may fail, as
//! [the guide to upgrades](../../../../../deploy/UPGRADING.md) promises.
//!
//! The load balancers do what a Service of Kubernetes does: a new connection goes to the next replica that was ready
//! when it was last asked, and open connections stay where they are. Nothing repeats a call.

mod earlier;
mod fleet;
mod load;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use local_stack::random;
use rig::paint::BOLD;
use rig::{
    Profile, Source, Workspace, interrupt, lock, outln, programs, say, verdict, with_own_system,
};

use self::fleet::{Fleet, Version};
use self::load::Phase;
use crate::callers::{OneShotClient, TestUser};
use crate::checker::{self, CheckResult, Times};
use crate::history::{Finding, Violation};
use crate::receiver::Behaviour;
use crate::task_workload::Load;
use crate::{final_state, settings};

/// How long the system serves in the earlier version before anything changes.
const BEFORE: Duration = Duration::from_secs(5);

const RECEIVERS: usize = 3;

/// The programs that read the keys of webhooks.
const WEBHOOK_PROGRAMS: &[&str] = &["people-task-service", "webhook-worker"];

/// The steps of `deploy/KEY-ROTATION.md` for several replicas: the key, the step, and the programs that are replaced after it.
const ROTATIONS: [(&str, &str, &[&str]); 6] = [
    ("token", "prepare", &["user-service"]),
    ("token", "switch", &["user-service", "deletion-worker"]),
    // The users of this phase sign up after the switch, as if all earlier tokens had expired.
    ("token", "drop", &["user-service"]),
    ("webhook", "prepare", WEBHOOK_PROGRAMS),
    ("webhook", "switch", WEBHOOK_PROGRAMS),
    (
        "webhook",
        "drop",
        &["webhook-worker", "people-task-service"],
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Upgrade from the earlier version, go back, and upgrade again.
    Upgrade,
    /// Restart every process.
    Restart,
    /// Rotate both signing keys.
    RotateKeys,
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// The version to upgrade from. By default the last tag, or the commit of the last migration of 0.2.0.
    #[arg(long, value_name = "REVISION")]
    from: Option<String>,
    /// Run only this part. Can be repeated.
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Tasks per second. There are twice as many other requests.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rate: u32,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let test = |workspace: &_| run_phases(workspace, arguments);
    let summary = with_own_system("upgrade-test/system", test, Summary::passed)?;
    summary.print();
    Ok(verdict("upgrade-test", summary.passed()))
}

/// Runs the test. The caller stops what it starts.
fn run_phases(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<Summary> {
    let includes = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let upgrades = includes(Part::Upgrade);
    let build = || earlier::build(workspace, arguments.from.as_deref());
    let earlier = upgrades.then(build).transpose()?;
    let with_due = earlier.as_ref().is_none_or(|earlier| earlier.knows_due);
    interrupt::check()?;
    let new = programs::get(workspace, Source::Build(Profile::Dev))?;
    interrupt::check()?;
    let fleet = Fleet::start(workspace, earlier, new)?;
    let seed = random::seed();
    let gateway = std::slice::from_ref(&fleet.system.gateway);
    let client = OneShotClient::new(gateway, None);
    let mut test = Test {
        load: Load::open(
            seed,
            arguments.rate,
            with_due,
            client,
            [Behaviour::Fast; RECEIVERS],
        )?,
        fleet,
        phases: Vec::new(),
    };
    if upgrades {
        test.upgrade()?;
    }
    if includes(Part::Restart) {
        test.phase("restart", |fleet| fleet.replace_all(Version::New))?;
    }
    if includes(Part::RotateKeys) {
        test.rotate_keys()?;
    }
    test.summarize()
}

struct Test {
    fleet: Fleet,
    load: Load<'static>,
    phases: Vec<Phase>,
}

impl Test {
    /// Does the work under load, and remembers the calls.
    fn phase(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Fleet) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        say(name);
        let phase = self.load.during(name, || work(&mut self.fleet));
        self.phases.push(phase.with_context(|| name.to_owned())?);
        Ok(())
    }

    fn upgrade(&mut self) -> anyhow::Result<()> {
        self.phase("earlier version", |_| {
            std::thread::sleep(BEFORE);
            Ok(())
        })?;
        self.phase("migrate", |fleet| fleet.migrate())?;
        self.upgrade_all("upgrade")?;
        self.phase("roll back", |fleet| fleet.replace_all(Version::Earlier))?;
        self.upgrade_all("upgrade again")
    }

    fn upgrade_all(&mut self, name: &str) -> anyhow::Result<()> {
        self.load.client.set_calm(self.fleet.drains());
        self.phase(name, |fleet| fleet.replace_all(Version::New))?;
        self.load.client.set_calm(true);
        Ok(())
    }

    fn rotate_keys(&mut self) -> anyhow::Result<()> {
        let receivers = self.load.keys.clone();
        for (key, step, replaced) in ROTATIONS {
            self.phase(&format!("{key} key: {step}"), |fleet| {
                fleet.rotate_key(key, step)?;
                for program in replaced {
                    fleet.replace(program, Version::New)?;
                    // Receivers know the second key before a worker signs with it, too.
                    if (*program, step) == ("people-task-service", "prepare") {
                        receivers.load(&fleet.system.client())?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Waits for the remaining webhooks, and compares what callers were told with what receivers got.
    fn summarize(self) -> anyhow::Result<Summary> {
        say("waiting for the remaining webhooks");
        let client = &self.load.client.repeating;
        let history = &self.load.history;
        let tasks = lock(&history.tasks).clone();
        let healed = Instant::now();
        let admin = &self.fleet.system.admin;
        // The administrator may read every task, also those of users whose tokens are no longer valid.
        let admin = TestUser::new(|| client.sign_in(&admin.username, &admin.password))?;
        let end = healed + settings::RECOVERY_LIMIT;
        let states = final_state::wait_settled(client, &admin, history, &tasks, end)?;
        let times = Times {
            calm_until: healed,
            healed,
        };
        let mut result = checker::check(&tasks, &states, &lock(&history.arrivals), times);
        let panics = self.fleet.system.panics()?.into_iter();
        let panics = panics.map(|what| Finding::new(Violation::Panic, "-", what));
        result.findings.extend(panics);
        result.findings.extend(history.unexpected_creations());
        Ok(Summary {
            result,
            phases: self.phases,
        })
    }
}

/// The most calls without a response while a version is replaced that cannot drain its connections: one for each process
/// that serves requests.
const MAX_UNKNOWN: usize = 6;

struct Summary {
    phases: Vec<Phase>,
    result: CheckResult,
}

impl Summary {
    /// Whether calls were made in each phase, no call failed, and no webhook is lost.
    fn passed(&self) -> bool {
        let fine = |Phase { calls, .. }: &Phase| {
            calls.failed == 0 && calls.calls > 0 && calls.unknown <= MAX_UNKNOWN
        };
        self.phases.iter().all(fine) && self.result.passed()
    }

    fn print(&self) {
        let header = format!(
            "{:22} {:>8} {:>9} {:>7} {:>12} {:>8}",
            "phase", "seconds", "requests", "failed", "no response", "slowest"
        );
        outln!("\n{BOLD}{header}{BOLD:#}");
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
        let result = &self.result;
        outln!(
            "\n{} tasks, {} decisions with 200, {} webhooks due, {} delivered, {} lost, {} delivered twice, {} signatures checked, {} wrong",
            result.tasks,
            result.succeeded,
            result.expected,
            result.delivered,
            result.count(Violation::Lost),
            result.duplicates,
            result.requests,
            result.count(Violation::Signature),
        );
        for Phase { name, calls, .. } in &self.phases {
            for example in &calls.examples {
                outln!("  {name}: {example}");
            }
        }
        result.print_findings();
    }
}
