//! Which processes run, in which order, with which settings.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use local_stack::{RoleUrls, ports};

use crate::{
    environment::{MARKER, Variables},
    secrets::Secrets,
    workspace::Workspace,
};

/// The packages whose programs run.
pub(crate) const PACKAGES: [&str; 4] = [
    "demo-engine",
    "user-service",
    "people-task-service",
    "gateway",
];

/// Loopback and private networks: here the flow engine runs beside us. Link-local stays refused.
const WEBHOOK_NETWORKS: &str =
    "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7";

/// How often each program runs, by its name. A program that is not named runs once.
pub type Replicas = BTreeMap<String, usize>;

/// The programs in the order in which they start; those of one stage start together.
const PROGRAMS: [(&str, Kind, u8); 7] = [
    ("demo-engine", Kind::Engine, 0),
    ("user-service", Kind::Service, 0),
    ("people-task-service", Kind::Service, 1),
    ("deletion-worker", Kind::Worker, 1),
    ("notification-worker", Kind::Worker, 1),
    ("webhook-worker", Kind::Worker, 1),
    ("gateway", Kind::Gateway, 2),
];

/// The stage after which everything runs.
pub(crate) const LAST_STAGE: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gateway,
    Service,
    Worker,
    Engine,
}

/// Where the servers are.
#[derive(Debug, Clone)]
pub struct Backing {
    /// The database URLs of the services' roles.
    pub databases: RoleUrls,
    /// RabbitMQ's URL.
    pub amqp: String,
}

/// One process to start.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The program's name; that of its second replica ends in `-2`.
    pub name: String,
    /// The program that the process runs.
    pub program: &'static str,
    /// Processes of a stage start together, when those of the stage before are ready.
    pub stage: u8,
    /// Its public or internal API.
    pub url: Option<String>,
    /// Where `/readyz` and `/metrics` are.
    pub metrics: String,
    /// Its environment.
    pub variables: Variables,
}

/// All processes, and the addresses by which they know each other.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first gateway's URL.
    pub gateway: String,
    /// The demo engine's URL.
    pub demo_engine: String,
    /// The first administrator's username.
    pub admin_username: String,
    /// The first administrator's password.
    pub admin_password: String,
    /// All processes, in the order in which they start.
    pub processes: Vec<Planned>,
}

/// Reads `process=n`.
pub fn parse_replicas(text: &str) -> anyhow::Result<(String, usize)> {
    let (name, count) = text
        .split_once('=')
        .context("it is not of the form process=number")?;
    let Some((_, kind, _)) = PROGRAMS.iter().find(|(program, ..)| *program == name) else {
        let known: Vec<&str> = PROGRAMS.iter().map(|(program, ..)| *program).collect();
        bail!("there is no process {name}; there are {}", known.join(", "));
    };
    let count: usize = count
        .parse()
        .with_context(|| format!("{count} is not a number"))?;
    ensure!((1..=20).contains(&count), "a process runs 1 to 20 times");
    ensure!(
        *kind != Kind::Engine || count == 1,
        "the demo engine keeps what it received in memory and runs once"
    );
    Ok((name.to_owned(), count))
}

impl Plan {
    /// `gateway_port` is that of the first gateway; every other port is a free one.
    pub fn new(
        workspace: &Workspace,
        replicas: &Replicas,
        gateway_port: u16,
        secrets: &Secrets,
        backing: &Backing,
    ) -> anyhow::Result<Self> {
        let mut processes = places(replicas, gateway_port)?;
        let url_of = |processes: &[Planned], program: &str, replica: usize| {
            let urls: Vec<String> = processes
                .iter()
                .filter(|one| one.program == program)
                .filter_map(|one| one.url.clone())
                .collect();
            // Callers spread over the replicas: the second gateway asks the second user service.
            urls.get(replica % urls.len().max(1))
                .cloned()
                .unwrap_or_default()
        };
        let facts = processes.clone();
        let given =
            |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let plan = Self {
            gateway: url_of(&facts, "gateway", 0),
            demo_engine: url_of(&facts, "demo-engine", 0),
            admin_username: given("ADMIN_USERNAME", "admin@countersign.local"),
            admin_password: given("ADMIN_PASSWORD", &secrets.admin_password),
            processes: Vec::new(),
        };
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for process in &mut processes {
            let replica = seen.entry(process.program).or_default();
            let users = url_of(&facts, "user-service", *replica);
            let tasks = url_of(&facts, "people-task-service", *replica);
            *replica += 1;
            process.variables.insert("LOG_FORMAT", "text".to_owned());
            process
                .variables
                .insert(MARKER, workspace.local().display().to_string());
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
                (
                    "PEOPLE_TASKS_DASHBOARD_URL",
                    format!("{}/tasks", self.gateway),
                ),
                (
                    "WEBHOOK_SIGNING_KEY_FILE",
                    secrets.webhook_signing_key.display().to_string(),
                ),
            ],
            _ => self.user_side(tasks, secrets, backing),
        }
    }

    /// The user service and its workers.
    fn user_side(
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
            (
                "TOKEN_SIGNING_KEY_FILE",
                secrets.token_signing_key.display().to_string(),
            ),
            ("ADMIN_USERNAME", self.admin_username.clone()),
            ("ADMIN_PASSWORD", self.admin_password.clone()),
            ("FLOW_ENGINE_URL", demo_engine.clone()),
            ("FLOW_ENGINE_TOKEN", secrets.engine_token.clone()),
            (
                "WEBHOOK_USER_FORGOT_PASSWORD",
                format!("{demo_engine}/forgot-password"),
            ),
            ("FORGOT_PASSWORD_LOG", "true".to_owned()),
            // Everybody here has the same client address.
            ("FORGOT_PASSWORD_PER_CLIENT", "0".to_owned()),
            (
                "VERIFY_EMAIL_URL",
                format!("{gateway}/verify-email?code={{{{code}}}}"),
            ),
            (
                "FORGOT_PASSWORD_URL",
                format!("{gateway}/reset-password?code={{{{code}}}}"),
            ),
        ]
    }
}

/// Every process with its name and ports, and nothing else yet.
fn places(replicas: &Replicas, gateway_port: u16) -> anyhow::Result<Vec<Planned>> {
    let named = names(replicas);
    let free = ports::several(named.len() * 2)?;
    let mut free = free.into_iter().filter(|port| *port != gateway_port);
    let mut wishes = vec![gateway_port];
    let places = named.into_iter().map(|(name, program, kind, stage)| {
        let wish = if kind == Kind::Gateway {
            wishes.pop()
        } else {
            None
        };
        let api = if kind == Kind::Worker {
            None
        } else {
            wish.or_else(|| free.next())
        };
        let metrics = if kind == Kind::Engine {
            None
        } else {
            free.next()
        };
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
    places.collect()
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
    fn replicas_are_checked() {
        assert_eq!(
            parse_replicas("gateway=2").unwrap(),
            ("gateway".to_owned(), 2)
        );
        for wrong in [
            "gateway",
            "gateway=0",
            "gateway=x",
            "nobody=1",
            "demo-engine=2",
        ] {
            assert!(parse_replicas(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn replicas_get_names_and_ports_of_their_own() {
        let places = places(&Replicas::from([("gateway".to_owned(), 2)]), 8080).unwrap();
        assert_eq!(places.len(), 8);
        let gateways: Vec<&Planned> = places
            .iter()
            .filter(|one| one.program == "gateway")
            .collect();
        assert_eq!(gateways[0].name, "gateway");
        assert_eq!(gateways[0].url.as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(gateways[1].name, "gateway-2");
        assert_ne!(gateways[0].url, gateways[1].url);
        let worker = places
            .iter()
            .find(|one| one.name == "webhook-worker")
            .unwrap();
        assert_eq!(worker.url, None);
        let engine = places.iter().find(|one| one.name == "demo-engine").unwrap();
        assert_eq!(engine.url.as_deref(), Some(engine.metrics.as_str()));
    }
}
