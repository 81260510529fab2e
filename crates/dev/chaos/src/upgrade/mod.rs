//! `cargo xtask upgrade-test`: replaces the processes of a running system, one after the other, and no call may fail.
//!
//! It builds the programs of an earlier revision, starts two replicas of each process behind load balancers, and calls
//! the gateway all the time. Then it migrates the database with the new programs, replaces every process by the new
//! version, goes back to the earlier one, and forward again. After that it restarts everything, and rotates both
//! signing keys. At the end every webhook must have arrived.
//!
//! The load balancers do what a Service of Kubernetes does: a new connection goes to the next replica that was ready
//! when it was last asked, and open connections stay where they are. Nothing repeats a call.

mod balancer;
mod earlier;
mod fleet;
mod load;
mod phases;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use local_stack::random;
use rig::{output::verdict, own::with_own_system, workspace::Workspace};

use self::phases::Summary;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Upgrade from the earlier version, go back, and upgrade again.
    Upgrade,
    /// Restart every process.
    Restart,
    /// Rotate both signing keys.
    RotateKeys,
}

/// What to test.
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
    let base = Workspace::find()?;
    let seed = random::seed()?;
    let test = |workspace: &_| phases::run(&base, workspace, arguments, seed);
    let summary = with_own_system(&base, "upgrade-test/system", test, Summary::passed)?;
    summary.print();
    Ok(verdict("upgrade-test", summary.passed()))
}
