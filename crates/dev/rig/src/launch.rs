//! Starts and stops the whole system.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    thread,
};

use anyhow::{Context, ensure};
use local_stack::{
    Parts, Servers, Stop,
    packages::{self, Need},
    ports,
    process::Identity,
};

use crate::{
    backing::{self, Backing, GivenServers},
    environment::Variables,
    interrupt::Interrupt,
    output::say,
    plan::{Plan, Planned, Replicas},
    processes::{self, prepare_logs, start_processes},
    programs,
    secrets::Secrets,
    stack_file::{Admin, Databases, Entry, Stack},
    stream::Stream,
    workspace::{Profile, Workspace},
};

const DEFAULT_PORT: u16 = 8080;

/// How to run the system.
#[derive(Debug, Clone, Default)]
pub struct LaunchOptions {
    /// Whether the programs are optimised.
    pub optimised: bool,
    /// The gateway's port. Launching fails if it is taken.
    pub port: Option<u16>,
    /// How many processes of each program.
    pub replicas: Replicas,
    /// Settings of all processes, in addition to the usual ones.
    pub settings: Variables,
    /// Whether to print the logs.
    pub show_logs: bool,
}

/// A running system.
pub struct Running {
    /// What runs, and where.
    pub stack: Stack,
    /// The processes.
    pub processes: Vec<(Planned, Identity)>,
    /// Prints the logs.
    pub stream: Option<Stream>,
    plan: Plan,
    programs: BTreeMap<String, PathBuf>,
}

impl Running {
    /// The program of a process, by the name that says what it does.
    pub fn program(&self, process: &Planned) -> anyhow::Result<&Path> {
        let program = self.programs.get(process.program);
        let program = program.with_context(|| format!("there is no {}", process.program))?;
        Ok(program)
    }

    /// Stops all processes, calls `between`, and starts them again with the same settings.
    pub fn restart(
        &mut self,
        workspace: &Workspace,
        interrupt: &Interrupt,
        between: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        processes::stop_all(workspace)?;
        between()?;
        self.processes = start_processes(workspace, &self.plan, &self.programs, interrupt)?;
        self.stack.processes = self.processes.iter().map(entry).collect();
        self.stack.write(workspace)
    }
}

/// Starts everything and waits until it is ready. Stops everything again if that fails.
pub fn start(
    workspace: &Workspace,
    options: &LaunchOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Running> {
    let started = start_all(workspace, options, interrupt);
    if started.is_err() {
        stop(workspace)?;
    }
    started
}

/// Stops everything that is running.
pub fn stop(workspace: &Workspace) -> anyhow::Result<()> {
    let stopped = processes::stop_all(workspace);
    let servers = match Servers::find(&workspace.servers()) {
        Ok(Some(servers)) => servers.stop(Stop::Graceful),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    stopped?;
    servers?;
    Stack::remove(workspace);
    Ok(())
}

fn start_all(
    workspace: &Workspace,
    options: &LaunchOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Running> {
    let gateway_port = gateway_port(options.port)?;
    // The compiler needs nothing else.
    packages::ensure(&[Need::ClientLibrary], &say)?;
    let secrets = Secrets::prepare(workspace)?;
    let (programs, backing) = thread::scope(|scope| {
        let programs = scope.spawn(|| programs::build(workspace, Profile::of(options.optimised)));
        let backing = start_servers(workspace, &secrets, interrupt);
        (joined(programs), backing)
    });
    let (programs, (backing, admin_url)) = (programs?, backing?);
    interrupt.check()?;

    let replicas = &options.replicas;
    let mut plan = Plan::new(workspace, replicas, gateway_port, &secrets, &backing)?;
    for process in &mut plan.processes {
        process.variables.extend(options.settings.clone());
    }
    let stream = prepare_logs(workspace, &plan, options.show_logs)?;
    let processes = start_processes(workspace, &plan, &programs, interrupt)?;
    let stack = stack(&plan, &backing, admin_url, &processes);
    stack.write(workspace)?;
    Ok(Running {
        stack,
        processes,
        stream,
        plan,
        programs,
    })
}

/// Installs and starts the servers that the environment does not name. Returns the superuser's URL of the database, too.
fn start_servers(
    workspace: &Workspace,
    secrets: &Secrets,
    interrupt: &Interrupt,
) -> anyhow::Result<(Backing, String)> {
    let given = GivenServers::from_environment();
    let mut needs = vec![Need::Psql];
    needs.extend(given.missing().map_or(&[][..], Parts::needs));
    packages::ensure(&needs, &say)?;
    interrupt.check()?;
    backing::prepare(workspace, secrets, given)
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Returns the port of the option or of `LISTEN_ADDRESS`, the default port, or a free one.
fn gateway_port(option: Option<u16>) -> anyhow::Result<u16> {
    let from_variable = env::var("LISTEN_ADDRESS")
        .ok()
        .map(|address| {
            let port = address
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse().ok());
            port.with_context(|| format!("LISTEN_ADDRESS={address} has no port"))
        })
        .transpose()?;
    if let Some(port) = option.or(from_variable).filter(|port| *port != 0) {
        ensure!(ports::is_free(port), "port {port} is taken");
        return Ok(port);
    }
    let port = ports::prefer(DEFAULT_PORT)?;
    if port != DEFAULT_PORT {
        say(&format!(
            "port {DEFAULT_PORT} is taken, so the gateway listens on {port}"
        ));
    }
    Ok(port)
}

fn stack(
    plan: &Plan,
    backing: &Backing,
    admin_url: String,
    processes: &[(Planned, Identity)],
) -> Stack {
    Stack {
        gateway: plan.gateway.clone(),
        admin: Admin {
            username: plan.admin_username.clone(),
            password: plan.admin_password.clone(),
        },
        demo_engine: plan.demo_engine.clone(),
        postgres: Databases {
            users: backing.databases.users_service.clone(),
            people_task: backing.databases.people_task_service.clone(),
            admin: admin_url,
        },
        amqp: backing.amqp.clone(),
        processes: processes.iter().map(entry).collect(),
    }
}

fn entry((process, identity): &(Planned, Identity)) -> Entry {
    Entry {
        name: process.name.clone(),
        pid: identity.pid,
        url: process.url.clone(),
        metrics: process.metrics.clone(),
    }
}
