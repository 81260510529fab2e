//! `cargo xtask alerts-test`: starts a system of its own and Prometheus with the project's alerts, breaks one part after
//! the other, and checks that the alerts fire.
//!
//! The alerts are those of `deploy/observability/alerts.yml` with two changes: each `for` is two seconds, and the
//! thresholds of memory and of connections to Postgres are ones that a small system reaches.

mod faults;
mod prometheus;
mod system;

use std::{path::PathBuf, process::ExitCode, thread, time::Duration};

use anyhow::Result;
use clap::Args;

use self::faults::{STEPS, Step};
use self::prometheus::{Drill, Prometheus, RULES, names};
use self::system::System;
use rig::paint::RED;
use rig::{Source, Workspace, interrupt, join, outln, say, verdict, with_own_system};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Run the programs in this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let source = Source::of(arguments.programs.as_deref());
    let test = |workspace: &_| test(workspace, source);
    let passed = with_own_system("alerts-test", test, |passed| *passed)?;
    Ok(verdict("alerts-test", passed))
}

/// Prints the value of an alert and the time until it fired. Returns whether it fired.
fn report(alert: &str, fired: Option<&(String, Duration)>) -> bool {
    match fired {
        Some((value, after)) => outln!("  {alert:28} {value:>8}  after {:3} s", after.as_secs()),
        None => outln!("  {RED}{alert:28} did not fire{RED:#}"),
    }
    fired.is_some()
}

/// Provokes the alerts of a step until all of them fire or its time is over. Returns whether they fired.
fn run_step(
    (how, alerts, provoke): Step,
    system: &System,
    prometheus: &Prometheus,
) -> Result<bool> {
    say(how);
    let drill = Drill::begin(system, prometheus);
    thread::scope(|scope| {
        let provoking = scope.spawn(|| {
            let provoked = provoke(&drill);
            if provoked.is_err() {
                drill.finish();
            }
            provoked
        });
        let fired = await_alerts(alerts, &drill);
        drill.finish();
        join(provoking)??;
        fired
    })
}

fn await_alerts(alerts: &[&str], drill: &Drill<'_>) -> Result<bool> {
    let prometheus = drill.prometheus;
    let mut all_fired = true;
    for alert in alerts {
        let fired = interrupt::wait_until(drill.left(), || {
            if drill.is_over() {
                return Some(None);
            }
            prometheus.value_if_firing(alert).map(Some)
        })?;
        let fired = fired.flatten().map(|value| (value, drill.elapsed()));
        if fired.is_none() {
            prometheus.explain(alert);
        }
        all_fired &= report(alert, fired.as_ref());
    }
    Ok(all_fired)
}

fn test(workspace: &Workspace, source: Source<'_>) -> Result<bool> {
    let system = System::start(workspace, source)?;
    let prometheus = Prometheus::start(workspace, &system)?;
    let mut passed = true;
    for step in STEPS {
        passed &= run_step(step, &system, &prometheus)?;
    }
    let has_step = |alert: &str| STEPS.iter().any(|(_, alerts, _)| alerts.contains(&alert));
    for alert in names(RULES).iter().filter(|alert| !has_step(alert)) {
        passed &= report(alert, None);
    }
    Ok(passed)
}
