//! The tool: a Python program, kept under `target/tools`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use local_stack::packages::{self, Need};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    interrupt::Interrupt,
    launch::say,
    schemathesis::actors::{Actor, Actors},
    workspace::Workspace,
};

const VERSION: &str = "4.32.5";
const POLL: Duration = Duration::from_millis(100);

/// Where the tool is.
pub(crate) struct Tool {
    program: PathBuf,
    folder: PathBuf,
}

/// How much is tried.
pub(crate) struct Budget<'run> {
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
    pub(crate) max_examples: Option<u32>,
    pub(crate) operations: &'run [String],
}

impl Tool {
    /// The tool in its pinned version, from PyPI if it is not here yet.
    pub(crate) fn install(workspace: &Workspace) -> anyhow::Result<Self> {
        let place = workspace
            .root()
            .join("target/tools/schemathesis")
            .join(VERSION);
        let tool = Self {
            program: place.join("bin/schemathesis"),
            folder: workspace.root().join("crates/dev/xtask/src/schemathesis"),
        };
        if succeeds(Command::new(&tool.program).arg("--version")) {
            return Ok(tool);
        }
        packages::ensure(&[Need::PythonVenv], &say)?;
        say(&format!("installing schemathesis {VERSION} from PyPI"));
        let made = run_quietly(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&place),
        )
        .and_then(|()| {
            let mut install = Command::new(place.join("bin/python"));
            install.args(["-m", "pip", "install", "--quiet"]);
            run_quietly(install.arg(format!("schemathesis=={VERSION}")))
        });
        made.context(
            "schemathesis could not be installed: python3 with venv, and a way to PyPI, are needed",
        )?;
        Ok(tool)
    }

    /// Runs every phase with every check on; says whether nothing was found.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        gateway: &str,
        actors: &Actors,
        actor: Actor,
        budget: &Budget<'_>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let (username, password) = actors.credentials(actor);
        let mut command = Command::new(&self.program);
        command
            // It leaves folders of its own where it runs.
            .current_dir(workspace.local())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SCHEMATHESIS_HOOKS", self.folder.join("hooks.py"))
            .env("ACTOR_USERNAME", username)
            .env("ACTOR_PASSWORD", password)
            .env("GATEWAY", gateway)
            .env("PROTECTED_USERS", actors.protected.join(","))
            .arg("--config-file")
            .arg(self.folder.join("schemathesis.toml"))
            .args(["run", "--no-color"])
            .args(["--phases", "examples,coverage,fuzzing,stateful"])
            .args(["--generation-database", "none", "--continue-on-failure"])
            .args(["--seed", &budget.seed.to_string()])
            .args(["--max-time", &budget.duration.as_secs().to_string()]);
        if let Some(examples) = budget.max_examples {
            command.args(["--max-examples", &examples.to_string()]);
        }
        for operation in budget.operations {
            command.args(["--include-name", operation]);
        }
        command.arg(format!("{gateway}/openapi.json"));
        follow(&mut command, interrupt)
    }
}

/// Waits for the tool. Ctrl-C reaches it by itself, for it shares our terminal; `kill` does not.
fn follow(command: &mut Command, interrupt: &Interrupt) -> anyhow::Result<bool> {
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .context("running schemathesis")?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().context("waiting for schemathesis")? {
            return Ok(status.success());
        }
        if interrupt.came() && !told {
            told = true;
            // It may have ended in this moment; then there is nothing to tell.
            let _ = kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM);
        }
        thread::sleep(POLL);
    }
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn run_quietly(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let name = Path::new(&program).display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
