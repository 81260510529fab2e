//! The system that is broken, with settings that make it break sooner.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context as _;
use local_stack::bootstrap;
use nix::{sys::stat::Mode, unistd};
use rig::{
    client::{Call, Client},
    held_lock::HeldLock,
    interrupt::Interrupt,
    plan::{Plan, Replicas},
    receiver::{Receiver, Reply},
    sync::lock,
    system::{self, Options, Source},
    workspace::Workspace,
};
use serde_json::{Value, json};

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
    pub(super) rig: system::System,
    held: Mutex<Vec<HeldLock>>,
    /// Logs that no one reads.
    unread: Mutex<Vec<fs::File>>,
    pub(super) gateway: Client,
    pub(super) token: String,
    pub(super) receivers: Receivers,
}

/// Receivers of webhooks, and a process of another version.
pub(super) struct Receivers {
    /// Responds to nothing.
    pub(super) silent: Receiver,
    /// Responds to nothing, either, and counts.
    pub(super) counting: Receiver,
    requests: Arc<AtomicUsize>,
    /// Responds with 410.
    pub(super) gone: Receiver,
    /// Has the metrics of another version.
    pub(super) other_version: Receiver,
}

impl Receivers {
    fn open() -> anyhow::Result<Self> {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        Ok(Self {
            silent: Receiver::open(|_| Reply::Hang)?,
            counting: Receiver::open(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                Reply::Hang
            })?,
            requests,
            gone: Receiver::open(|_| Reply::status("410 Gone"))?,
            other_version: Receiver::open(|_| Reply::Send {
                status: "200 OK",
                head: "content-type: text/plain; version=0.0.4\r\n".to_owned(),
                body: "# TYPE build_info gauge\nbuild_info{version=\"0.0.1\"} 1\n",
            })?,
        })
    }

    /// How many requests the counting receiver got.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl System {
    /// Starts it with two gateways, after `prepare` has changed its plan.
    pub(super) fn start(
        workspace: &Workspace,
        source: Source<'_>,
        prepare: impl FnOnce(&Workspace, &mut Plan) -> anyhow::Result<()>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let options = Options {
            replicas: Replicas::from([("gateway".to_owned(), 2)]),
            ..Options::own(source)
        };
        let rig = system::System::start(workspace, &options, interrupt, |plan, _| {
            change_settings(plan);
            prepare(workspace, plan)
        })?;
        let gateway = rig.client();
        let admin = gateway.sign_in(&rig.admin.username, &rig.admin.password)?;
        Ok(Self {
            rig,
            held: Mutex::default(),
            unread: Mutex::default(),
            gateway,
            token: admin.token,
            receivers: Receivers::open()?,
        })
    }

    /// The addresses of all metrics, by program.
    pub(super) fn metrics_addresses(&self) -> BTreeMap<&'static str, Vec<String>> {
        let other = self.receivers.other_version.address().to_string();
        let mut addresses = BTreeMap::from([("other", vec![other])]);
        let ours = self.rig.processes.iter().map(|process| &process.planned);
        for process in ours.filter(|process| process.program != "demo-engine") {
            let address = process.metrics.trim_start_matches("http://");
            let same = addresses.entry(process.program).or_default();
            same.push(address.to_owned());
        }
        addresses
    }

    /// Calls the API as the administrator.
    pub(super) fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        Ok(self.gateway.post(path, &self.token, body)?.body)
    }

    /// Creates tasks with a webhook, and approves them.
    pub(super) fn decide(&self, count: usize, receiver: &Receiver) -> anyhow::Result<()> {
        let webhook = receiver.url("/");
        for _ in 0..count {
            let person = "alerts@example.com";
            let task = json!({"title": "Alert", "requester": person, "approver": person});
            let created = self.gateway.post("/people-task/tasks", &self.token, task)?;
            let id = created.text("/id")?;
            self.post(
                "/people-task/webhooks",
                json!({"taskId": id, "url": webhook}),
            )?;
            let approve = format!("/people-task/tasks/{id}/approve");
            self.gateway.put(&approve, &self.token, json!({}))?;
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
        self.on_threads(threads, |client, number| {
            while !is_over() {
                if !self.send(client, number, path, body) {
                    thread::sleep(PAUSE_AFTER_FAILURE);
                }
            }
        });
    }

    /// Sends one request on each of this many threads, and waits for their responses.
    pub(super) fn send_together(&self, threads: usize, path: &str) {
        self.on_threads(threads, |client, number| {
            self.send(client, number, path, None);
        });
    }

    fn on_threads(&self, threads: usize, work: impl Fn(&Client, usize) + Sync) {
        thread::scope(|scope| {
            for number in 0..threads {
                let work = &work;
                scope.spawn(move || {
                    let timeout = Duration::from_secs(20);
                    work(&Client::with_timeout(&self.rig.gateway, timeout), number);
                });
            }
        });
    }

    /// Whether the response is a success. What fails is seen in the metrics.
    fn send(&self, client: &Client, number: usize, path: &str, body: Option<&Value>) -> bool {
        let address = format!("10.1.0.{}", number % 250 + 1);
        let call = match body {
            None => Call::new("GET", path).token(&self.token),
            Some(body) => Call::new("POST", path).body(body.clone()),
        };
        let response = client.once(&call.header("x-forwarded-for", address));
        response.is_ok_and(|(status, ..)| (200..300).contains(&status))
    }

    /// Runs SQL as the superuser.
    pub(super) fn sql(&self, script: &str) -> anyhow::Result<()> {
        bootstrap::execute(&self.rig.backing.admin_url, script)
    }

    /// Runs statements in a transaction, and returns when they have their locks.
    pub(super) fn lock(&self, statements: &str) -> anyhow::Result<HeldLock> {
        HeldLock::acquire(&self.rig.backing.admin_url, statements)
    }

    /// Like [`System::lock`], until [`System::release_locks`].
    pub(super) fn hold(&self, statements: &str) -> anyhow::Result<()> {
        let acquired = self.lock(statements)?;
        lock(&self.held).push(acquired);
        Ok(())
    }

    pub(super) fn release_locks(&self) {
        lock(&self.held).clear();
    }

    /// Kills a process, and starts it again.
    pub(super) fn restart(&self, program: &str) -> anyhow::Result<()> {
        self.restart_with(program, &[])
    }

    /// Kills a process, and starts it again with other settings than usual.
    pub(super) fn restart_with(
        &self,
        program: &str,
        settings: &[(&'static str, &str)],
    ) -> anyhow::Result<()> {
        self.rig.process(program)?.kill()?;
        let started = self.rig.start_process_with(program, settings);
        started.map(drop)
    }

    /// Kills a process, and starts it again with a log that no one reads.
    pub(super) fn restart_unread(&self, program: &str) -> anyhow::Result<()> {
        self.rig.process(program)?.kill()?;
        let log = self.rig.workspace.log(program);
        fs::rename(&log, log.with_extension("before"))?;
        unistd::mkfifo(&log, Mode::S_IRUSR | Mode::S_IWUSR).context("creating a pipe")?;
        // Opened for both, because opening a pipe waits for the other side.
        let pipe = fs::File::options().read(true).write(true).open(&log)?;
        lock(&self.unread).push(pipe);
        let restarted = self.rig.start_process(program);
        // The process keeps it open. Who looks for the log later must not wait for it.
        fs::remove_file(&log)?;
        restarted.map(drop)
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
