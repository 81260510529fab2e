//! The system that is broken, with settings that make it break sooner.

use std::{
    collections::BTreeMap,
    fs,
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
use nix::{
    sys::{signal::Signal, stat::Mode},
    unistd,
};
use serde_json::{Value, json};
use ureq::Agent;

use super::{held_lock::HeldLock, receivers::Receivers};
use rig::{
    client::{Call, Client},
    environment::Variables,
    interrupt::Interrupt,
    output::say,
    own_system::{self, Layout},
    plan::{Plan, Planned, Replicas},
    processes, programs,
    secrets::Secrets,
    workspace::{Profile, Workspace},
};

/// So that responses that cost nothing do not take the whole processor.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// Settings by program.
const SETTINGS: [(&str, &str, &str); 16] = [
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
    ("people-task-service", "TASK_MAIL", "on"),
    ("notification-worker", "SMTP_URL", "smtp://127.0.0.1:1"),
    ("notification-worker", "MAIL_FROM", "no-reply@example.com"),
    ("user-service", "BCRYPT_COST", "11"),
];

/// The running system.
pub(super) struct System {
    pub(super) workspace: Workspace,
    programs: BTreeMap<String, PathBuf>,
    pub(super) servers: Servers,
    database_url: String,
    processes: Mutex<Vec<(Planned, Identity)>>,
    held: Mutex<Vec<HeldLock>>,
    /// Logs that no one reads.
    unread: Mutex<Vec<fs::File>>,
    pub(super) gateway: Client,
    pub(super) gateway_url: String,
    token: String,
    pub(super) receivers: Receivers,
}

impl System {
    /// Starts it with two gateways, after `prepare` has changed its plan.
    pub(super) fn start(
        workspace: &Workspace,
        release: bool,
        folder: Option<&Path>,
        prepare: impl FnOnce(&Workspace, &mut Plan) -> anyhow::Result<()>,
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
            None => programs::build(workspace, Profile::of(release))?,
        };
        let programs = programs::copy(workspace, built)?;
        let secrets = Secrets::prepare(workspace)?;
        let own = own_system::start_servers(workspace, Durability::Discardable, Layout::SINGLE)?;
        let [port] = ports::free()?;
        let replicas = Replicas::from([("gateway".to_owned(), 2)]);
        let mut plan = Plan::new(workspace, &replicas, port, &secrets, &own.backing)?;
        change_settings(&mut plan);
        prepare(workspace, &mut plan)?;
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
            held: Mutex::default(),
            unread: Mutex::default(),
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

    /// The addresses of all metrics, by program.
    pub(super) fn metrics_addresses(&self) -> BTreeMap<&'static str, Vec<String>> {
        let all = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut addresses = BTreeMap::from([("other", vec![self.receivers.other_version.clone()])]);
        let ours = all.iter().map(|(planned, _)| planned);
        for process in ours.filter(|process| process.program != "demo-engine") {
            let address = process.metrics.trim_start_matches("http://");
            let same = addresses.entry(process.program).or_default();
            same.push(address.to_owned());
        }
        addresses
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

    /// Sends requests on this many threads until `is_over`, and ignores the responses. Each thread is a client of its
    /// own for the gateway.
    pub(super) fn load(
        &self,
        threads: usize,
        path: &str,
        body: Option<&Value>,
        is_over: impl Fn() -> bool + Sync,
    ) {
        thread::scope(|scope| {
            for number in 0..threads {
                let is_over = &is_over;
                scope.spawn(move || {
                    let agent = rig::http::agent(Duration::from_secs(20));
                    while !is_over() {
                        if !self.send(&agent, number, path, body) {
                            thread::sleep(PAUSE_AFTER_FAILURE);
                        }
                    }
                });
            }
        });
    }

    /// Sends one request on each of this many threads, and waits for their responses.
    pub(super) fn send_together(&self, threads: usize, path: &str) {
        thread::scope(|scope| {
            for number in 0..threads {
                scope.spawn(move || {
                    let agent = rig::http::agent(Duration::from_secs(20));
                    self.send(&agent, number, path, None)
                });
            }
        });
    }

    /// Whether the response is a success. What fails is seen in the metrics.
    fn send(&self, agent: &Agent, number: usize, path: &str, body: Option<&Value>) -> bool {
        let url = format!("{}{path}", self.gateway_url);
        let address = format!("10.1.0.{}", number % 250 + 1);
        let response = match body {
            None => agent
                .get(&url)
                .header("x-forwarded-for", address)
                .header("authorization", format!("Bearer {}", self.token))
                .call(),
            Some(body) => agent
                .post(&url)
                .header("x-forwarded-for", address)
                .header("content-type", "application/json")
                .send(body.to_string()),
        };
        response.is_ok_and(|response| response.status().is_success())
    }

    /// Runs SQL as the superuser.
    pub(super) fn sql(&self, script: &str) -> anyhow::Result<()> {
        Ok(bootstrap::execute(&self.database_url, script)?)
    }

    /// Runs statements in a transaction, and returns when they have their locks.
    pub(super) fn lock(&self, statements: &str) -> anyhow::Result<HeldLock> {
        HeldLock::acquire(&self.database_url, statements)
    }

    /// Like [`System::lock`], until [`System::release_locks`].
    pub(super) fn hold(&self, statements: &str) -> anyhow::Result<()> {
        let lock = self.lock(statements)?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(lock);
        Ok(())
    }

    pub(super) fn release_locks(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clear();
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

    /// The address of a process' API.
    pub(super) fn address(&self, program: &str) -> anyhow::Result<String> {
        let all = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(planned, _)| planned.name == program);
        let url = found.and_then(|(planned, _)| planned.url.as_deref());
        let url = url.with_context(|| format!("there is no {program}"))?;
        Ok(url.trim_start_matches("http://").to_owned())
    }

    /// Starts a killed process again with a log that no one reads, and waits until it is ready.
    pub(super) fn restart_unread(&self, program: &str) -> anyhow::Result<()> {
        let log = self.workspace.log(program);
        fs::rename(&log, log.with_extension("before"))?;
        unistd::mkfifo(&log, Mode::S_IRUSR | Mode::S_IWUSR).context("creating a pipe")?;
        // Opened for both, because opening a pipe waits for the other side.
        let pipe = fs::File::options().read(true).write(true).open(&log)?;
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.push(pipe);
        drop(unread);
        let restarted = self.restart(program);
        // The process keeps it open. Who looks for the log later must not wait for it.
        fs::remove_file(&log)?;
        restarted
    }

    /// Starts a process again with other settings than usual.
    pub(super) fn restart_with(
        &self,
        program: &str,
        settings: &[(&'static str, &str)],
    ) -> anyhow::Result<()> {
        self.kill(program)?;
        let settings = settings
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        self.start_again(program, &settings.collect())
    }

    /// Starts a killed process again, and waits until it is ready.
    pub(super) fn restart(&self, program: &str) -> anyhow::Result<()> {
        self.start_again(program, &Variables::new())
    }

    fn start_again(&self, program: &str, settings: &Variables) -> anyhow::Result<()> {
        let mut all = self
            .processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = all.iter_mut().find(|(planned, _)| planned.name == program);
        let (planned, identity) = found.with_context(|| format!("there is no {program}"))?;
        let mut changed = planned.clone();
        changed.variables.extend(settings.clone());
        *identity = processes::spawn(&self.workspace, &changed, &self.programs)?;
        let agent = rig::http::agent(Duration::from_secs(3));
        let ready = local_stack::process::wait_until(Duration::from_secs(60), || {
            rig::http::is_ready(&agent, &planned.metrics).then_some(())
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

/// A string of a response.
pub(super) fn text(body: &Value, name: &str) -> anyhow::Result<String> {
    let text = body.get(name).and_then(Value::as_str);
    Ok(text
        .with_context(|| format!("there is no {name}"))?
        .to_owned())
}
