//! The processes of a system, their order, ports and settings.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::{Context, bail, ensure};
use local_stack::ports;

use crate::backing::Backing;
use crate::instance::{self, MARKER, Variables};
use crate::output::say;
use crate::process::Process;
use crate::secrets::Secrets;
use crate::stack_file::Admin;
use crate::workspace::Workspace;

/// The packages whose programs run.
pub(crate) const PACKAGES: [&str; 3] = ["demo-engine", ALL_SERVICES, "gateway"];

/// The program of both services and all workers.
pub(crate) const ALL_SERVICES: &str = "all-services";

const DEFAULT_PORT: u16 = 8080;

/// Loopback and private networks, where the flow engine of a development system runs.
const WEBHOOK_NETWORKS: &str =
    "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7";

/// Loopback, where flow engines run that are tried with a development system.
const ENGINE_ORIGINS: &str =
    "http://127.0.0.1:*,http://localhost:*,http://[::1]:*,https://127.0.0.1:*,https://localhost:*";

/// The number of processes of each program. The default is one.
pub type Replicas = BTreeMap<String, usize>;

/// The programs in the order in which they start. Those of one stage start together.
const PROGRAMS: [(&str, u8); 7] = [
    (ENGINE, 0),
    ("user-service", 0),
    ("people-task-service", 1),
    ("deletion-worker", 1),
    ("notification-worker", 1),
    ("webhook-worker", 1),
    (GATEWAY, 2),
];

const ENGINE: &str = "demo-engine";
const GATEWAY: &str = "gateway";

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().map(|(name, _)| name)
}

/// The names by which [`ALL_SERVICES`] is started.
pub(crate) fn names_of_services() -> impl Iterator<Item = &'static str> {
    names().filter(|name| ![ENGINE, GATEWAY].contains(name))
}

/// Parses `process=n`.
pub fn parse_replicas(text: &str) -> anyhow::Result<(String, usize)> {
    let (name, count) = text.split_once('=').context("expected process=number")?;
    if !names().any(|program| program == name) {
        let known = PROGRAMS.map(|(program, _)| program).join(", ");
        bail!("there is no process {name}; expected one of {known}");
    }
    let count: usize = count
        .parse()
        .with_context(|| format!("{count} is not a number"))?;
    ensure!((1..=20).contains(&count), "expected a number from 1 to 20");
    ensure!(
        name != ENGINE || count == 1,
        "the demo engine can run only once, because it keeps what it received in memory"
    );
    Ok((name.to_owned(), count))
}

/// Returns all processes of a system whose first gateway has `gateway_port`, with their settings. All other ports are free
/// ones.
pub(crate) fn processes(
    workspace: &Workspace,
    replicas: &Replicas,
    gateway_port: u16,
    backing: &Backing,
) -> anyhow::Result<Vec<Process>> {
    let mut processes = assign_ports(replicas, gateway_port)?;
    let mark = instance::mark(workspace)?;
    let urls: Vec<_> = processes
        .iter()
        .filter_map(|process| Some((process.program, process.url.clone()?)))
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for process in &mut processes {
        let replica = counts.entry(process.program).or_default();
        // The second gateway calls the second user service. People know only the first gateway.
        let number = |program: &str| if program == "gateway" { 0 } else { *replica };
        let url = |program: &str| {
            let same = urls.iter().filter(|(name, _)| *name == program);
            let mut same = same.map(|(_, url)| url.clone()).cycle();
            same.nth(number(program)).unwrap_or_default()
        };
        process
            .variables
            .extend(settings(process.program, &url, backing));
        process.variables.extend([
            ("LOG_FORMAT", "text".to_owned()),
            (MARKER, mark.clone()),
            // As in `deploy/Dockerfile`, so that processes need as much memory as in containers.
            ("MALLOC_MMAP_THRESHOLD_", "65536".to_owned()),
            ("MALLOC_TRIM_THRESHOLD_", "131072".to_owned()),
        ]);
        *replica += 1;
    }
    Ok(processes)
}

/// The port that was asked for, the default one, or a free one.
pub(crate) fn gateway_port(asked: Option<u16>) -> anyhow::Result<u16> {
    if let Some(port) = asked.filter(|port| *port != 0) {
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

/// The first administrator, unless the environment names another one.
pub(crate) fn admin(secrets: &Secrets) -> Admin {
    let given =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    Admin {
        username: given("ADMIN_USERNAME", "admin@countersign.local"),
        password: given("ADMIN_PASSWORD", &secrets.admin_password),
    }
}

/// The settings of a program. `url` is that of another program, as its replica reaches it.
fn settings(
    program: &str,
    url: &dyn Fn(&str) -> String,
    backing: &Backing,
) -> Vec<(&'static str, String)> {
    let secrets = &backing.secrets;
    let users = ("USER_SERVICE_URL", url("user-service"));
    let tasks = ("PEOPLE_TASK_SERVICE_URL", url("people-task-service"));
    let mut settings = match program {
        "gateway" => return vec![users, tasks],
        "demo-engine" => return vec![("DEMO_ENGINE_TOKEN", secrets.engine_token.clone())],
        "people-task-service" | "webhook-worker" => {
            let key = secrets.webhook_signing_key.display().to_string();
            let databases = &backing.databases;
            vec![
                users,
                ("DATABASE_URL", databases.people_task_service.clone()),
                ("DATABASE_OWNER_URL", databases.people_task_owner.clone()),
                ("WEBHOOK_SIGNING_KEY_FILE", key),
                ("WEBHOOK_HEADER_KEYS", secrets.webhook_header_keys.clone()),
                ("WEBHOOK_ENGINE_ORIGINS", ENGINE_ORIGINS.to_owned()),
            ]
        }
        _ => user_settings(tasks, &url("demo-engine"), backing),
    };
    settings.extend([
        ("AMQP_URL", backing.amqp.clone()),
        ("WEBHOOK_ALLOWED_NETWORKS", WEBHOOK_NETWORKS.to_owned()),
        ("PUBLIC_URL", url("gateway")),
        ("TASK_MAIL_KEY", secrets.task_mail_key.clone()),
    ]);
    settings
}

fn user_settings(
    tasks: (&'static str, String),
    engine: &str,
    backing: &Backing,
) -> Vec<(&'static str, String)> {
    let secrets = &backing.secrets;
    let key = secrets.token_signing_key.display().to_string();
    let Admin { username, password } = admin(secrets);
    vec![
        tasks,
        ("DATABASE_URL", backing.databases.users_service.clone()),
        ("DATABASE_OWNER_URL", backing.databases.users_owner.clone()),
        ("TOKEN_SIGNING_KEY_FILE", key),
        ("ADMIN_USERNAME", username),
        ("ADMIN_PASSWORD", password),
        ("FLOW_ENGINE_URL", engine.to_owned()),
        ("FLOW_ENGINE_TOKEN", secrets.engine_token.clone()),
        (
            "WEBHOOK_USER_FORGOT_PASSWORD",
            format!("{engine}/forgot-password"),
        ),
        ("FORGOT_PASSWORD_LOG", "true".to_owned()),
        // All clients of a development system have the same address.
        ("FORGOT_PASSWORD_PER_CLIENT", "0".to_owned()),
    ]
}

fn assign_ports(replicas: &Replicas, gateway_port: u16) -> anyhow::Result<Vec<Process>> {
    let mut processes = Vec::new();
    let count = PROGRAMS.len() + replicas.values().sum::<usize>();
    let free = ports::several(count * 2)?;
    let mut free = free.into_iter().filter(|port| *port != gateway_port);
    let mut first_gateway = Some(gateway_port);
    for (program, stage) in PROGRAMS {
        for replica in 1..=replicas.get(program).copied().unwrap_or(1) {
            let api = match program {
                GATEWAY => first_gateway.take().or_else(|| free.next()),
                worker if worker.ends_with("-worker") => None,
                _ => free.next(),
            };
            let metrics = (program != ENGINE).then(|| free.next()).flatten();
            let mut variables = Variables::new();
            let mut listen = |name, port: u16| {
                variables.insert(name, format!("127.0.0.1:{port}"));
                format!("http://127.0.0.1:{port}")
            };
            let url = api.map(|port| listen("LISTEN_ADDRESS", port));
            let metrics = metrics.map(|port| listen("METRICS_ADDRESS", port));
            let metrics = metrics.or_else(|| url.clone());
            processes.push(Process {
                name: match replica {
                    1 => program.to_owned(),
                    _ => format!("{program}-{replica}"),
                },
                program,
                stage,
                url,
                metrics: metrics.context("too few free ports")?,
                variables,
                fault_lock: Mutex::default(),
                identity: Mutex::default(),
            });
        }
    }
    Ok(processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_replicas_refuses_unknown_processes_and_wrong_numbers() {
        assert_eq!(
            parse_replicas("gateway=2").unwrap(),
            ("gateway".to_owned(), 2)
        );
        for wrong in [
            "gateway",
            "gateway=0",
            "gateway=x",
            "unknown=1",
            "demo-engine=2",
        ] {
            assert!(parse_replicas(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn replicas_have_different_names_and_ports() {
        let processes = assign_ports(&Replicas::from([("gateway".to_owned(), 2)]), 8080).unwrap();
        assert_eq!(processes.len(), 8);
        let gateways: Vec<&Process> = processes
            .iter()
            .filter(|one| one.program == "gateway")
            .collect();
        assert_eq!(gateways[0].name, "gateway");
        assert_eq!(gateways[0].url.as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(gateways[1].name, "gateway-2");
        assert_ne!(gateways[0].url, gateways[1].url);
        let worker = processes
            .iter()
            .find(|one| one.name == "webhook-worker")
            .unwrap();
        assert_eq!(worker.url, None);
        let engine = processes
            .iter()
            .find(|one| one.name == "demo-engine")
            .unwrap();
        assert_eq!(engine.url.as_deref(), Some(engine.metrics.as_str()));
    }
}
