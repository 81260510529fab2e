//! A whole system: its servers and its processes.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use local_stack::{Detached, Layout, Need, Servers, packages, ports, private, tail};

use crate::backing::Backing;
use crate::client::{Client, Person};
use crate::instance::{self, Variables};
use crate::interrupt;
use crate::output::say;
use crate::plan::{self, Replicas};
use crate::process::{self, Process};
use crate::programs::{self, Source};
use crate::stack_file::{Admin, Entry, Stack};
use crate::stream::Stream;
use crate::sync::{join, lock};
use crate::workspace::{Programs, Workspace};

/// A busy machine takes long to start a process.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// Short, because how long a start takes is measured.
const POLL: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub struct Options<'run> {
    pub source: Source<'run>,
    /// The servers of a tool's own system. `None` is the system of `up`.
    pub layout: Option<Layout>,
    /// The gateway's port, if it must be this one.
    pub port: Option<u16>,
    pub replicas: Replicas,
    /// Processes that are planned, and started later.
    pub later: &'static [&'static str],
    pub show_logs: bool,
}

impl<'run> Options<'run> {
    /// The system of `up`, with ports and servers that people may choose.
    pub fn usual(source: Source<'run>) -> Self {
        Self {
            source,
            layout: None,
            port: None,
            replicas: Replicas::new(),
            later: &[],
            show_logs: false,
        }
    }

    /// A system of a tool, with private servers and a free port.
    pub fn own(source: Source<'run>) -> Self {
        Self {
            layout: Some(Layout::SINGLE),
            ..Self::usual(source)
        }
    }
}

pub struct System {
    pub workspace: Workspace,
    pub gateway: String,
    pub demo_engine: String,
    pub admin: Admin,
    pub backing: Backing,
    /// All processes, in the order in which they start.
    pub processes: Vec<Process>,
    pub stream: Option<Stream>,
    pub programs: Programs,
    later: &'static [&'static str],
    /// How many processes were restarted because they had exited.
    pub unexpected_exits: AtomicUsize,
}

impl System {
    /// Builds the programs, starts the servers, and plans the processes of a tool's own system. [`Self::start`] starts them.
    /// The caller removes all of it: see [`crate::with_own_system`].
    pub fn plan(workspace: &Workspace, options: &Options<'_>) -> anyhow::Result<Self> {
        let port = match options.layout {
            Some(_) => ports::free().map(|[port]| port)?,
            None => plan::gateway_port(options.port)?,
        };
        // The compiler needs nothing else.
        packages::ensure(&[Need::CLIENT_LIBRARY], &say)?;
        let (programs, backing) = thread::scope(|scope| {
            let programs = scope.spawn(|| programs::get(workspace, options.source));
            let backing = Backing::start(workspace, options.layout);
            (join(programs), backing)
        });
        let (programs, backing) = (programs??, backing?);
        interrupt::check()?;
        let processes = plan::processes(workspace, &options.replicas, port, &backing)?;
        let url = |program| {
            let first = processes.iter().find(|process| process.name == program);
            first.and_then(|process| process.url.clone())
        };
        Ok(Self {
            workspace: workspace.clone(),
            gateway: url("gateway").context("there is no gateway")?,
            demo_engine: url("demo-engine").context("there is no demo engine")?,
            admin: plan::admin(&backing.secrets),
            stream: prepare_logs(workspace, &processes, options.show_logs)?,
            backing,
            processes,
            programs,
            later: options.later,
            unexpected_exits: AtomicUsize::new(0),
        })
    }

    /// Starts the system of `up`. On failure it is stopped again.
    pub fn up(workspace: &Workspace, options: &Options<'_>) -> anyhow::Result<Self> {
        let planned = Self::plan(workspace, options);
        let started = planned.and_then(|system| system.start().map(|()| system));
        if started.is_err() {
            process::stop_system(workspace)?;
        }
        started
    }

    /// Starts processes stage by stage, each stage when the one before it is ready.
    pub fn start(&self) -> anyhow::Result<()> {
        let is_first = |process: &&Process| !self.later.contains(&process.name.as_str());
        let processes: Vec<_> = self.processes.iter().filter(is_first).collect();
        say(&format!("starting {} processes", processes.len()));
        for stage in processes.chunk_by(|one, next| one.stage == next.stage) {
            stage.iter().try_for_each(|process| self.spawn(process))?;
            stage.iter().try_for_each(|one| self.wait_started(one))?;
        }
        self.stack().write(&self.workspace)
    }

    /// Stops all processes, calls `between`, and starts them again.
    pub fn restart(&self, between: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        process::stop_all(&self.workspace)?;
        between()?;
        self.start()
    }

    /// Adds settings to all processes.
    pub fn set_all(&mut self, settings: &[(&'static str, &str)]) {
        for process in &mut self.processes {
            process.variables.extend(instance::owned(settings));
        }
    }

    pub fn process(&self, name: &str) -> anyhow::Result<&Process> {
        let mut all = self.processes.iter();
        let found = all.find(|process| process.name == name);
        found.with_context(|| format!("there is no {name}"))
    }

    /// The processes that verify access tokens.
    pub fn token_verifiers(&self) -> impl Iterator<Item = &Process> {
        const VERIFIERS: [&str; 3] = ["gateway", "user-service", "people-task-service"];
        let processes = self.processes.iter();
        processes.filter(|process| VERIFIERS.contains(&process.program))
    }

    pub fn servers(&self) -> anyhow::Result<&Servers> {
        let servers = self.backing.servers.as_ref();
        servers.context("there are no servers")
    }

    pub fn client(&self) -> Client {
        Client::new(&self.gateway)
    }

    pub fn sign_in_admin(&self) -> anyhow::Result<Person> {
        let Admin { username, password } = &self.admin;
        self.client().sign_in(username, password)
    }

    /// Starts a process without waiting until it is ready.
    pub fn spawn(&self, process: &Process) -> anyhow::Result<()> {
        self.spawn_as(process, &process.variables, &self.programs)
    }

    /// Starts a process with other settings or other programs.
    pub fn spawn_as(
        &self,
        process: &Process,
        variables: &Variables,
        programs: &Programs,
    ) -> anyhow::Result<()> {
        let program = programs.get(process.program);
        let program =
            program.with_context(|| format!("cargo did not build {}", process.program))?;
        let mut detached = Detached::new(program, &self.workspace.log(&process.name));
        let command = &mut detached.command;
        command.current_dir(&self.workspace.root);
        instance::apply(command, variables);
        *lock(&process.identity) = Some(detached.spawn()?);
        Ok(())
    }

    /// Starts a process, with these settings in place of its usual ones, and waits until it is ready. Returns how long that took.
    pub fn start_process(
        &self,
        name: &str,
        settings: &[(&'static str, &str)],
    ) -> anyhow::Result<Duration> {
        let process = self.process(name)?;
        let mut variables = process.variables.clone();
        variables.extend(instance::owned(settings));
        let start = Instant::now();
        self.spawn_as(process, &variables, &self.programs)?;
        self.wait_started(process)?;
        Ok(start.elapsed())
    }

    /// Waits until a process is ready. Fails if it ends.
    pub fn wait_started(&self, process: &Process) -> anyhow::Result<()> {
        let (name, client) = (&process.name, Client::of_process(&process.metrics));
        let log = self.workspace.log(name);
        let end_of_log = || format!("the end of {}:\n{}", log.display(), tail(&log, 20));
        let end = Instant::now() + READY_LIMIT;
        while !client.is_ready() {
            interrupt::check()?;
            let is_alive = process.is_alive();
            ensure!(is_alive, "{name} ended while it started; {}", end_of_log());
            ensure!(
                Instant::now() < end,
                "{name} was not ready within {} s and reports {}; {}",
                READY_LIMIT.as_secs(),
                client.readiness(),
                end_of_log()
            );
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until every process is ready, also those that end meanwhile and are started again.
    pub fn wait_ready(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            let client = Client::of_process(&process.metrics);
            let is_ready = || client.is_ready().then_some(());
            let ready = interrupt::wait_until(READY_LIMIT, is_ready)?;
            ready.with_context(|| {
                let (name, readiness) = (&process.name, client.readiness());
                format!("{name} did not become ready again: {readiness}")
            })?;
        }
        Ok(())
    }

    /// Restarts processes that exited unexpectedly, as a container's restart policy would.
    pub fn restart_exited(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            // A fault ends with another start of the process.
            let Ok(_no_fault) = process.fault_lock.try_lock() else {
                continue;
            };
            if process.identity().is_some_and(|one| !one.is_alive()) {
                let name = &process.name;
                let end_of_log = tail(&self.workspace.log(name), 5);
                say(&format!(
                    "{name} exited unexpectedly and is restarted; the end of its log:\n{end_of_log}"
                ));
                self.unexpected_exits.fetch_add(1, Ordering::Relaxed);
                self.spawn(process)?;
            }
        }
        Ok(())
    }

    /// Fails if a process has ended by itself.
    pub fn ensure_all_alive(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            let name = &process.name;
            let end_of_log = || tail(&self.workspace.log(name), 20);
            let has_ended = process.identity().is_some_and(|one| !one.is_alive());
            ensure!(!has_ended, "{name} ended; its log:\n{}", end_of_log());
        }
        Ok(())
    }

    /// Lines of the logs that report a panic.
    pub fn panics(&self) -> anyhow::Result<Vec<String>> {
        let mut panics = Vec::new();
        for process in &self.processes {
            let name = &process.name;
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

    pub fn stack(&self) -> Stack {
        let entry = |process: &Process| {
            Some(Entry {
                name: process.name.clone(),
                pid: process.identity()?.pid,
                url: process.url.clone(),
                metrics: process.metrics.clone(),
            })
        };
        Stack {
            gateway: self.gateway.clone(),
            admin: self.admin.clone(),
            demo_engine: self.demo_engine.clone(),
            database: self.backing.databases.users_service.clone(),
            amqp: self.backing.amqp.clone(),
            processes: self.processes.iter().filter_map(entry).collect(),
        }
    }
}

/// Creates an empty log for each process, and follows the logs if they are to be shown.
fn prepare_logs(
    workspace: &Workspace,
    processes: &[Process],
    show: bool,
) -> anyhow::Result<Option<Stream>> {
    let mut logs = Vec::new();
    for process in processes {
        let log = workspace.log(&process.name);
        if let Some(folder) = log.parent() {
            private::create_folder(folder)?;
        }
        private::truncate(&log)?;
        logs.push((process.name.clone(), log));
    }
    Ok(show.then(|| Stream::follow(logs)))
}
