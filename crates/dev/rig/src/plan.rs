//! The processes of a system, their order, ports and settings.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use local_stack::ports;

use crate::{
    backing::Backing,
    environment::{MARKER, Variables},
    instance,
    secrets::Secrets,
    stack_file::Admin,
    workspace::Workspace,
};

/// The packages whose programs run.
pub const PACKAGES: [&str; 3] = ["demo-engine", ALL_SERVICES, "gateway"];

/// The program of both services and all workers.
pub const ALL_SERVICES: &str = "all-services";

/// Loopback and private networks, where the flow engine of a development system runs.
const WEBHOOK_NETWORKS: &str =
    "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7";

/// Settings of the C library, as in `deploy/Dockerfile`, so that processes need as much memory as in containers.
const MALLOC_THRESHOLDS: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "65536"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// The number of processes of each program. The default is one.
pub type Replicas = BTreeMap<String, usize>;

/// The programs in the order in which they start. Those of one stage start together.
const PROGRAMS: [(&str, Kind, u8); 7] = [
    ("demo-engine", Kind::Engine, 0),
    ("user-service", Kind::Service, 0),
    ("people-task-service", Kind::Service, 1),
    ("deletion-worker", Kind::Worker, 1),
    ("notification-worker", Kind::Worker, 1),
    ("webhook-worker", Kind::Worker, 1),
    ("gateway", Kind::Gateway, 2),
];

/// The names by which [`ALL_SERVICES`] is started.
pub fn names_of_services() -> impl Iterator<Item = &'static str> {
    let programs = PROGRAMS.into_iter();
    let services = programs.filter(|(_, kind, _)| matches!(kind, Kind::Service | Kind::Worker));
    services.map(|(name, ..)| name)
}

/// The last stage.
pub const LAST_STAGE: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gateway,
    Service,
    Worker,
    Engine,
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The name of the program. That of the second replica ends in `-2`.
    pub name: String,
    /// The program that the process runs.
    pub program: &'static str,
    /// Processes of a stage start together, when those of the previous stage are ready.
    pub stage: u8,
    /// The URL of its API. `None` for workers.
    pub url: Option<String>,
    /// The base URL of `/readyz` and `/metrics`.
    pub metrics: String,
    /// Its environment.
    pub variables: Variables,
}

/// All processes of a system.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first gateway's URL.
    pub gateway: String,
    /// The demo engine's URL.
    pub demo_engine: String,
    /// The first administrator.
    pub admin: Admin,
    /// All processes, in the order in which they start.
    pub processes: Vec<Planned>,
}

/// Parses `process=n`.
pub fn parse_replicas(text: &str) -> anyhow::Result<(String, usize)> {
    let (name, count) = text.split_once('=').context("expected process=number")?;
    let Some((_, kind, _)) = PROGRAMS.iter().find(|(program, ..)| *program == name) else {
        let known: Vec<&str> = PROGRAMS.iter().map(|(program, ..)| *program).collect();
        bail!(
            "there is no process {name}; expected one of {}",
            known.join(", ")
        );
    };
    let count: usize = count
        .parse()
        .with_context(|| format!("{count} is not a number"))?;
    ensure!((1..=20).contains(&count), "expected a number from 1 to 20");
    ensure!(
        *kind != Kind::Engine || count == 1,
        "the demo engine can run only once, because it keeps what it received in memory"
    );
    Ok((name.to_owned(), count))
}

impl Plan {
    /// Plans a system whose first gateway has `gateway_port`. All other ports are free ones.
    pub fn new(
        workspace: &Workspace,
        replicas: &Replicas,
        gateway_port: u16,
        secrets: &Secrets,
        backing: &Backing,
    ) -> anyhow::Result<Self> {
        let mut processes = assign_ports(replicas, gateway_port)?;
        let urls = Urls::of(&processes);
        let given =
            |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let plan = Self {
            gateway: urls.get("gateway", 0),
            demo_engine: urls.get("demo-engine", 0),
            admin: Admin {
                username: given("ADMIN_USERNAME", "admin@countersign.local"),
                password: given("ADMIN_PASSWORD", &secrets.admin_password),
            },
            processes: Vec::new(),
        };
        let mark = instance::mark(workspace)?;
        let mut replicas: BTreeMap<&str, usize> = BTreeMap::new();
        for process in &mut processes {
            let replica = replicas.entry(process.program).or_default();
            let users = urls.get("user-service", *replica);
            let tasks = urls.get("people-task-service", *replica);
            *replica += 1;
            process.variables.insert("LOG_FORMAT", "text".to_owned());
            process
                .variables
                .extend(MALLOC_THRESHOLDS.map(|(name, value)| (name, value.to_owned())));
            process.variables.insert(MARKER, mark.clone());
            process.variables.extend(plan.variables(
                process.program,
                &users,
                &tasks,
                secrets,
                backing,
            ));
        }
        Ok(Self { processes, ..plan })
    }

    /// Adds settings to all processes.
    pub fn set_all(&mut self, settings: &[(&'static str, &str)]) {
        for process in &mut self.processes {
            let settings = settings.iter();
            let settings = settings.map(|(name, value)| (*name, (*value).to_owned()));
            process.variables.extend(settings);
        }
    }

    fn variables(
        &self,
        program: &str,
        users: &str,
        tasks: &str,
        secrets: &Secrets,
        backing: &Backing,
    ) -> Vec<(&'static str, String)> {
        match program {
            "gateway" => {
                vec![
                    ("USER_SERVICE_URL", users.to_owned()),
                    ("PEOPLE_TASK_SERVICE_URL", tasks.to_owned()),
                ]
            }
            "demo-engine" => vec![("DEMO_ENGINE_TOKEN", secrets.engine_token.clone())],
            "people-task-service" | "webhook-worker" => vec![
                ("AMQP_URL", backing.amqp.clone()),
                ("WEBHOOK_ALLOWED_NETWORKS", WEBHOOK_NETWORKS.to_owned()),
                (
                    "DATABASE_URL",
                    backing.databases.people_task_service.clone(),
                ),
                (
                    "DATABASE_OWNER_URL",
                    backing.databases.people_task_owner.clone(),
                ),
                ("USER_SERVICE_URL", users.to_owned()),
                ("PUBLIC_URL", self.gateway.clone()),
                ("TASK_MAIL_KEY", secrets.task_mail_key.clone()),
                (
                    "WEBHOOK_SIGNING_KEY_FILE",
                    secrets.webhook_signing_key.display().to_string(),
                ),
            ],
            _ => self.user_variables(tasks, secrets, backing),
        }
    }

    /// Returns the variables of the user service and its workers.
    fn user_variables(
        &self,
        tasks: &str,
        secrets: &Secrets,
        backing: &Backing,
    ) -> Vec<(&'static str, String)> {
        let Self {
            gateway,
            demo_engine,
            ..
        } = self;
        vec![
            ("AMQP_URL", backing.amqp.clone()),
            ("WEBHOOK_ALLOWED_NETWORKS", WEBHOOK_NETWORKS.to_owned()),
            ("DATABASE_URL", backing.databases.users_service.clone()),
            ("DATABASE_OWNER_URL", backing.databases.users_owner.clone()),
            ("PEOPLE_TASK_SERVICE_URL", tasks.to_owned()),
            ("TASK_MAIL_KEY", secrets.task_mail_key.clone()),
            (
                "TOKEN_SIGNING_KEY_FILE",
                secrets.token_signing_key.display().to_string(),
            ),
            ("ADMIN_USERNAME", self.admin.username.clone()),
            ("ADMIN_PASSWORD", self.admin.password.clone()),
            ("FLOW_ENGINE_URL", demo_engine.clone()),
            ("FLOW_ENGINE_TOKEN", secrets.engine_token.clone()),
            (
                "WEBHOOK_USER_FORGOT_PASSWORD",
                format!("{demo_engine}/forgot-password"),
            ),
            ("FORGOT_PASSWORD_LOG", "true".to_owned()),
            // All clients of a development system have the same address.
            ("FORGOT_PASSWORD_PER_CLIENT", "0".to_owned()),
            ("PUBLIC_URL", gateway.clone()),
        ]
    }
}

/// The URLs of the processes, by program.
struct Urls(BTreeMap<&'static str, Vec<String>>);

impl Urls {
    fn of(processes: &[Planned]) -> Self {
        let mut urls: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for process in processes {
            urls.entry(process.program)
                .or_default()
                .extend(process.url.clone());
        }
        Self(urls)
    }

    /// Returns the URL that a caller's replica uses. The second gateway calls the second user service.
    fn get(&self, program: &str, replica: usize) -> String {
        let mut urls = self.0.get(program).into_iter().flatten().cycle();
        urls.nth(replica).cloned().unwrap_or_default()
    }
}

/// Returns all processes with their names and ports.
fn assign_ports(replicas: &Replicas, gateway_port: u16) -> anyhow::Result<Vec<Planned>> {
    let named = names(replicas);
    let free = ports::several(named.len() * 2)?;
    let mut free = free.into_iter().filter(|port| *port != gateway_port);
    let mut first_gateway = Some(gateway_port);
    let processes = named.into_iter().map(|(name, program, kind, stage)| {
        let api = match kind {
            Kind::Worker => None,
            Kind::Gateway => first_gateway.take().or_else(|| free.next()),
            Kind::Service | Kind::Engine => free.next(),
        };
        let metrics = (kind != Kind::Engine).then(|| free.next()).flatten();
        let mut variables = Variables::new();
        let mut listen = |name, port: u16| {
            variables.insert(name, format!("127.0.0.1:{port}"));
            format!("http://127.0.0.1:{port}")
        };
        let url = api.map(|port| listen("LISTEN_ADDRESS", port));
        let metrics = metrics.map(|port| listen("METRICS_ADDRESS", port));
        let metrics = metrics
            .or_else(|| url.clone())
            .context("too few free ports")?;
        Ok(Planned {
            name,
            program,
            stage,
            url,
            metrics,
            variables,
        })
    });
    processes.collect()
}

fn names(replicas: &Replicas) -> Vec<(String, &'static str, Kind, u8)> {
    let mut named = Vec::new();
    for (program, kind, stage) in PROGRAMS {
        for replica in 1..=replicas.get(program).copied().unwrap_or(1) {
            let name = if replica == 1 {
                program.to_owned()
            } else {
                format!("{program}-{replica}")
            };
            named.push((name, program, kind, stage));
        }
    }
    named
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
        let gateways: Vec<&Planned> = processes
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
