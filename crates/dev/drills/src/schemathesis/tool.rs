//! The tool: a Python program, installed in `target/tools`.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use local_stack::packages::{self, Need};
use local_stack::process::{output_of, succeeds};
use rig::{client::Person, interrupt, output::say, system::System, workspace::Workspace};

const VERSION: &str = "4.32.5";

/// The installed tool.
pub(crate) struct Tool {
    program: PathBuf,
    folder: PathBuf,
}

/// How much to test.
pub(crate) struct Budget {
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
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
        Ok(tool)
    }

    /// Runs all phases with all checks. Returns whether no check failed.
    pub(crate) fn run(
        &self,
        system: &System,
        actor: &Person,
        budget: &Budget,
    ) -> anyhow::Result<bool> {
        let gateway = &system.gateway;
        let mut command = Command::new(&self.program);
        command
            // The tool creates folders in the working directory.
            .current_dir(system.workspace.local())
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
        command.arg(format!("{gateway}/openapi.json"));
        let child = command.stdin(Stdio::null()).spawn();
        let status = interrupt::wait_for(child.context("running schemathesis")?)?;
        Ok(status.success())
    }
}
