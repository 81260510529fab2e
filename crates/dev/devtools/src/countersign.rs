//! `cargo xtask countersign`: the command line for operators, on the system that `up` started.

use std::process::{Command, ExitCode};

use anyhow::Context as _;

use rig::{Profile, Stack, Workspace, exit_code};

const PROGRAM: &str = "countersign";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let stack =
        Stack::read(&workspace)?.context("no system runs; start one with `cargo xtask up`")?;
    let processes: Vec<String> = stack
        .processes
        .iter()
        .filter(|process| process.name != "demo-engine")
        .map(|process| format!("{}={}", process.name, process.metrics))
        .collect();
    let built = workspace.build(&[PROGRAM], Profile::Dev)?;
    let program = built.get(PROGRAM).context("cargo did not build it")?;
    let status = Command::new(program)
        .args(arguments)
        .env("COUNTERSIGN_URL", &stack.gateway)
        .env("COUNTERSIGN_PROCESSES", processes.join(","))
        .env("ADMIN_USERNAME", &stack.admin.username)
        .env("ADMIN_PASSWORD", &stack.admin.password)
        .env("DATABASE_URL", &stack.database)
        .env("AMQP_URL", &stack.amqp)
        .status()
        .context("running it")?;
    Ok(exit_code(status))
}
