//! The system that is broken, with settings that make it break sooner.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::Context;
use local_stack::{
    Durability, Servers, bootstrap,
    packages::{self, Need},
    ports,
    process::Identity,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{
    client::{Call, Client},
    interrupt::Interrupt,
    output::say,
    own_system::{self, Layout},
    plan::{Plan, Planned, Replicas},
    processes, programs,
    secrets::Secrets,
    workspace::Workspace,
};

/// Settings by program.
const SETTINGS: [(&str, &str, &str); 13] = [
    ("gateway", "RATE_LIMIT", "off"),
    ("gateway", "GATEWAY_MAX_IN_FLIGHT", "16"),
    ("gateway", "TRUSTED_PROXIES", "127.0.0.0/8"),
    ("people-task-service", "DATABASE_TIMEOUT", "20s"),
    ("user-service", "FORGOT_PASSWORD_PER_ACCOUNT", "0"),
    ("people-task-service", "DATABASE_POOL_SIZE", "4"),
    ("webhook-worker", "WEBHOOK_TIMEOUT", "1s"),
    ("deletion-worker", "DELETE_MAX_ATTEMPTS", "2"),
    ("deletion-worker", "FLOW_ENGINE_URL", "http://127.0.0.1:1"),
    (
        "notification-worker",
        "NOTIFICATION_RETRY_SCHEDULE",
        "1s,1s,1s,1s",
    ),
    // Nothing listens there.
    (
        "user-service",
        "WEBHOOK_USER_FORGOT_PASSWORD",
        "http://127.0.0.1:1/",
    ),
    (
        "notification-worker",
        "WEBHOOK_USER_FORGOT_PASSWORD",
        "http://127.0.0.1:1/",
    ),
    ("user-service", "BCRYPT_COST", "11"),
];

/// The running system.
pub(super) struct System {
    workspace: Workspace,
    programs: BTreeMap<String, PathBuf>,
    pub(super) servers: Servers,
    database_url: String,
    processes: Mutex<Vec<(Planned, Identity)>>,
    pub(super) gateway: Client,
    pub(super) gateway_url: String,
    token: String,
    pub(super) receivers: Receivers,
}

/// Listeners that stand for receivers of webhooks and for a process of another version.
pub(super) struct Receivers {
    /// Accepts connections and responds to nothing.
    pub(super) silent: String,
    /// Responds with 410.
    pub(super) gone: String,
    /// The address of metrics of another version.
    other_version: String,
}

impl System {
    pub(super) fn start(
        workspace: &Workspace,
        release: bool,
        folder: Option<&Path>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let needs = [
            Need::ClientLibrary,
            Need::Postgres,
            Need::RabbitMq,
            Need::Psql,
        ];
        packages::ensure(&needs, &say)?;
        let built = match folder {
            Some(folder) => programs::find(folder)?,
            None => programs::build(workspace, release)?,
        };
        let programs = programs::copy(workspace, built)?;
        let secrets = Secrets::prepare(workspace)?;
        let own = own_system::start_servers(workspace, Durability::Discardable, Layout::SINGLE)?;
        let [port] = ports::free()?;
        let mut plan = Plan::new(workspace, &Replicas::new(), port, &secrets, &own.backing)?;
        change_settings(&mut plan);
        processes::prepare_logs(workspace, &plan, false)?;
        let running = processes::start_processes(workspace, &plan, &programs, interrupt)?;
        let mut gateway = Client::new(&plan.gateway);
        gateway.quiet = true;
        let mut system = Self {
            workspace: workspace.clone(),
            programs,
            servers: own.servers,
            database_url: own.admin_url,
            processes: Mutex::new(running),
            gateway,
            gateway_url: plan.gateway.clone(),
            token: String::new(),
            receivers: Receivers::open()?,
        };
        let credentials = json!({"username": plan.admin_username, "password": plan.admin_password});
        let signed_in = system.post("/user/auth", credentials)?;
        system.token = text(&signed_in, "token")?;
        Ok(system)
    }

    /// The addresses of all metrics, each with the name of its job.
    pub(super) fn metrics_addresses(&self) -> Vec<(String, String)> {
        let all = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let ours = all
            .iter()
            .filter(|(planned, _)| planned.program != "demo-engine");
        let address = |url: &str| url.trim_start_matches("http://").to_owned();
        let ours = ours.map(|(one, _)| (one.program.to_owned(), address(&one.metrics)));
        let other = ("other".to_owned(), self.receivers.other_version.clone());
        ours.chain([other]).collect()
    }

    /// Calls the API as the administrator.
    pub(super) fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        let call = Call::new("POST", path).token(&self.token).body(body);
        let call = if self.token.is_empty() {
            Call {
                token: None,
                ..call
            }
        } else {
            call
        };
        Ok(self.gateway.call(&call)?.expect(200)?.body)
    }

    pub(super) fn delete(&self, path: &str) -> anyhow::Result<()> {
        let call = Call::new("DELETE", path).token(&self.token);
        self.gateway.call(&call)?.expect(200).map(drop)
    }

    /// Creates tasks with a webhook, and approves them.
    pub(super) fn decide(&self, count: usize, webhook: &str) -> anyhow::Result<()> {
        for _ in 0..count {
            let person = "alerts@example.com";
            let task = json!({"title": "Alert", "requester": person, "approver": person});
            let id = text(&self.post("/people-task/tasks", task)?, "id")?;
            self.post(
                "/people-task/webhooks",
                json!({"taskId": id, "url": webhook}),
            )?;
            let approve = Call::new("PUT", format!("/people-task/tasks/{id}/approve"));
            self.gateway
                .call(&approve.token(&self.token))?
                .expect(200)?;
        }
        Ok(())
    }

    /// Sends requests on this many threads until the deadline, and ignores the responses. Each thread is a client of its
    /// own for the gateway.
    pub(super) fn load(
        &self,
        threads: usize,
        duration: Duration,
        path: &str,
        body: Option<&Value>,
    ) {
        let end = std::time::Instant::now() + duration;
        thread::scope(|scope| {
            for number in 0..threads {
                scope.spawn(move || {
                    let agent = crate::http::agent(Duration::from_secs(20));
                    let url = format!("{}{path}", self.gateway_url);
                    while std::time::Instant::now() < end {
                        let address = format!("10.1.0.{}", number % 250 + 1);
                        let authorization = format!("Bearer {}", self.token);
                        // What fails is seen in the metrics.
                        let _ = match body {
                            None => agent
                                .get(&url)
                                .header("x-forwarded-for", address)
                                .header("authorization", authorization)
                                .call(),
                            Some(body) => agent
                                .post(&url)
                                .header("x-forwarded-for", address)
                                .header("content-type", "application/json")
                                .send(body.to_string()),
                        };
                    }
                });
            }
        });
    }

    /// Runs SQL as the superuser.
    pub(super) fn sql(&self, script: &str) -> anyhow::Result<()> {
        Ok(bootstrap::execute(&self.database_url, script)?)
    }

    /// Runs SQL that takes a while.
    pub(super) fn sql_in_background(&self, script: String) {
        let url = self.database_url.clone();
        // The end of the servers ends it, too.
        thread::spawn(move || bootstrap::execute(&url, &script));
    }

    pub(super) fn signal(&self, program: &str, signal: Signal) -> anyhow::Result<()> {
        self.identity(program)?.signal(signal);
        Ok(())
    }

    pub(super) fn kill(&self, program: &str) -> anyhow::Result<()> {
        Ok(self.identity(program)?.kill()?)
    }

    pub(super) fn identity(&self, program: &str) -> anyhow::Result<Identity> {
        let all = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(planned, _)| planned.name == program);
        Ok(found.with_context(|| format!("there is no {program}"))?.1)
    }

    /// Starts a killed process again, and waits until it is ready.
    pub(super) fn restart(&self, program: &str) -> anyhow::Result<()> {
        let mut all = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = all.iter_mut().find(|(planned, _)| planned.name == program);
        let (planned, identity) = found.with_context(|| format!("there is no {program}"))?;
        *identity = processes::spawn(&self.workspace, planned, &self.programs)?;
        let agent = crate::http::agent(Duration::from_secs(3));
        let ready = local_stack::process::wait_until(Duration::from_secs(60), || {
            crate::http::is_ready(&agent, &planned.metrics).then_some(())
        });
        ready.with_context(|| format!("{program} did not become ready again"))
    }
}

fn change_settings(plan: &mut Plan) {
    for process in &mut plan.processes {
        let settings = SETTINGS
            .iter()
            .filter(|(program, ..)| *program == process.program);
        let settings = settings.map(|(_, name, value)| (*name, (*value).to_owned()));
        process.variables.extend(settings);
    }
}

impl Receivers {
    fn open() -> anyhow::Result<Self> {
        let silent = listen(|stream| {
            // The connection stays open until the caller gives up.
            let _ = stream.read_to_end(&mut Vec::new());
        })?;
        let gone = listen(|stream| respond(stream, "410 Gone", ""))?;
        let metrics = "# TYPE build_info gauge\nbuild_info{version=\"0.0.1\"} 1\n";
        let other_version = listen(move |stream| respond(stream, "200 OK", metrics))?;
        Ok(Self {
            silent: format!("http://{silent}/"),
            gone: format!("http://{gone}/"),
            other_version,
        })
    }
}

/// Handles each connection on a thread of its own. Returns the address.
fn listen(handle: impl Fn(&mut TcpStream) + Send + Clone + 'static) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listening")?;
    let address = listener.local_addr().context("listening")?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handle = handle.clone();
            thread::spawn(move || {
                let mut stream = stream;
                handle(&mut stream);
            });
        }
    });
    Ok(address.to_string())
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
    let _ = stream.read(&mut [0; 16 * 1024]);
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

/// A string of a response.
pub(super) fn text(body: &Value, name: &str) -> anyhow::Result<String> {
    let text = body.get(name).and_then(Value::as_str);
    Ok(text
        .with_context(|| format!("there is no {name}"))?
        .to_owned())
}
