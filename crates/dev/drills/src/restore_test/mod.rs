//! `cargo xtask restore-test`: restores backups of a running system, and checks what is left of the time between the
//! backup and the restore.
//!
//! For each way to restore it takes a backup, changes a password, deactivates a user, deletes one, makes one an
//! administrator, creates one that creates a task, and restores the backup while all processes run. Then it checks
//! that every process refuses every earlier token, that users sign in as in the backup, that revocation works, and that
//! a decision is delivered. At last it restores one into an empty system: see [`open_work`].

mod drill;
mod open_work;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;
use local_stack::{
    Postgres, Roles, Stop, bootstrap, client, database_name, output_of, with_database,
};
use rig::{
    Options, Profile, Source, System, Workspace, instance, interrupt, say, verdict, with_own_system,
};

use self::drill::Drill;

pub(crate) fn run() -> Result<ExitCode> {
    with_own_system("restore-test", test, |()| true)?;
    Ok(verdict("restore-test", true))
}

fn test(workspace: &Workspace) -> Result<()> {
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

/// A way to take and to restore a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    SameDatabase,
    UsersOnly,
    NewDatabase,
    NewCluster,
    PointInTime,
    CopiedDisk,
}

impl Way {
    fn describe(self) -> &'static str {
        match self {
            Self::SameDatabase => "a dump into the same database (pg_restore --clean --if-exists)",
            Self::UsersOnly => "the schema `users` of a dump, after DROP SCHEMA users CASCADE",
            Self::NewDatabase => "a dump into a new database of the same cluster",
            Self::NewCluster => "a dump into a new cluster",
            Self::PointInTime => "a base backup, by recovery to a point in time",
            Self::CopiedDisk => {
                "a copy of the disk, which only the command `revoke-all-tokens` makes safe"
            }
        }
    }

    /// Takes a backup. Returns a dump, or nothing if it is a copy that the server keeps.
    fn back_up(self, system: &System) -> Result<Vec<u8>> {
        if !matches!(self, Self::PointInTime | Self::CopiedDisk) {
            return client::dump(&system.backing.admin_url);
        }
        let postgres = &system.servers()?.postgres;
        while_stopped(postgres, || postgres.copy_files())?;
        Ok(Vec::new())
    }

    fn restore(self, system: &System, dump: &[u8]) -> Result<()> {
        let admin_url = &system.backing.admin_url;
        let postgres = &system.servers()?.postgres;
        let passwords = system.servers()?.description().postgres.passwords;
        match self {
            Self::SameDatabase => client::restore(admin_url, dump, &["--clean", "--if-exists"]),
            Self::UsersOnly => {
                bootstrap::execute(admin_url, "DROP SCHEMA users CASCADE;")?;
                bootstrap::run(admin_url, &passwords)?;
                client::restore(admin_url, dump, &["--schema=users"])
            }
            Self::NewDatabase => {
                rename_database(admin_url)?;
                restore_into_new(admin_url, &passwords, dump)
            }
            Self::NewCluster => {
                while_stopped(postgres, || postgres.discard())?;
                restore_into_new(admin_url, &passwords, dump)
            }
            Self::PointInTime => while_stopped(postgres, || postgres.recover_files()),
            Self::CopiedDisk => {
                while_stopped(postgres, || postgres.restore_files())?;
                revoke_all_tokens(system)
            }
        }
    }
}

fn while_stopped(postgres: &Postgres, act: impl FnOnce() -> Result<()>) -> Result<()> {
    postgres.stop(Stop::Graceful)?;
    act()?;
    postgres.spawn()?;
    postgres.wait_ready()
}

/// Moves the database out of the way.
fn rename_database(admin_url: &str) -> Result<()> {
    let name = database_name(admin_url)?;
    let script = format!(
        "ALTER DATABASE {name} ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';
         ALTER DATABASE {name} RENAME TO {name}_lost;"
    );
    bootstrap::execute(&with_database(admin_url, "postgres")?, &script)
}

fn restore_into_new(admin_url: &str, passwords: &Roles, dump: &[u8]) -> Result<()> {
    bootstrap::run(admin_url, passwords)?;
    client::restore(admin_url, dump, &["--clean", "--if-exists"])
}

/// Runs the command of the user service in its environment.
fn revoke_all_tokens(system: &System) -> Result<()> {
    let service = system.process("user-service")?;
    let program = system.programs.get(service.program);
    let mut command = Command::new(program.context("there is no program")?);
    instance::apply(&mut command, &service.variables);
    output_of(command.arg("revoke-all-tokens")).map(drop)
}
