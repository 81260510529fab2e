//! The phases of the test.

use std::time::{Duration, Instant};

use anyhow::Context;
use rig::{
    interrupt, outln,
    output::say,
    paint, programs,
    sync::lock,
    workspace::{Profile, Workspace},
};

use super::{
    Arguments, Part,
    earlier::{self, Earlier},
    fleet::{Fleet, Version, Versions},
    load::Load,
};
use crate::{
    checker::{self, CheckResult, Times},
    databases::Failovers,
    final_state::StateReader,
    history::Violation,
    one_shot_client::Statistics,
    settings,
    task_workload::LoadProfile,
    test_user::TestUser,
};

/// How long the system serves in the earlier version before anything changes.
const BEFORE: Duration = Duration::from_secs(5);

/// No run is longer.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the test. The caller stops what it starts.
pub(super) fn run(
    base: &Workspace,
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
) -> anyhow::Result<Summary> {
    let upgrades = arguments.includes(Part::Upgrade);
    let build = || earlier::build(base, arguments.from.as_deref());
    let earlier = upgrades.then(build).transpose()?;
    let earlier_drains = earlier.as_ref().is_none_or(|earlier| earlier.drains);
    let with_due = earlier.as_ref().is_none_or(|earlier| earlier.knows_due);
    let copied = |built: Earlier| programs::copy(&workspace.aside("earlier"), built.programs);
    let earlier = earlier.map(copied).transpose()?;
    interrupt::check()?;
    let new = programs::copy(workspace, programs::build(base, Profile::Dev)?)?;
    interrupt::check()?;
    let versions = Versions {
        earlier,
        earlier_drains,
        new,
    };
    let fleet = Fleet::start(workspace, versions)?;
    // Postgres has no standby here.
    let failovers = Failovers::default();
    let profile = LoadProfile {
        seed,
        rate: arguments.rate,
        with_due,
        first: 0,
        end: Instant::now() + FOREVER,
    };
    let mut test = Test {
        load: Load::new(&fleet.system.gateway, &failovers, profile)?,
        fleet,
        phases: Vec::new(),
    };
    if upgrades {
        test.upgrade(earlier_drains)?;
    }
    if arguments.includes(Part::Restart) {
        test.phase("restart", |fleet| fleet.replace_all(Version::New))?;
    }
    if arguments.includes(Part::RotateKeys) {
        test.rotate_token_key()?;
        test.rotate_webhook_key()?;
    }
    test.summarize()
}

struct Test<'run> {
    fleet: Fleet,
    load: Load<'run>,
    phases: Vec<Phase>,
}

impl Test<'_> {
    /// Does the work under load, and remembers the calls.
    fn phase(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Fleet) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        say(name);
        let mut took = Duration::ZERO;
        let calls = self.load.during(|| {
            let start = Instant::now();
            let outcome = work(&mut self.fleet);
            took = start.elapsed();
            outcome
        });
        let calls = calls.with_context(|| name)?;
        say(&format!(
            "  {:.1} s, {} requests, {} failed, {} without a response",
            took.as_secs_f64(),
            calls.calls,
            calls.failed,
            calls.unknown
        ));
        self.phases.push(Phase { name, took, calls });
        Ok(())
    }

    fn upgrade(&mut self, earlier_drains: bool) -> anyhow::Result<()> {
        self.phase("earlier version", |_| {
            std::thread::sleep(BEFORE);
            Ok(())
        })?;
        self.phase("migrate", |fleet| fleet.migrate())?;
        self.upgrade_all("upgrade", earlier_drains)?;
        self.phase("roll back", |fleet| fleet.replace_all(Version::Earlier))?;
        self.upgrade_all("upgrade again", earlier_drains)
    }

    fn upgrade_all(&mut self, name: &'static str, earlier_drains: bool) -> anyhow::Result<()> {
        self.load.set_tolerant(!earlier_drains);
        self.phase(name, |fleet| fleet.replace_all(Version::New))?;
        self.load.set_tolerant(false);
        Ok(())
    }

    /// As in `deploy/KEY-ROTATION.md` for several replicas.
    fn rotate_token_key(&mut self) -> anyhow::Result<()> {
        self.phase("token key: prepare", |fleet| {
            fleet.keys.rotate("token", "prepare")?;
            fleet.replace("user-service", Version::New)
        })?;
        self.phase("token key: switch", |fleet| {
            fleet.keys.rotate("token", "switch")?;
            fleet.replace("user-service", Version::New)?;
            fleet.replace("deletion-worker", Version::New)
        })?;
        // The users of this phase sign up after the switch, as if all earlier tokens had expired.
        self.phase("token key: drop", |fleet| {
            fleet.keys.rotate("token", "drop")?;
            fleet.replace("user-service", Version::New)
        })
    }

    fn rotate_webhook_key(&mut self) -> anyhow::Result<()> {
        let receivers = self.load.keys.clone();
        self.phase("webhook key: prepare", |fleet| {
            fleet.keys.rotate("webhook", "prepare")?;
            fleet.replace("people-task-service", Version::New)?;
            receivers.refresh(&fleet.system.gateway)?;
            fleet.replace("webhook-worker", Version::New)
        })?;
        self.phase("webhook key: switch", |fleet| {
            fleet.keys.rotate("webhook", "switch")?;
            fleet.replace("people-task-service", Version::New)?;
            fleet.replace("webhook-worker", Version::New)
        })?;
        self.phase("webhook key: drop", |fleet| {
            fleet.keys.rotate("webhook", "drop")?;
            fleet.replace("webhook-worker", Version::New)?;
            fleet.replace("people-task-service", Version::New)
        })
    }

    /// Waits for the remaining webhooks, and compares what callers were told with what receivers got.
    fn summarize(self) -> anyhow::Result<Summary> {
        say("waiting for the remaining webhooks");
        let gateway = &self.fleet.system.gateway;
        let history = &self.load.history;
        let tasks = lock(&history.tasks).clone();
        let healed = Instant::now();
        let admin = &self.fleet.system.admin;
        let reader = StateReader {
            gateway,
            // The administrator may read every task, also those of users whose tokens are no longer valid.
            user: &TestUser::sign_in(gateway, &admin.username, &admin.password)?,
            history,
        };
        let states = reader.wait_settled(&tasks, healed + settings::RECOVERY_LIMIT)?;
        let times = Times {
            calm_until: healed,
            healed,
        };
        Ok(Summary {
            tasks: tasks.len(),
            result: checker::check(&tasks, &states, &lock(&history.arrivals), times),
            panics: self.fleet.system.panics()?,
            phases: self.phases,
        })
    }
}

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
        let examples = self.phases.iter().flat_map(|Phase { name, calls, .. }| {
            let examples = calls.examples.iter();
            examples.map(move |example| format!("{name}: {example}"))
        });
        let findings = self.result.findings.iter();
        let findings = findings.map(|finding| format!("task {}: {}", finding.task, finding.what));
        let all = examples.chain(findings).chain(self.panics.iter().cloned());
        for problem in all.take(MAX_LISTED) {
            outln!("  {problem}");
        }
    }
}
