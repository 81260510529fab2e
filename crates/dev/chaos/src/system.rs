//! The system under test: processes of its own, on servers of its own, connected through links that can
//! be cut.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use local_stack::{
    Durability, Options, Parts, Servers, bootstrap,
    packages::{self, Need},
    ports,
    process::{Identity, wait_until},
};
use nix::sys::signal::Signal;

use xtask::{
    http,
    interrupt::Interrupt,
    launch::{self, say},
    plan::{Backing, Plan, Planned, Replicas},
    secrets::Secrets,
    stack_file::Admin,
    workspace::Workspace,
};

use crate::{door::locked, link::Link, settings};

const DATABASE: &str = "countersign";
const READY_LIMIT: Duration = Duration::from_secs(90);
/// A little more than the processes' own grace.
const STOP_LIMIT: Duration = Duration::from_secs(28);

/// What goes through links: the program, its variable, and who is at the other end.
const LINKED: [(&str, &str, &str); 15] = [
    ("deletion-worker", "AMQP_URL", "RabbitMQ"),
    ("deletion-worker", "DATABASE_URL", "Postgres"),
    ("deletion-worker", "FLOW_ENGINE_URL", "demo-engine"),
    (
        "deletion-worker",
        "PEOPLE_TASK_SERVICE_URL",
        "people-task-service",
    ),
    ("gateway", "PEOPLE_TASK_SERVICE_URL", "people-task-service"),
    ("gateway", "USER_SERVICE_URL", "user-service"),
    ("notification-worker", "AMQP_URL", "RabbitMQ"),
    ("notification-worker", "DATABASE_URL", "Postgres"),
    ("people-task-service", "AMQP_URL", "RabbitMQ"),
    ("people-task-service", "DATABASE_URL", "Postgres"),
    ("people-task-service", "USER_SERVICE_URL", "user-service"),
    ("user-service", "AMQP_URL", "RabbitMQ"),
    ("user-service", "DATABASE_URL", "Postgres"),
    ("webhook-worker", "AMQP_URL", "RabbitMQ"),
    ("webhook-worker", "DATABASE_URL", "Postgres"),
];

/// Everything that runs.
pub(crate) struct System {
    workspace: Workspace,
    programs: BTreeMap<String, PathBuf>,
    pub(crate) servers: Servers,
    pub(crate) processes: Vec<Process>,
    pub(crate) links: Vec<Link>,
    pub(crate) gateways: Vec<String>,
    pub(crate) admin: Admin,
    ended_by_themselves: AtomicUsize,
}

/// One process, whichever incarnation of it runs.
pub(crate) struct Process {
    pub(crate) planned: Planned,
    /// Held by the fault that happens to it: a process that takes long to stop may meet the next one.
    pub(crate) turn: Mutex<()>,
    state: Mutex<State>,
}

struct State {
    identity: Identity,
    /// Whether it is meant to run; one that ended by itself is started again.
    wanted: bool,
}

/// What a run has of its own.
pub(crate) struct Wishes<'run> {
    /// The folder with the programs; they are built when there is none.
    pub(crate) programs: Option<&'run Path>,
    pub(crate) release: bool,
    pub(crate) replicas: Replicas,
    pub(crate) duration: Duration,
    /// Where messages to users go.
    pub(crate) mailbox: String,
}

impl System {
    /// Starts everything and waits until it is ready. What was started is not ended when this fails.
    pub(crate) fn start(
        workspace: &Workspace,
        wishes: &Wishes<'_>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let needs = [
            Need::ClientLibrary,
            Need::Postgres,
            Need::RabbitMq,
            Need::Psql,
        ];
        packages::ensure(&needs, &say)?;
        let programs = kept(workspace, programs(workspace, wishes)?)?;
        interrupt.check()?;
        let secrets = Secrets::prepare(workspace)?;
        let (servers, backing) = back(workspace)?;
        interrupt.check()?;
        let [gateway_port] = ports::free()?;
        let mut plan = Plan::new(
            workspace,
            &wishes.replicas,
            gateway_port,
            &secrets,
            &backing,
        )?;
        for process in &mut plan.processes {
            settings::set(process, wishes.duration, &wishes.mailbox);
        }
        let links = link(&mut plan.processes)?;
        launch::prepare_logs(workspace, &plan, false)?;
        let running = launch::start_processes(workspace, &plan, &programs, interrupt)?;
        let gateways = plan.processes.iter();
        let gateways = gateways.filter(|process| process.program == "gateway");
        Ok(Self {
            gateways: gateways.filter_map(|one| one.url.clone()).collect(),
            workspace: workspace.clone(),
            programs,
            servers,
            admin: admin(&plan),
            processes: running.into_iter().map(Process::new).collect(),
            links,
            ended_by_themselves: AtomicUsize::new(0),
        })
    }

    /// Kills a process; it stays away until [`Self::bring_up`].
    pub(crate) fn take_down(&self, process: &Process) -> anyhow::Result<()> {
        let mut state = locked(&process.state);
        state.wanted = false;
        Ok(state.identity.kill()?)
    }

    /// Asks a process to stop, and kills it when it takes too long; says whether it stopped in time.
    pub(crate) fn ask_to_stop(
        &self,
        process: &Process,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let identity = {
            let mut state = locked(&process.state);
            state.wanted = false;
            state.identity
        };
        identity.signal(Signal::SIGTERM);
        let end = wait_until(STOP_LIMIT, || {
            (interrupt.came() || !identity.is_alive()).then_some(())
        });
        identity.kill()?;
        Ok(end.is_some())
    }

    /// Starts a process again, without waiting for it to be ready.
    pub(crate) fn bring_up(&self, process: &Process) -> anyhow::Result<()> {
        let mut state = locked(&process.state);
        state.identity = launch::spawn(&self.workspace, &process.planned, &self.programs)?;
        state.wanted = true;
        Ok(())
    }

    /// Starts what ended without having been asked to, as a container's restart policy would.
    pub(crate) fn revive(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            let mut state = locked(&process.state);
            if state.wanted && !state.identity.is_alive() {
                say(&format!(
                    "{} ended by itself; it is started again",
                    process.planned.name
                ));
                self.ended_by_themselves.fetch_add(1, Ordering::Relaxed);
                state.identity = launch::spawn(&self.workspace, &process.planned, &self.programs)?;
            }
        }
        Ok(())
    }

    /// Lines of the logs that speak of a panic.
    pub(crate) fn panics(&self) -> anyhow::Result<Vec<String>> {
        let mut panics = Vec::new();
        for process in &self.processes {
            let name = &process.planned.name;
            let log = File::open(self.workspace.log(name)).context("reading a log")?;
            for line in BufReader::new(log).split(b'\n') {
                let line = line.context("reading a log")?;
                let line = String::from_utf8_lossy(&line);
                if line.contains("panicked") {
                    panics.push(format!("{name}: {line}"));
                }
            }
        }
        Ok(panics)
    }

    pub(crate) fn ended_by_themselves(&self) -> usize {
        self.ended_by_themselves.load(Ordering::Relaxed)
    }

    /// Waits until servers and processes are ready.
    pub(crate) fn wait_well(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        self.servers.postgres.wait_ready()?;
        self.servers.rabbitmq.wait_ready()?;
        let agent = http::agent(Duration::from_secs(3));
        for process in &self.processes {
            let name = &process.planned.name;
            let ready = wait_until(READY_LIMIT, || {
                if let Err(interrupted) = interrupt.check() {
                    return Some(Err(interrupted));
                }
                http::is_ready(&agent, &process.planned.metrics).then_some(Ok(()))
            });
            ready.with_context(|| {
                let said = http::readiness(&agent, &process.planned.metrics);
                format!("{name} does not become ready again and says {said}")
            })??;
        }
        Ok(())
    }
}

impl Process {
    fn new((planned, identity): (Planned, Identity)) -> Self {
        let state = State {
            identity,
            wanted: true,
        };
        Self {
            planned,
            turn: Mutex::default(),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn signal(&self, which: Signal) {
        locked(&self.state).identity.signal(which);
    }

    /// Kills it without waiting for its end; it stays away like one that was taken down.
    pub(crate) fn kill_now(&self) {
        let mut state = locked(&self.state);
        state.wanted = false;
        state.identity.signal(Signal::SIGKILL);
    }
}

fn admin(plan: &Plan) -> Admin {
    Admin {
        username: plan.admin_username.clone(),
        password: plan.admin_password.clone(),
    }
}

/// Where each program is: in the folder that was given, or where cargo builds it.
fn programs(
    workspace: &Workspace,
    wishes: &Wishes<'_>,
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let Some(folder) = wishes.programs else {
        return launch::build(workspace, wishes.release);
    };
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut programs = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let (true, Some(name)) = (path.is_file(), name) {
            programs.insert(name.to_owned(), path.clone());
        }
    }
    Ok(programs)
}

/// Keeps the programs as they are now: a build while this runs changes them.
fn kept(
    workspace: &Workspace,
    programs: BTreeMap<String, PathBuf>,
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let folder = workspace.local().join("bin");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let keep = |(name, built): (String, PathBuf)| {
        let kept = folder.join(&name);
        // A copy rather than a link: a linker may write into the file that it finds.
        fs::copy(&built, &kept).with_context(|| format!("copying {}", built.display()))?;
        Ok((name, kept))
    };
    programs.into_iter().map(keep).collect()
}

/// Starts the servers and prepares the database.
fn back(workspace: &Workspace) -> anyhow::Result<(Servers, Backing)> {
    say("starting Postgres and RabbitMQ");
    let options = Options {
        folder: workspace.servers(),
        durability: Durability::Discardable,
        parts: Parts::Both,
    };
    let servers = Servers::start(&options, &say)?;
    let description = servers.description();
    let admin_url = description.postgres.admin_url_of(DATABASE)?;
    let databases = bootstrap::run(&admin_url, &description.postgres.passwords)
        .context("preparing the database")?;
    let backing = Backing {
        databases,
        amqp: description.rabbitmq.amqp_url,
    };
    Ok((servers, backing))
}

/// Puts a link into each connection of [`LINKED`].
fn link(processes: &mut [Planned]) -> anyhow::Result<Vec<Link>> {
    let mut links = Vec::new();
    for process in processes {
        for (program, variable, other) in LINKED {
            if process.program != program {
                continue;
            }
            let url = process.variables.get(variable);
            let target = url
                .and_then(|url| port_of(url))
                .with_context(|| format!("{} has no usable {variable}", process.name))?;
            let [entrance] = ports::free()?;
            links.push(Link::open(
                format!("{} → {other}", process.name),
                entrance,
                target,
            )?);
            let owner = (variable == "DATABASE_URL").then_some("DATABASE_OWNER_URL");
            for name in [Some(variable), owner].into_iter().flatten() {
                if let Some(url) = process.variables.get_mut(name) {
                    *url = url.replace(&format!(":{target}"), &format!(":{entrance}"));
                }
            }
        }
    }
    Ok(links)
}

/// The port of a url of this machine.
fn port_of(url: &str) -> Option<u16> {
    let (_, after) = url.split_once("127.0.0.1:")?;
    let end = after.find(|character: char| !character.is_ascii_digit());
    after.get(..end.unwrap_or(after.len()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_in_every_kind_of_url() {
        for url in [
            "http://127.0.0.1:8081",
            "amqp://countersign:12ab@127.0.0.1:8081/%2f",
            "postgres://role:12ab@127.0.0.1:8081/countersign",
        ] {
            assert_eq!(port_of(url), Some(8081), "{url}");
        }
        assert_eq!(port_of("http://example.com"), None);
    }
}
