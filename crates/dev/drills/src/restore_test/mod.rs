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

mod drill;
mod open_work;
mod ways;

use std::{process::ExitCode, time::Instant};

use anyhow::Context;
use clap::ValueEnum as _;

use self::{drill::Drill, ways::Way};
use rig::interrupt;
use rig::output::{say, verdict};
use rig::own::with_own_system;
use rig::programs::Source;
use rig::system::{Options, System};
use rig::workspace::{Profile, Workspace};

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    with_own_system("restore-test", test, |()| true)?;
    Ok(verdict("restore-test", true))
}

fn test(workspace: &Workspace) -> anyhow::Result<()> {
    let options = Options::own(Source::Build(Profile::Dev));
    let mut system = System::plan(workspace, &options)?;
    system.set_all(&[("RATE_LIMIT", "off"), ("BCRYPT_COST", "4")]);
    system.start()?;
    for (number, way) in Way::value_variants().iter().enumerate() {
        interrupt::check()?;
        say(&format!("restoring {}", way.describe()));
        let drill = Drill::start(&system, number)?;
        let backup = way.back_up(&system)?;
        let drill = drill.lose_time()?;
        way.restore(&system, &backup)?;
        let restored = Instant::now();
        drill
            .check(restored)
            .with_context(|| format!("after restoring {}", way.describe()))?;
        system.ensure_all_alive()?;
    }
    interrupt::check()?;
    open_work::test_empty_system(&system)
}
