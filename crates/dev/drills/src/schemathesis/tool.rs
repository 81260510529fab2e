//! The tool: a Python program, installed in `target/tools`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use local_stack::packages::{self, Need};
use local_stack::process::{output_of, succeeds};
use rig::{client::Person, interrupt, output::say, system::System, workspace::Workspace};

const VERSION: &str = "4.32.5";

/// Installs the pinned version from PyPI if it is missing. Returns the program.
pub(crate) fn install(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let place = workspace.root().join("target/tools/schemathesis");
    let place = place.join(VERSION);
    let program = place.join("bin/schemathesis");
    if succeeds(Command::new(&program).arg("--version")) {
        return Ok(program);
    }
    packages::ensure(&[Need::PythonVenv], &say)?;
    say(&format!("installing schemathesis {VERSION} from PyPI"));
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&place);
    let mut install = Command::new(place.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet"]);
    install.arg(format!("schemathesis=={VERSION}"));
    for command in [&mut create, &mut install] {
        output_of(command).context(
            "schemathesis cannot be installed: python3 with venv and access to PyPI are required",
        )?;
    }
    Ok(program)
}

/// Runs all phases with all checks. No request may change or delete a user whose identifier or address is in `protected`.
/// Returns whether no check failed.
pub(crate) fn run(
    program: &Path,
    system: &System,
    actor: &Person,
    protected: &str,
    seed: u64,
    duration: Duration,
) -> anyhow::Result<bool> {
    let (gateway, root) = (&system.gateway, system.workspace.root());
    let folder = root.join("crates/dev/drills/src/schemathesis");
    let mut command = Command::new(program);
    command
        // The tool creates folders in the working directory.
        .current_dir(system.workspace.local())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", folder.join("hooks.py"))
        .env("ACTOR_USERNAME", &actor.email)
        .env("ACTOR_PASSWORD", &actor.password)
        .env("GATEWAY", gateway)
        .env("PROTECTED_USERS", protected)
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", "--no-color"])
        .args(["--phases", "examples,coverage,fuzzing,stateful"])
        .args(["--generation-database", "none", "--continue-on-failure"])
        .args(["--seed", &seed.to_string()])
        .args(["--max-time", &duration.as_secs().to_string()]);
    command.arg(format!("{gateway}/openapi.json"));
    let child = command.stdin(Stdio::null()).spawn();
    let status = interrupt::wait_for(child.context("running schemathesis")?)?;
    Ok(status.success())
}
