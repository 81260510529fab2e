//! A whole system: its servers and its processes.

use std::{
    env,
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use local_stack::{
    Servers, Stop,
    packages::{self, Need},
    ports, private,
    process::{Detached, Identity, tail},
};

use crate::{
    backing::{Backing, Layout},
    client::Client,
    environment::{self, Variables},
    interrupt::Interrupt,
    output::say,
    plan::{LAST_STAGE, Plan, Planned, Replicas},
    process::{self, Process},
    programs::{self, Programs},
    secrets::Secrets,
    stack_file::{Admin, Databases, Entry, Stack},
    stream::Stream,
    sync::lock,
    workspace::{Profile, Workspace},
};

const DEFAULT_PORT: u16 = 8080;
/// A busy machine takes long to start a process.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// Short, because how long a start takes is measured.
const POLL: Duration = Duration::from_millis(5);

/// Where programs come from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'run> {
    /// They are built.
    Build(Profile),
    /// They are in a folder.
    Folder(&'run Path),
    /// They were built, and copied.
    Copied(&'run Programs),
}

impl<'run> Source<'run> {
    /// For the options `--programs` and `--release`.
    pub fn of(folder: Option<&'run Path>, optimised: bool) -> Self {
        folder.map_or(Self::Build(Profile::of(optimised)), Self::Folder)
    }
}

/// How to start a system.
#[derive(Debug, Clone)]
pub struct Options<'run> {
    /// Where its programs come from.
    pub source: Source<'run>,
    /// The servers of a tool's own system. `None` is the system of `up`.
    pub layout: Option<Layout>,
    /// The gateway's port, if it must be this one.
    pub port: Option<u16>,
    /// How many processes of each program.
    pub replicas: Replicas,
    /// Processes that are planned, and started later.
    pub later: &'run [&'run str],
    /// Whether to print the logs.
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

/// A running system.
pub struct System {
    /// Where its files are.
    pub workspace: Workspace,
    /// The gateway's URL.
    pub gateway: String,
    /// The demo engine's URL.
    pub demo_engine: String,
    /// The first administrator.
    pub admin: Admin,
    /// The database and the broker.
    pub backing: Backing,
    /// All processes, in the order in which they start.
    pub processes: Vec<Process>,
    /// Prints the logs.
    pub stream: Option<Stream>,
    /// The programs by their names.
    pub programs: Programs,
    interrupt: Interrupt,
    unexpected_exits: AtomicUsize,
}

impl System {
    /// Starts everything, and waits until it is ready. `prepare` changes the plan before processes are started. On failure,
    /// the system of `up` is stopped again. The caller removes others: see [`crate::own::with_own_system`].
    pub fn start(
        workspace: &Workspace,
        options: &Options<'_>,
        interrupt: &Interrupt,
        prepare: impl FnOnce(&mut Plan, &Backing) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let started = Self::start_all(workspace, options, interrupt, prepare);
        if started.is_err() && options.layout.is_none() {
            stop(workspace)?;
        }
        started
    }

    fn start_all(
        workspace: &Workspace,
        options: &Options<'_>,
        interrupt: &Interrupt,
        prepare: impl FnOnce(&mut Plan, &Backing) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let port = gateway_port(options)?;
        // The compiler needs nothing else.
        packages::ensure(&[Need::ClientLibrary], &say)?;
        let secrets = Secrets::prepare(workspace)?;
        let (programs, backing) = thread::scope(|scope| {
            let programs = scope.spawn(|| find_programs(workspace, options));
            let backing = Backing::start(workspace, &secrets, options.layout);
            (joined(programs), backing)
        });
        let (programs, backing) = (programs?, backing?);
        interrupt.check()?;
        let mut plan = Plan::new(workspace, &options.replicas, port, &secrets, &backing)?;
        prepare(&mut plan, &backing)?;
        let stream = prepare_logs(workspace, &plan, options.show_logs)?;
        let system = Self {
            workspace: workspace.clone(),
            gateway: plan.gateway,
            demo_engine: plan.demo_engine,
            admin: plan.admin,
            backing,
            processes: plan.processes.into_iter().map(Process::new).collect(),
            stream,
            programs,
            interrupt: interrupt.clone(),
            unexpected_exits: AtomicUsize::new(0),
        };
        let is_first = |process: &&Process| !options.later.contains(&process.name());
        let first: Vec<_> = system.processes.iter().filter(is_first).collect();
        system.start_stages(&first)?;
        Ok(system)
    }

    /// Starts processes stage by stage, each stage when the one before it is ready.
    fn start_stages(&self, processes: &[&Process]) -> anyhow::Result<()> {
        say(&format!("starting {} processes", processes.len()));
        for stage in 0..=LAST_STAGE {
            let of_stage = || processes.iter().filter(|one| one.planned.stage == stage);
            of_stage().try_for_each(|process| self.spawn(process))?;
            of_stage().try_for_each(|process| self.wait_started(process))?;
        }
        self.stack().write(&self.workspace)
    }

    /// Stops all processes, calls `between`, and starts them again.
    pub fn restart(&self, between: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        process::stop_all(&self.workspace)?;
        between()?;
        let all: Vec<_> = self.processes.iter().collect();
        self.start_stages(&all)
    }

    /// The process of this name.
    pub fn process(&self, name: &str) -> anyhow::Result<&Process> {
        let mut all = self.processes.iter();
        let found = all.find(|process| process.name() == name);
        found.with_context(|| format!("there is no {name}"))
    }

    /// The private servers.
    pub fn servers(&self) -> anyhow::Result<&Servers> {
        self.backing
            .servers
            .as_ref()
            .context("there are no servers")
    }

    /// A client of the gateway.
    pub fn client(&self) -> Client {
        Client::new(&self.gateway)
    }

    /// Starts a process without waiting until it is ready.
    pub fn spawn(&self, process: &Process) -> anyhow::Result<()> {
        self.spawn_as(process, &process.planned, &self.programs)
    }

    /// Starts a process with another plan or other programs.
    pub fn spawn_as(
        &self,
        process: &Process,
        planned: &Planned,
        programs: &Programs,
    ) -> anyhow::Result<()> {
        let mut state = lock(&process.state);
        state.identity = Some(self.launch(planned, programs)?);
        state.should_run = true;
        Ok(())
    }

    fn launch(&self, planned: &Planned, programs: &Programs) -> anyhow::Result<Identity> {
        let program = programs.get(planned.program);
        let program =
            program.with_context(|| format!("cargo did not build {}", planned.program))?;
        let mut detached = Detached::new(program, &self.workspace.log(&planned.name));
        let command = detached.command();
        command.current_dir(self.workspace.root());
        environment::apply(command, &planned.variables);
        detached.spawn()
    }

    /// Starts a process, and waits until it is ready. Returns how long that took.
    pub fn start_process(&self, name: &str) -> anyhow::Result<Duration> {
        self.start_process_with(name, &[])
    }

    /// Starts a process with other settings than usual, and waits until it is ready. Returns how long that took.
    pub fn start_process_with(
        &self,
        name: &str,
        settings: &[(&'static str, &str)],
    ) -> anyhow::Result<Duration> {
        let process = self.process(name)?;
        let mut planned = process.planned.clone();
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| (*name, (*value).to_owned()));
        planned.variables.extend(settings.collect::<Variables>());
        let start = Instant::now();
        self.spawn_as(process, &planned, &self.programs)?;
        self.wait_started(process)?;
        Ok(start.elapsed())
    }

    /// Waits until a process is ready. Fails if it ends.
    pub fn wait_started(&self, process: &Process) -> anyhow::Result<()> {
        let (name, client) = (process.name(), process.metrics());
        let log = self.workspace.log(name);
        let end_of_log = || format!("the end of {}:\n{}", log.display(), tail(&log, 20));
        let end = Instant::now() + READY_LIMIT;
        while !client.is_ready() {
            self.interrupt.check()?;
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
            let client = process.metrics();
            let is_ready = || client.is_ready().then_some(());
            let ready = self.interrupt.wait_until(READY_LIMIT, is_ready)?;
            ready.with_context(|| {
                let (name, readiness) = (process.name(), client.readiness());
                format!("{name} did not become ready again: {readiness}")
            })?;
        }
        Ok(())
    }

    /// Restarts processes that exited unexpectedly, as a container's restart policy would.
    pub fn restart_exited(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            let mut state = lock(&process.state);
            let has_ended = |identity: Identity| !identity.is_alive();
            if state.should_run && state.identity.is_some_and(has_ended) {
                let name = process.name();
                let end_of_log = tail(&self.workspace.log(name), 5);
                say(&format!(
                    "{name} exited unexpectedly and is restarted; the end of its log:\n{end_of_log}"
                ));
                self.unexpected_exits.fetch_add(1, Ordering::Relaxed);
                state.identity = Some(self.launch(&process.planned, &self.programs)?);
            }
        }
        Ok(())
    }

    /// How many processes were restarted because they had exited.
    pub fn unexpected_exits(&self) -> usize {
        self.unexpected_exits.load(Ordering::Relaxed)
    }

    /// Fails if a process has ended by itself.
    pub fn ensure_all_alive(&self) -> anyhow::Result<()> {
        for process in &self.processes {
            let name = process.name();
            let log = self.workspace.log(name);
            let end_of_log = || tail(&log, 20);
            let is_fine = process.is_as_it_should();
            ensure!(is_fine, "{name} ended; its log:\n{}", end_of_log());
        }
        Ok(())
    }

    /// Lines of the logs that report a panic.
    pub fn panics(&self) -> anyhow::Result<Vec<String>> {
        let mut panics = Vec::new();
        for process in &self.processes {
            let name = process.name();
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

    /// What runs, and where.
    pub fn stack(&self) -> Stack {
        let entry = |process: &Process| {
            Some(Entry {
                name: process.name().to_owned(),
                pid: process.identity()?.pid,
                url: process.planned.url.clone(),
                metrics: process.planned.metrics.clone(),
            })
        };
        Stack {
            gateway: self.gateway.clone(),
            admin: self.admin.clone(),
            demo_engine: self.demo_engine.clone(),
            postgres: Databases {
                users: self.backing.databases.users_service.clone(),
                people_task: self.backing.databases.people_task_service.clone(),
                admin: self.backing.admin_url.clone(),
            },
            amqp: self.backing.amqp.clone(),
            processes: self.processes.iter().filter_map(entry).collect(),
        }
    }
}

/// Stops all that runs in a workspace. Returns the number of processes, and whether servers ran.
pub fn stop(workspace: &Workspace) -> anyhow::Result<(usize, bool)> {
    let stopped = process::stop_all(workspace);
    let mut servers_ran = false;
    let servers = match Servers::find(&workspace.servers()) {
        Ok(Some(servers)) => {
            servers_ran = servers.postgres.is_running() || servers.rabbitmq.is_running();
            servers.stop(Stop::Graceful)
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    let stopped = stopped?;
    servers?;
    Stack::remove(workspace);
    Ok((stopped, servers_ran))
}

fn find_programs(workspace: &Workspace, options: &Options<'_>) -> anyhow::Result<Programs> {
    let found = match options.source {
        Source::Build(profile) => programs::build(workspace, profile)?,
        Source::Folder(folder) => programs::find(folder)?,
        Source::Copied(programs) => return Ok(programs.clone()),
    };
    match options.layout {
        Some(_) => programs::copy(workspace, found),
        None => Ok(found),
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, anyhow::Result<T>>) -> anyhow::Result<T> {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Creates an empty log for each process, and follows the logs if they are to be shown.
fn prepare_logs(workspace: &Workspace, plan: &Plan, show: bool) -> anyhow::Result<Option<Stream>> {
    let mut logs = Vec::new();
    for process in &plan.processes {
        let log = workspace.log(&process.name);
        if let Some(folder) = log.parent() {
            private::create_folder(folder)?;
        }
        private::truncate(&log)?;
        logs.push((process.name.clone(), log));
    }
    Ok(show.then(|| Stream::follow(logs)))
}

/// For a tool's own system a free port, otherwise that of the option or of `LISTEN_ADDRESS`, the default one, or a free one.
fn gateway_port(options: &Options<'_>) -> anyhow::Result<u16> {
    if options.layout.is_some() {
        let [port] = ports::free()?;
        return Ok(port);
    }
    let port_of = |address: String| {
        let port = address.rsplit_once(':');
        let port = port.and_then(|(_, port)| port.parse().ok());
        port.with_context(|| format!("LISTEN_ADDRESS={address} has no port"))
    };
    let from_variable = env::var("LISTEN_ADDRESS").ok().map(port_of).transpose()?;
    if let Some(port) = options.port.or(from_variable).filter(|port| *port != 0) {
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
