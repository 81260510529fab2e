//! The system under test: its own processes and servers, connected through proxies that can cut
//! connections.

use std::{
    collections::BTreeMap,
    fs::File,
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
    Durability, RabbitMq, Servers,
    packages::{self, Need},
    ports,
    process::{Identity, tail, wait_until},
};
use nix::sys::signal::Signal;
use rig::{
    http,
    interrupt::Interrupt,
    output::say,
    own_system::{self, Layout},
    plan::{Plan, Planned, Replicas},
    processes, programs,
    secrets::Secrets,
    stack_file::Admin,
    workspace::{Profile, Workspace},
};

use crate::{
    databases::Databases, proxied::open_proxies, settings, sync::lock, tcp_proxy::TcpProxy,
};

const READY_LIMIT: Duration = Duration::from_secs(90);
/// Slightly longer than the grace period of the processes.
const STOP_LIMIT: Duration = Duration::from_secs(28);

/// How many lines of the log of a process that exited are shown.
const LINES_OF_LOG: usize = 5;

/// The running system.
pub(crate) struct System {
    workspace: Workspace,
    programs: BTreeMap<String, PathBuf>,
    pub(crate) servers: Servers,
    pub(crate) databases: Databases,
    pub(crate) processes: Vec<Process>,
    pub(crate) proxies: Vec<TcpProxy>,
    pub(crate) gateways: Vec<String>,
    pub(crate) admin: Admin,
    unexpected_exits: AtomicUsize,
}

/// A process, across its restarts.
pub(crate) struct Process {
    pub(crate) planned: Planned,
    /// Held while a fault hits the process: a process that stops slowly may meet the next fault.
    pub(crate) fault_lock: Mutex<()>,
    state: Mutex<State>,
}

struct State {
    identity: Identity,
    /// Whether it should run. A process that exits unexpectedly is restarted.
    should_run: bool,
}

/// How to start the system.
pub(crate) struct LaunchOptions<'run> {
    /// The folder with the programs; `None` builds them.
    pub(crate) programs: Option<&'run Path>,
    pub(crate) release: bool,
    pub(crate) replicas: Replicas,
    pub(crate) layout: Layout,
    pub(crate) duration: Duration,
    pub(crate) recipients: settings::RecipientUrls,
}

impl System {
    /// Starts everything and waits until it is ready. On failure, the caller stops what was started.
    pub(crate) fn start(
        workspace: &Workspace,
        options: &LaunchOptions<'_>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let needs = [
            Need::ClientLibrary,
            Need::Postgres,
            Need::RabbitMq,
            Need::Psql,
        ];
        packages::ensure(&needs, &say)?;
        let programs = programs::copy(workspace, find_programs(workspace, options)?)?;
        interrupt.check()?;
        let secrets = Secrets::prepare(workspace)?;
        let own = own_system::start_servers(workspace, Durability::Discardable, options.layout)?;
        interrupt.check()?;
        let [gateway_port] = ports::free()?;
        let mut plan = Plan::new(
            workspace,
            &options.replicas,
            gateway_port,
            &secrets,
            &own.backing,
        )?;
        for process in &mut plan.processes {
            settings::apply(process, options.duration, &options.recipients);
        }
        let proxies = open_proxies(&mut plan.processes, &own.servers)?;
        processes::prepare_logs(workspace, &plan, false)?;
        let running = processes::start_processes(workspace, &plan, &programs, interrupt)?;
        let gateways = plan.processes.iter();
        let gateways = gateways.filter(|process| process.program == "gateway");
        Ok(Self {
            gateways: gateways.filter_map(|one| one.url.clone()).collect(),
            workspace: workspace.clone(),
            programs,
            databases: Databases::new(&own.servers),
            servers: own.servers,
            admin: admin(&plan),
            processes: running.into_iter().map(Process::new).collect(),
            proxies,
            unexpected_exits: AtomicUsize::new(0),
        })
    }

    /// Kills a process. It stays stopped until [`Self::start_process`].
    pub(crate) fn kill_process(&self, process: &Process) -> anyhow::Result<()> {
        let mut state = lock(&process.state);
        state.should_run = false;
        Ok(state.identity.kill()?)
    }

    /// Sends SIGTERM to a process, and kills it if it does not stop in time. Returns whether it did.
    pub(crate) fn stop_process(
        &self,
        process: &Process,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let identity = {
            let mut state = lock(&process.state);
            state.should_run = false;
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
    pub(crate) fn start_process(&self, process: &Process) -> anyhow::Result<()> {
        let mut state = lock(&process.state);
        state.identity = processes::spawn(&self.workspace, &process.planned, &self.programs)?;
        state.should_run = true;
        Ok(())
    }

    /// Restarts processes that exited unexpectedly, as a container's restart policy would.
    pub(crate) fn restart_exited(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            let mut state = lock(&process.state);
            if state.should_run && !state.identity.is_alive() {
                let name = &process.planned.name;
                let end_of_log = tail(&self.workspace.log(name), LINES_OF_LOG);
                say(&format!(
                    "{name} exited unexpectedly and is restarted; the end of its log:\n{end_of_log}"
                ));
                self.unexpected_exits.fetch_add(1, Ordering::Relaxed);
                state.identity =
                    processes::spawn(&self.workspace, &process.planned, &self.programs)?;
            }
        }
        Ok(())
    }

    /// Lines of the logs that report a panic.
    pub(crate) fn panics(&self) -> anyhow::Result<Vec<String>> {
        let names = self.processes.iter();
        panics(&self.workspace, names.map(|one| one.planned.name.as_str()))
    }

    /// The URLs of the processes that verify tokens, each with the path of a `GET` that needs a token.
    pub(crate) fn token_verifiers(&self) -> Vec<(String, &'static str)> {
        let verifiers = self.processes.iter().filter_map(|process| {
            let path = match process.planned.program {
                "gateway" | "user-service" => "/user",
                "people-task-service" => "/people-task/tasks",
                _ => return None,
            };
            Some((process.planned.url.clone()?, path))
        });
        verifiers.collect()
    }

    pub(crate) fn unexpected_exits(&self) -> usize {
        self.unexpected_exits.load(Ordering::Relaxed)
    }

    /// Waits until servers and processes are ready.
    pub(crate) fn wait_ready(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        self.databases.wait_ready()?;
        self.servers.broker().try_for_each(RabbitMq::wait_ready)?;
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
                let readiness = http::readiness(&agent, &process.planned.metrics);
                format!("{name} did not become ready again: {readiness}")
            })??;
        }
        Ok(())
    }
}

impl Process {
    fn new((planned, identity): (Planned, Identity)) -> Self {
        let state = State {
            identity,
            should_run: true,
        };
        Self {
            planned,
            fault_lock: Mutex::default(),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn signal(&self, which: Signal) {
        lock(&self.state).identity.signal(which);
    }

    /// Kills it without waiting for its exit. It stays stopped.
    pub(crate) fn kill_now(&self) {
        let mut state = lock(&self.state);
        state.should_run = false;
        state.identity.signal(Signal::SIGKILL);
    }
}

/// Lines of the logs of these processes that report a panic.
pub(crate) fn panics<'name>(
    workspace: &Workspace,
    processes: impl Iterator<Item = &'name str>,
) -> anyhow::Result<Vec<String>> {
    let mut panics = Vec::new();
    for name in processes {
        let log = File::open(workspace.log(name)).context("reading a log")?;
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

fn admin(plan: &Plan) -> Admin {
    Admin {
        username: plan.admin_username.clone(),
        password: plan.admin_password.clone(),
    }
}

/// Returns the path of each program.
fn find_programs(
    workspace: &Workspace,
    options: &LaunchOptions<'_>,
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let Some(folder) = options.programs else {
        return programs::build(workspace, Profile::of(options.release));
    };
    programs::find(folder)
}
