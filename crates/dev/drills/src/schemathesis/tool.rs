//! The tool: a Python program, installed in `target/tools`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use local_stack::packages::{self, Need};
use local_stack::process::succeeds;

use rig::{client::Person, interrupt::Interrupt, output::say, workspace::Workspace};

const VERSION: &str = "4.32.5";

/// The installed tool.
pub(crate) struct Tool {
    program: PathBuf,
    folder: PathBuf,
}

/// How much to test.
pub(crate) struct Budget<'run> {
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
    pub(crate) max_examples: Option<u32>,
    pub(crate) operations: &'run [String],
    /// Identifiers and addresses of the users, whom no request may change or delete.
    pub(crate) protected: [String; 2],
}

impl Tool {
    /// Installs the pinned version from PyPI if it is missing.
    pub(crate) fn install(workspace: &Workspace) -> anyhow::Result<Self> {
        let place = workspace
            .root()
            .join("target/tools/schemathesis")
            .join(VERSION);
        let tool = Self {
            program: place.join("bin/schemathesis"),
            folder: workspace.root().join("crates/dev/drills/src/schemathesis"),
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
            "schemathesis cannot be installed: python3 with venv and access to PyPI are required",
        )?;
        Ok(tool)
    }

    /// Runs all phases with all checks. Returns whether no check failed.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        gateway: &str,
        actor: &Person,
        budget: &Budget<'_>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let mut command = Command::new(&self.program);
        command
            // The tool creates folders in the working directory.
            .current_dir(workspace.local())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SCHEMATHESIS_HOOKS", self.folder.join("hooks.py"))
            .env("ACTOR_USERNAME", &actor.email)
            .env("ACTOR_PASSWORD", &actor.password)
            .env("GATEWAY", gateway)
            .env("PROTECTED_USERS", budget.protected.join(","))
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
        let child = command.stdin(Stdio::null()).spawn();
        let status = interrupt.wait_for(child.context("running schemathesis")?)?;
        Ok(status.success())
    }
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
