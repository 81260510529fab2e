//! `cargo xtask test`.

use std::{
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use local_stack::{
    Durability, Options, Parts, Servers, TEST_SERVERS_VARIABLE, bootstrap,
    packages::{self, Need},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{interrupt::Interrupt, launch::say, workspace::Workspace};

/// What goes to the test runner.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Arguments for the test runner, as in `cargo xtask test -- -p gateway a_stranger`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    runner: Vec<String>,
}

/// Stops and removes the test servers, also when something fails in between.
struct Discarded<'workspace>(&'workspace Workspace);

impl Drop for Discarded<'_> {
    fn drop(&mut self) {
        if let Err(error) = Servers::discard(&self.0.test_servers()) {
            errln!("stopping the test servers: {error}");
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let interrupt = Interrupt::watch()?;
    // Two runs at once would take each other's servers away.
    let _alone = workspace.lock("test")?;
    let needs = [
        Need::ClientLibrary,
        Need::Postgres,
        Need::RabbitMq,
        Need::Psql,
        Need::Chromium,
        Need::ChromeDriver,
    ];
    packages::ensure(&needs, &say)?;
    let mut command = runner(&workspace, arguments)?;

    // Left behind by a run that was killed.
    Servers::discard(&workspace.test_servers())?;
    let _discarded = Discarded(&workspace);
    let file = start_servers(&workspace)?;
    interrupt.check()?;

    let status = follow(
        command
            .env(TEST_SERVERS_VARIABLE, &file)
            .spawn()
            .context("running the tests")?,
        &interrupt,
    )?;
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Says where the description of the servers is.
fn start_servers(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let start = Instant::now();
    let options = Options {
        folder: workspace.test_servers(),
        durability: Durability::Discardable,
        parts: Parts::Both,
    };
    let description = Servers::start(&options, &say)?.description();
    // Roles belong to the whole server: once they are there, tests never wait for each other's.
    bootstrap::run(
        &description.postgres.admin_url_of("countersign")?,
        &description.postgres.passwords,
    )?;
    let file = workspace.test_servers().join("description.json");
    description.write(&file)?;
    say(&format!(
        "test servers ready in {:.1} s",
        start.elapsed().as_secs_f64()
    ));
    Ok(file)
}

/// The command that runs the tests. Without arguments the tests are built now, so that no server idles
/// while they compile, or starts for tests that do not.
fn runner(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<Command> {
    if arguments.runner.is_empty() {
        let status = workspace
            .cargo()
            .args(["test", "--workspace", "--no-run", "--quiet"])
            .stdin(Stdio::null())
            .status()
            .context("building the tests")?;
        anyhow::ensure!(status.success(), "the tests do not build");
    }
    let mut command = workspace.cargo();
    if has_nextest(workspace) {
        command.args(["nextest", "run"]);
    } else {
        say("cargo-nextest is not installed, so cargo test runs the tests");
        command.args(["test", "--no-fail-fast"]);
    }
    let chooses =
        |argument: &String| argument.starts_with("-p") || argument.starts_with("--package");
    if !arguments.runner.iter().any(chooses) {
        command.arg("--workspace");
    }
    command.args(&arguments.runner).stdin(Stdio::null());
    Ok(command)
}

fn has_nextest(workspace: &Workspace) -> bool {
    workspace
        .cargo()
        .args(["nextest", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Waits for the runner. Ctrl-C reaches it by itself, for it shares our terminal; `kill` does not.
fn follow(mut child: Child, interrupt: &Interrupt) -> anyhow::Result<ExitStatus> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().context("waiting for the tests")? {
            return Ok(status);
        }
        if interrupt.came() && !told {
            told = true;
            // It may have ended in this moment; then there is nothing to tell.
            let _ = kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM);
        }
        thread::sleep(Duration::from_millis(50));
    }
}
