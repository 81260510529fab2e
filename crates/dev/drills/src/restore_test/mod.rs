//! `cargo xtask restore-test`: restores backups of a running system, and checks what is left of the time between the
//! backup and the restore.
//!
//! For each way to restore it takes a backup, changes a password, deactivates a user, deletes one, makes one an
//! administrator, creates one that creates a task, and restores the backup while all processes run. Then it checks
//! that every process refuses every earlier token, that users sign in as in the backup, that revocation works, and that
//! a decision is delivered.
//!
//! At last it restores a backup of `deploy/backup` into an empty system, a new cluster and an empty RabbitMQ, and checks
//! that all work completes that was pending at the time of the backup. It starts its own system and removes it at the end.

mod backup_script;
mod drill;
mod empty_system;
mod open_work;
mod ways;

use std::{process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use clap::Args;

use self::{drill::Drill, ways::Way};
use rig::{
    backing::GivenServers,
    cleanup::with_own_system,
    environment::Variables,
    interrupt::Interrupt,
    launch::{self, LaunchOptions},
    outln,
    output::say,
    paint,
    processes::ensure_all_alive,
    workspace::Workspace,
};

/// What to test.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Build and run with optimisations.
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    ensure!(
        GivenServers::from_environment().uses_own_postgres(),
        "this command replaces the whole database server: unset DATABASE_URL, so that it starts its own"
    );
    let interrupt = Interrupt::watch()?;
    let _lock = base.lock("restore-test")?;
    let workspace = base.aside("restore-test");
    let test = || test(&workspace, arguments, &interrupt);
    match with_own_system(&workspace, &interrupt, test, |()| true) {
        Ok(()) => {
            outln!("\nrestore-test: ok");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            say("the logs of the processes are in .local/restore-test/log");
            outln!("\n{} {error:#}", paint::red("restore-test: failed:"));
            Ok(ExitCode::FAILURE)
        }
    }
}

fn test(workspace: &Workspace, arguments: &Arguments, interrupt: &Interrupt) -> anyhow::Result<()> {
    let [port] = local_stack::ports::free()?;
    let options = LaunchOptions {
        optimised: arguments.release,
        port: Some(port),
        settings: Variables::from([
            ("RATE_LIMIT", "off".to_owned()),
            ("BCRYPT_COST", "4".to_owned()),
        ]),
        ..LaunchOptions::default()
    };
    let mut running = launch::start(workspace, &options, interrupt)?;
    for (number, way) in Way::ALL.into_iter().enumerate() {
        interrupt.check()?;
        say(&format!("restoring {}", way.describe()));
        let drill = Drill::start(&running.stack, number)?;
        let backup = way.back_up(workspace, &running.stack)?;
        let drill = drill.lose_time()?;
        way.restore(workspace, &running, &backup)?;
        let restored = Instant::now();
        drill
            .check(restored)
            .with_context(|| format!("after restoring {}", way.describe()))?;
        ensure_all_alive(&running.processes)?;
    }
    interrupt.check()?;
    empty_system::test(workspace, &mut running, interrupt)
}
