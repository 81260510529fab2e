//! Starting the whole system, and stopping it.

use std::{
    collections::BTreeMap,
    env, fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use local_stack::{
    Durability, Options, Parts, RoleUrls, Servers, Stop, bootstrap,
    packages::{self, Need},
    ports,
    process::{Detached, Identity, tail, wait_until},
    with_database,
};

use crate::{
    environment::{self, Variables},
    http,
    interrupt::Interrupt,
    paint,
    plan::{Backing, LAST_STAGE, PACKAGES, Plan, Planned, Replicas},
    processes,
    secrets::Secrets,
    stack_file::{Admin, Databases, Entry, Stack},
    stream::Stream,
    workspace::Workspace,
};

const READY_LIMIT: Duration = Duration::from_secs(90);
const DEFAULT_PORT: u16 = 8080;
const DATABASE: &str = "countersign";

/// How the system is to run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) release: bool,
    /// The gateway's port, and nothing else will do.
    pub(crate) port: Option<u16>,
    pub(crate) replicas: Replicas,
    /// Settings of every process that differ from the usual ones.
    pub(crate) settings: Variables,
    /// Whether the logs are shown while it starts and runs.
    pub(crate) show_logs: bool,
}

/// The system, running.
pub(crate) struct Running {
    pub(crate) stack: Stack,
    pub(crate) processes: Vec<(Planned, Identity)>,
    pub(crate) stream: Option<Stream>,
}

/// Starts everything and waits until it is ready. Whatever goes wrong, nothing is left running.
pub(crate) fn start(
    workspace: &Workspace,
    wishes: &Wishes,
    interrupt: &Interrupt,
) -> anyhow::Result<Running> {
    let started = start_all(workspace, wishes, interrupt);
    if started.is_err() {
        stop(workspace)?;
    }
    started
}

/// Stops everything, whatever is left of it.
pub(crate) fn stop(workspace: &Workspace) -> anyhow::Result<()> {
    let stopped = processes::stop_all(workspace, &say);
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

/// Prints a line about what a command is doing.
pub fn say(text: &str) {
    outln!("{} {text}", paint::dim("==>"));
}

fn start_all(
    workspace: &Workspace,
    wishes: &Wishes,
    interrupt: &Interrupt,
) -> anyhow::Result<Running> {
    let gateway_port = gateway_port(wishes.port)?;
    let (parts, database_url, amqp_url) = what_is_given();
    let mut needs = vec![Need::ClientLibrary, Need::Psql];
    needs.extend(parts.map_or(&[][..], Parts::needs));
    packages::ensure(&needs, &say)?;
    interrupt.check()?;

    let programs = build(workspace, wishes.release)?;
    interrupt.check()?;

    let secrets = Secrets::prepare(workspace)?;
    let (backing, admin_url) = back(workspace, &secrets, parts, database_url, amqp_url)?;
    interrupt.check()?;

    let mut plan = Plan::new(
        workspace,
        &wishes.replicas,
        gateway_port,
        &secrets,
        &backing,
    )?;
    for process in &mut plan.processes {
        process.variables.extend(wishes.settings.clone());
    }
    let stream = prepare_logs(workspace, &plan, wishes.show_logs)?;
    let processes = start_processes(workspace, &plan, &programs, interrupt)?;
    let stack = describe(&plan, &backing, admin_url, &processes);
    stack.write(workspace)?;
    Ok(Running {
        stack,
        processes,
        stream,
    })
}

fn gateway_port(wish: Option<u16>) -> anyhow::Result<u16> {
    let listen_address = env::var("LISTEN_ADDRESS").ok();
    let from_variable = listen_address
        .as_deref()
        .map(|address| {
            let port = address
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse().ok());
            port.with_context(|| format!("LISTEN_ADDRESS={address} has no port"))
        })
        .transpose()?;
    if let Some(port) = wish.or(from_variable).filter(|port| *port != 0) {
        ensure!(ports::is_free(port), "port {port} is taken");
        return Ok(port);
    }
    let port = ports::preferably(DEFAULT_PORT)?;
    if port != DEFAULT_PORT {
        say(&format!(
            "port {DEFAULT_PORT} is taken, so the gateway listens on {port}"
        ));
    }
    Ok(port)
}

/// Which servers are ours to start, and the urls of those that are given.
fn what_is_given() -> (Option<Parts>, Option<String>, Option<String>) {
    let given = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let (database_url, amqp_url) = (given("DATABASE_URL"), given("AMQP_URL"));
    let parts = match (&database_url, &amqp_url) {
        (None, None) => Some(Parts::Both),
        (None, Some(_)) => Some(Parts::Postgres),
        (Some(_), None) => Some(Parts::RabbitMq),
        (Some(_), Some(_)) => None,
    };
    (parts, database_url, amqp_url)
}

/// Builds every program of the system and says where each is.
pub fn build(workspace: &Workspace, release: bool) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    say(if release {
        "building (release)"
    } else {
        "building"
    });
    let start = Instant::now();
    let programs = workspace.build(&PACKAGES, release)?;
    say(&format!("built in {:.1} s", start.elapsed().as_secs_f64()));
    Ok(programs)
}

/// Starts the servers that are ours and prepares the database.
fn back(
    workspace: &Workspace,
    secrets: &Secrets,
    parts: Option<Parts>,
    database_url: Option<String>,
    amqp_url: Option<String>,
) -> anyhow::Result<(Backing, String)> {
    let servers = match parts {
        Some(parts) => {
            say(match parts {
                Parts::Both => "starting Postgres and RabbitMQ",
                Parts::Postgres => "starting Postgres; RabbitMQ is that of AMQP_URL",
                Parts::RabbitMq => "starting RabbitMQ; Postgres is that of DATABASE_URL",
            });
            let options = Options {
                folder: workspace.servers(),
                durability: Durability::Durable,
                parts,
            };
            Some(Servers::start(&options, &say)?.description())
        }
        None => {
            say("Postgres is that of DATABASE_URL, RabbitMQ that of AMQP_URL");
            None
        }
    };
    let (admin_url, passwords) = match (database_url, &servers) {
        (Some(url), _) => (database_of(&url)?, &secrets.external_roles),
        (None, Some(servers)) => (
            servers.postgres.admin_url_of(DATABASE)?,
            &servers.postgres.passwords,
        ),
        (None, None) => bail!("there is no database"),
    };
    let databases: RoleUrls =
        bootstrap::run(&admin_url, passwords).context("preparing the database")?;
    let amqp = amqp_url
        .or_else(|| servers.map(|servers| servers.rabbitmq.amqp_url))
        .context("there is no broker")?;
    Ok((Backing { databases, amqp }, admin_url))
}

/// An administrator's url names the database to use, unless it is the one that every server has.
fn database_of(url: &str) -> anyhow::Result<String> {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split('?').next().unwrap_or_default();
    match path.split_once('/').map(|(_, database)| database) {
        None | Some("" | "postgres") => Ok(with_database(url, DATABASE)?),
        Some(_) => Ok(url.to_owned()),
    }
}

/// Makes an empty log for each process, and follows them if they are to be shown.
pub fn prepare_logs(
    workspace: &Workspace,
    plan: &Plan,
    show: bool,
) -> anyhow::Result<Option<Stream>> {
    let logs: Vec<(String, PathBuf)> = plan
        .processes
        .iter()
        .map(|process| (process.name.clone(), workspace.log(&process.name)))
        .collect();
    for (_, log) in &logs {
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(log, "").with_context(|| format!("emptying {}", log.display()))?;
    }
    Ok(show.then(|| Stream::follow(logs)))
}

/// Starts the processes in the order of their stages, each stage when the one before it is ready.
pub fn start_processes(
    workspace: &Workspace,
    plan: &Plan,
    programs: &BTreeMap<String, PathBuf>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<(Planned, Identity)>> {
    say(&format!("starting {} processes", plan.processes.len()));
    let mut running = Vec::new();
    for stage in 0..=LAST_STAGE {
        let first = running.len();
        for process in plan
            .processes
            .iter()
            .filter(|process| process.stage == stage)
        {
            let identity = spawn(workspace, process, programs)?;
            running.push((process.clone(), identity));
        }
        wait_ready(
            workspace,
            running.get(first..).unwrap_or_default(),
            interrupt,
        )?;
    }
    Ok(running)
}

/// Starts one process, without waiting for it to be ready.
pub fn spawn(
    workspace: &Workspace,
    process: &Planned,
    programs: &BTreeMap<String, PathBuf>,
) -> anyhow::Result<Identity> {
    let program = programs
        .get(process.program)
        .with_context(|| format!("cargo built no program {}", process.program))?;
    let mut detached = Detached::new(program, &workspace.log(&process.name));
    let command = detached.command();
    command.current_dir(workspace.root());
    environment::apply(command, &process.variables);
    Ok(detached.spawn()?)
}

/// Waits until every one of `processes` is ready.
pub(crate) fn wait_ready(
    workspace: &Workspace,
    processes: &[(Planned, Identity)],
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let agent = http::agent(Duration::from_secs(3));
    let end = Instant::now() + READY_LIMIT;
    for (process, identity) in processes {
        let log = workspace.log(&process.name);
        let left = end.saturating_duration_since(Instant::now());
        let ready = wait_until(left, || {
            if interrupt.came() {
                return Some(interrupt.check());
            }
            if !identity.is_alive() {
                return Some(Err(anyhow::anyhow!(
                    "{} ended while it started; the end of {}:\n{}",
                    process.name,
                    log.display(),
                    tail(&log, 20)
                )));
            }
            http::is_ready(&agent, &process.metrics).then_some(Ok(()))
        });
        ready.with_context(|| {
            format!(
                "{} was not ready within {} s and says {}; the end of {}:\n{}",
                process.name,
                READY_LIMIT.as_secs(),
                http::readiness(&agent, &process.metrics),
                log.display(),
                tail(&log, 20)
            )
        })??;
    }
    Ok(())
}

fn describe(
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
        processes: processes
            .iter()
            .map(|(process, identity)| Entry {
                name: process.name.clone(),
                pid: identity.pid,
                url: process.url.clone(),
                metrics: process.metrics.clone(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_external_url_names_its_database_unless_it_is_the_default_one() {
        for (url, expected) in [
            ("postgres://a:b@h:1/mine", "postgres://a:b@h:1/mine"),
            (
                "postgres://a:b@h:1/postgres",
                "postgres://a:b@h:1/countersign",
            ),
            ("postgres://a:b@h:1", "postgres://a:b@h:1/countersign"),
            (
                "postgres://a:b@h/?sslmode=disable",
                "postgres://a:b@h/countersign?sslmode=disable",
            ),
        ] {
            assert_eq!(database_of(url).unwrap(), expected);
        }
    }
}
