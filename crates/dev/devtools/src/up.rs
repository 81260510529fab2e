//! `cargo xtask up` starts the system, and `cargo xtask down` stops it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use local_stack::tail;
use rig::paint::{BOLD, CYAN, GREEN, RED};
use rig::{
    Client, Options, Profile, Source, Stack, System, Workspace, instance, interrupt, outln,
    parse_replicas, say,
};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Return once everything is ready. `cargo xtask down` stops it.
    #[arg(long)]
    detach: bool,
    /// Build and run with optimisations.
    #[arg(long)]
    release: bool,
    /// The gateway's port. The default is 8080, or a free port if that is taken.
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Run a process several times, as in `--replicas webhook-worker=3`. Can be repeated.
    #[arg(long, value_name = "PROCESS=N", value_parser = parse_replicas)]
    replicas: Vec<(String, usize)>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    // Without the lock, a system that another `up` is starting would look like the rest of an interrupted run.
    let lock = workspace.lock("up")?;
    if let Some(outcome) = already_up(&workspace)? {
        return Ok(outcome);
    }
    interrupt::watch()?;
    let profile = if arguments.release {
        Profile::Image
    } else {
        Profile::Dev
    };
    let options = Options {
        port: arguments.port,
        replicas: arguments.replicas.iter().cloned().collect(),
        show_logs: !arguments.detach,
        ..Options::usual(Source::Build(profile))
    };
    let system = System::up(&workspace, &options)?;
    drop(lock);
    print_summary(&system.stack());
    if arguments.detach {
        outln!("Stop it with {BOLD}cargo xtask down{BOLD:#}.");
        return Ok(ExitCode::SUCCESS);
    }
    outln!("Stop it with {BOLD}Ctrl-C{BOLD:#}.\n");
    let outcome = watch(&system);
    say("stopping");
    rig::stop_system(&workspace)?;
    // Prints the remaining lines of the logs.
    drop(system);
    say("stopped; the data is in .local");
    Ok(outcome)
}

/// Checks whether a system is running. Does nothing if it is ready, and stops the rest of an interrupted run.
/// Returns `None` if a system can be started.
fn already_up(workspace: &Workspace) -> anyhow::Result<Option<ExitCode>> {
    let stack = Stack::read(workspace)?;
    let alive = instance::processes(workspace)?;
    let Some(stack) = stack else {
        if !alive.is_empty() {
            say("stopping the processes of an interrupted run");
            rig::stop_system(workspace)?;
        }
        return Ok(None);
    };
    if alive.is_empty() {
        // The file is stale, for example after a restart of the machine. Other processes may have the ports now.
        Stack::remove(workspace);
        return Ok(None);
    }
    let unready: Vec<&str> = stack
        .processes
        .iter()
        .filter(|process| !Client::of_process(&process.metrics).is_ready())
        .map(|process| process.name.as_str())
        .collect();
    if unready.is_empty() {
        say("already up");
        print_summary(&stack);
        return Ok(Some(ExitCode::SUCCESS));
    }
    outln!(
        "{RED}error:{RED:#} the system is up, but not ready: {}. See .local/log, or run `cargo xtask down` first.",
        unready.join(", ")
    );
    Ok(Some(ExitCode::FAILURE))
}

/// Watches the system until it should stop or all processes have ended.
fn watch(system: &System) -> ExitCode {
    let is_up = || Stack::path(&system.workspace).exists();
    let mut alive: Vec<_> = system.processes.iter().collect();
    loop {
        interrupt::sleep_until(Instant::now() + Duration::from_millis(200));
        if interrupt::came() {
            return ExitCode::SUCCESS;
        }
        if !is_up() {
            say("stopped by `cargo xtask down`");
            return ExitCode::SUCCESS;
        }
        alive.retain(|process| {
            let is_alive = process.is_alive();
            if !is_alive && is_up() && !interrupt::came() {
                let name = &process.name;
                let log = system.workspace.log(name);
                let (end, log) = (tail(&log, 10), log.display());
                outln!("{RED}{name} ended; the end of {log}:{RED:#}\n{end}");
            }
            is_alive
        });
        if alive.is_empty() {
            outln!("{RED}all processes have ended{RED:#}");
            return ExitCode::FAILURE;
        }
    }
}

fn print_summary(stack: &Stack) {
    let Stack { gateway, admin, .. } = stack;
    let line = |name: &str, value: &str| outln!("  {name:14} {CYAN}{value}{CYAN:#}");
    outln!("\n{GREEN}Countersign is up{GREEN:#}");
    line("gateway", gateway);
    line("dashboard", &format!("{gateway}/tasks"));
    line("documentation", &format!("{gateway}/docs"));
    line("demo engine", &format!("{}/received", stack.demo_engine));
    line("administrator", &admin.username);
    line("password", &admin.password);
    outln!(
        include_str!("try_it.txt"),
        gateway = gateway,
        user = admin.username,
        password = admin.password
    );
}

/// Stops the processes, then the servers. Some of them may have ended already.
pub(crate) fn stop() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    // First, so that a watching `up` knows that the processes are being stopped.
    Stack::remove(&workspace);
    match rig::stop_system(&workspace)? {
        (0, false) => say("nothing was running"),
        (count, _) => say(&format!(
            "stopped {count} processes and the servers; the data is in .local"
        )),
    }
    Ok(ExitCode::SUCCESS)
}
