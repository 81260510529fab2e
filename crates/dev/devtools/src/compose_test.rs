//! `cargo xtask compose-test`: runs the demo on the images, and checks that they keep their data.

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, ensure};
use local_stack::{ports, succeeds};

use super::demo::{self, Target};
use rig::{Admin, Client, Workspace, interrupt, say, verdict};

const READY_LIMIT: Duration = Duration::from_secs(300);
/// Only this test uses volumes and containers of this name.
const PROJECT: &str = "countersign-test";

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    interrupt::watch()?;
    let composed = Composed::new(&workspace)?;
    composed.make_secrets()?;
    say("building the images");
    composed.compose(&["build"])?;
    interrupt::check()?;
    composed.remove()?;
    let tested = test(&composed);
    if tested.is_err() {
        composed.show_logs();
    }
    say("stopping the containers and removing the data");
    composed.remove()?;
    tested?;
    Ok(verdict("compose-test", true))
}

fn test(composed: &Composed<'_>) -> anyhow::Result<()> {
    composed.up()?;
    demo::tell(&composed.target()?)?;

    say("checking that a user still exists after a restart");
    let client = Client::printing(&composed.gateway());
    let user = client.sign_up_new("stays")?;
    composed.compose(&["down"])?;
    composed.up()?;
    client.sign_in(&user.email, &user.password).map(drop)
}

struct Composed<'workspace> {
    workspace: &'workspace Workspace,
    /// `docker compose`, or the older `docker-compose`.
    program: Vec<&'static str>,
    gateway_port: u16,
    engine_port: u16,
}

impl<'workspace> Composed<'workspace> {
    fn new(workspace: &'workspace Workspace) -> anyhow::Result<Self> {
        let program = [vec!["docker", "compose"], vec!["docker-compose"]]
            .into_iter()
            .find(|program| succeeds(command(program).arg("version")))
            .context("neither `docker compose` nor `docker-compose` is installed")?;
        ensure!(
            succeeds(Command::new("docker").arg("info")),
            "`docker info` fails: the Docker engine is unavailable"
        );
        let [gateway_port, engine_port] = ports::free()?;
        Ok(Self {
            workspace,
            program,
            gateway_port,
            engine_port,
        })
    }

    fn gateway(&self) -> String {
        format!("http://127.0.0.1:{}", self.gateway_port)
    }

    fn target(&self) -> anyhow::Result<Target> {
        let path = self.workspace.root.join("deploy/secrets/admin_password");
        let password =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(Target {
            gateway: self.gateway(),
            engine: format!("http://127.0.0.1:{}", self.engine_port),
            engine_inside: "http://demo-engine:8090".to_owned(),
            admin: Admin {
                username: env::var("ADMIN_USERNAME")
                    .unwrap_or_else(|_| "admin@countersign.local".to_owned()),
                password: password.trim().to_owned(),
            },
        })
    }

    fn make_secrets(&self) -> anyhow::Result<()> {
        let status = Command::new("sh")
            .arg("deploy/make-secrets")
            .current_dir(&self.workspace.root)
            .status()
            .context("running deploy/make-secrets")?;
        ensure!(status.success(), "deploy/make-secrets failed");
        Ok(())
    }

    fn up(&self) -> anyhow::Result<()> {
        say("starting the containers");
        self.compose(&["up", "-d"])?;
        let gateway = Client::of_process(&self.gateway());
        let engine = Client::of_process(&format!("http://127.0.0.1:{}", self.engine_port));
        let are_ready = || (gateway.is_ready() && engine.is_ready()).then_some(());
        let ready = interrupt::wait_until(READY_LIMIT, are_ready)?;
        ready.with_context(|| {
            let (limit, readiness) = (READY_LIMIT.as_secs(), gateway.readiness());
            format!("not ready within {limit} s; the gateway reports {readiness}")
        })
    }

    fn remove(&self) -> anyhow::Result<()> {
        self.compose(&["down", "--volumes", "--remove-orphans"])
    }

    fn show_logs(&self) {
        // The test has already failed, so a failure here is ignored.
        let _ = self
            .compose(&["ps"])
            .and_then(|()| self.compose(&["logs", "--tail", "40"]));
    }

    fn compose(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let program = self.program.join(" ");
        let status = command(&self.program)
            .args(["--env-file", "deploy/demo.env", "--project-name", PROJECT])
            .args(["--file", "docker-compose.yml"])
            .args(["--file", "deploy/compose.test.yml"])
            .args(arguments)
            .env("GATEWAY_PORT", self.gateway_port.to_string())
            .env("DEMO_ENGINE_PORT", self.engine_port.to_string())
            .current_dir(&self.workspace.root)
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("running {program}"))?;
        ensure!(status.success(), "{program} {} failed", arguments.join(" "));
        Ok(())
    }
}

/// A program with its first arguments.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.iter().skip(1));
    command
}
