//! `cargo xtask alerts-test`: starts a system of its own and Prometheus with the project's alerts, breaks one part after
//! the other, and checks that the alerts fire.
//!
//! The alerts are those of `deploy/observability/alerts.yml` with two changes: each `for` is two seconds, and the
//! thresholds of memory and of connections to Postgres are ones that a small system reaches.

mod faults;
mod prometheus;
mod second_gateway;
mod system;

use std::{path::PathBuf, process::ExitCode, thread, time::Duration};

use clap::Args;
use local_stack::process::wait_until;

use self::{
    faults::{STEPS, Step},
    prometheus::{Drill, Prometheus},
    system::System,
};
use rig::{
    interrupt, outln,
    output::{say, verdict},
    own::with_own_system,
    paint,
    programs::Source,
    sync::join,
    workspace::Workspace,
};

/// What to test.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Run the programs in this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// What became of an alert.
struct Outcome {
    alert: String,
    /// Its value and the time until it fired.
    fired: Option<(String, Duration)>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let source = Source::of(arguments.programs.as_deref());
    let test = |workspace: &_| test(workspace, source);
    let passed = |outcomes: &Vec<Outcome>| outcomes.iter().all(|one| one.fired.is_some());
    let outcomes = with_own_system(&Workspace::find()?, "alerts-test", test, passed)?;
    Ok(verdict("alerts-test", passed(&outcomes)))
}

impl Outcome {
    /// Prints what became of an alert.
    fn report(alert: &str, fired: Option<(String, Duration)>) -> Self {
        match &fired {
            Some((value, after)) => {
                outln!("  {alert:28} {value:>8}  after {:3} s", after.as_secs());
            }
            None => outln!("  {}", paint::red(&format!("{alert:28} did not fire"))),
        }
        Self {
            alert: alert.to_owned(),
            fired,
        }
    }
}

/// Provokes the alerts of a step until all of them fire or its time is over.
fn run_step(step: &Step, system: &System, prometheus: &Prometheus) -> anyhow::Result<Vec<Outcome>> {
    let drill = Drill::begin(system, prometheus, step.limit);
    let outcomes = thread::scope(|scope| {
        let provoking = scope.spawn(|| {
            let provoked = (step.provoke)(&drill);
            if provoked.is_err() {
                drill.finish();
            }
            provoked
        });
        let outcomes = await_alerts(step, &drill);
        drill.finish();
        join(provoking)??;
        outcomes
    })?;
    (step.end)(system)?;
    Ok(outcomes)
}

fn await_alerts(step: &Step, drill: &Drill<'_>) -> anyhow::Result<Vec<Outcome>> {
    let prometheus = drill.prometheus;
    let mut outcomes = Vec::new();
    for alert in step.alerts {
        let fired = wait_until(drill.left(), || {
            if interrupt::came() || drill.is_over() {
                return Some(None);
            }
            prometheus.value_if_firing(alert).map(Some)
        });
        interrupt::check()?;
        let fired = fired.flatten().map(|value| (value, drill.elapsed()));
        if fired.is_none() {
            prometheus.explain(alert);
        }
        outcomes.push(Outcome::report(alert, fired));
    }
    Ok(outcomes)
}

fn test(workspace: &Workspace, source: Source<'_>) -> anyhow::Result<Vec<Outcome>> {
    let system = System::start(workspace, source, second_gateway::prepare)?;
    let prometheus = Prometheus::start(workspace, &system)?;
    let mut outcomes = Vec::new();
    for step in &STEPS {
        say(step.how);
        outcomes.extend(run_step(step, &system, &prometheus)?);
    }
    let covered = |name: &String| outcomes.iter().any(|one| &one.alert == name);
    let missing = prometheus.alerts.iter().filter(|name| !covered(name));
    let missing = missing.map(|alert| Outcome::report(alert, None));
    let missing: Vec<_> = missing.collect();
    outcomes.extend(missing);
    Ok(outcomes)
}
