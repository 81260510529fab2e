//! `cargo xtask test`: runs the tests on private servers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::Context;
use local_stack::{
    Layout, Need, Servers, TEST_SERVERS_VARIABLE, bootstrap, packages, private, succeeds,
};
use rig::instance::{self, MARKER};
use rig::{Workspace, exit_code, interrupt, say, with_own_system};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let test = |workspace: &_| test(workspace, arguments);
    with_own_system("test", test, ExitStatus::success).map(exit_code)
}

fn test(workspace: &Workspace, arguments: &[String]) -> anyhow::Result<ExitStatus> {
    let needs = [
        Need::CLIENT_LIBRARY,
        Need::POSTGRES,
        Need::RABBITMQ,
        Need::PSQL,
        Need::CHROMIUM,
        Need::CHROME_DRIVER,
    ];
    packages::ensure(&needs, &say)?;
    let mut command = runner(workspace, arguments)?;
    let file = start_servers(&workspace.servers())?;
    interrupt::check()?;
    // By the mark, what a killed run leaves of its tests is found and ended.
    command.env(MARKER, instance::mark(workspace)?);
    let child = command.env(TEST_SERVERS_VARIABLE, &file).spawn();
    interrupt::wait_for(child.context("running the tests")?)
}

/// Starts the servers. Returns the path of their description.
fn start_servers(folder: &Path) -> anyhow::Result<PathBuf> {
    let start = Instant::now();
    let servers = Servers::start(folder, Layout::SINGLE, &say)?;
    let description = servers.description();
    // Roles belong to the whole server. Creating them here saves concurrent tests from conflicts.
    bootstrap::run(
        &description.postgres.admin_url_of("countersign")?,
        &description.postgres.passwords,
    )?;
    let file = folder.join("description.json");
    private::write_json(&file, &description)?;
    say(&format!(
        "test servers ready in {:.1} s",
        start.elapsed().as_secs_f64()
    ));
    Ok(file)
}

/// Returns the command that runs the tests. Without arguments it builds them first, so that no servers are
/// started for tests that do not compile.
fn runner(workspace: &Workspace, arguments: &[String]) -> anyhow::Result<Command> {
    if arguments.is_empty() {
        let status = workspace
            .cargo()
            .args(["test", "--workspace", "--no-run", "--quiet"])
            .stdin(Stdio::null())
            .status()
            .context("building the tests")?;
        anyhow::ensure!(status.success(), "the tests do not build");
    }
    let mut command = workspace.cargo();
    if succeeds(workspace.cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run"]);
    } else {
        say("cargo-nextest is not installed, so cargo test runs the tests");
        command.args(["test", "--no-fail-fast"]);
    }
    let selects_package =
        |argument: &String| argument.starts_with("-p") || argument.starts_with("--package");
    if !arguments.iter().any(selects_package) {
        command.arg("--workspace");
    }
    command.args(arguments).stdin(Stdio::null());
    Ok(command)
}
