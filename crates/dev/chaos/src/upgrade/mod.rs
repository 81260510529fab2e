//! `cargo xtask upgrade-test`: replaces the processes of a running system, one after the other, and no call may fail.
//!
//! It builds the programs of an earlier revision, starts two replicas of each process behind load balancers, and calls
//! the gateway all the time. Then it migrates the database with the new programs, replaces every process by the new
//! version, goes back to the earlier one, and forward again. After that it restarts everything, and rotates both
//! signing keys. At the end every webhook must have arrived.
//!
//! The load balancers do what a Service of Kubernetes does: a new connection goes to the next replica that was ready
//! when it was last asked, and open connections stay where they are. Nothing repeats a call.

mod arguments;
mod balancer;
mod earlier;
mod fleet;
mod keys;
mod load;
mod phases;
mod plan;
mod summary;

use std::process::ExitCode;

use local_stack::random;
use rig::{
    cleanup::{Keep, clean_up},
    interrupt::Interrupt,
    outln,
    output::say,
    paint,
    workspace::Workspace,
};

pub(crate) use self::arguments::Arguments;
use self::summary::Summary;
use crate::watchdog::{self, Watchdog};

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    let interrupt = Interrupt::watch()?;
    let _lock = watchdog::lock(&base, watchdog::UPGRADE_TEST)?;
    let workspace = base.aside(watchdog::UPGRADE_TEST);
    clean_up(&workspace, Keep::Nothing)?;
    let watchdog = Watchdog::start(&base, watchdog::UPGRADE_TEST)?;
    let seed = u64::from(u32::from_be_bytes(random::bytes()?));
    let outcome = phases::run(&base, &workspace, arguments, seed, &interrupt);
    let passed = outcome.as_ref().is_ok_and(Summary::passed);
    say("stopping everything");
    let keep = if passed || interrupt.came() {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(&workspace, keep)?;
    drop(watchdog);
    if let Ok(summary) = &outcome {
        summary.print();
    }
    if passed {
        outln!("\nupgrade-test: ok");
        return Ok(ExitCode::SUCCESS);
    }
    if keep == Keep::Everything {
        say("the logs of the processes are in .local/upgrade-test/system/log");
    }
    outcome.map(|_| {
        outln!("\n{}", paint::red("upgrade-test: failed"));
        ExitCode::FAILURE
    })
}
