//! The system that is broken, with settings that make it break sooner.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context as _, Result};
use local_stack::private;
use nix::{sys::stat::Mode, unistd};
use rcgen::generate_simple_self_signed;
use rig::{Call, Client, HeldLock, Options, Receiver, Replicas, Reply, Source, Workspace, lock};
use serde_json::Value;

/// So that responses that cost nothing do not take the whole processor.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// Settings of all processes, each of which reads those that it knows.
const SETTINGS: [(&str, &str); 12] = [
    ("RATE_LIMIT", "off"),
    ("GATEWAY_MAX_IN_FLIGHT", "16"),
    ("TRUSTED_PROXIES", "127.0.0.0/8"),
    ("BCRYPT_COST", "11"),
    ("FORGOT_PASSWORD_PER_ACCOUNT", "0"),
    // Nothing listens there.
    ("WEBHOOK_USER_FORGOT_PASSWORD", "http://127.0.0.1:1/"),
    ("NOTIFICATION_RETRY_SCHEDULE", "1s,1s,1s,1s"),
    ("WEBHOOK_TIMEOUT", "1s"),
    ("DELETE_MAX_ATTEMPTS", "2"),
    ("TASK_MAIL", "on"),
    ("TASK_MAIL_PER_CREATOR", "0"),
    ("TASK_MAIL_PER_RECIPIENT", "0"),
];

/// Settings of one program, which others know, too.
const OF_ONE_PROGRAM: [(&str, &str, &str); 5] = [
    ("people-task-service", "DATABASE_TIMEOUT", "20s"),
    ("people-task-service", "DATABASE_POOL_SIZE", "4"),
    ("deletion-worker", "FLOW_ENGINE_URL", "http://127.0.0.1:1"),
    ("notification-worker", "SMTP_URL", "smtp://127.0.0.1:1"),
    ("notification-worker", "MAIL_FROM", "no-reply@example.com"),
];

/// The gateway that serves TLS and few connections.
pub(super) const SECOND_GATEWAY: &str = "gateway-2";
pub(super) const MAX_CONNECTIONS: usize = 8;

pub(super) struct System {
    pub(super) rig: rig::System,
    /// The file with the private key of the second gateway.
    pub(super) private_key: PathBuf,
    /// Locks that a later step releases.
    pub(super) held: Mutex<Vec<HeldLock>>,
    /// Logs that no one reads.
    unread: Mutex<Vec<fs::File>>,
    pub(super) gateway: Client,
    pub(super) token: String,
    /// A receiver of webhooks that responds to nothing.
    pub(super) silent: Receiver,
    /// Responds with 410.
    pub(super) gone: Receiver,
    /// Has the metrics of another version, and accepts webhooks.
    pub(super) other_version: Receiver,
}

impl System {
    pub(super) fn start(workspace: &Workspace, source: Source<'_>) -> Result<Self> {
        let options = Options {
            replicas: Replicas::from([("gateway".to_owned(), 2)]),
            ..Options::own(source)
        };
        let mut rig = rig::System::plan(workspace, &options)?;
        rig.set_all(&SETTINGS);
        let private_key = workspace.local.join("tls/private-key.pem");
        let tls = tls_settings(&private_key)?;
        for process in &mut rig.processes {
            let of_program = OF_ONE_PROGRAM.iter();
            let of_program = of_program.filter(|(program, ..)| *program == process.program);
            let settings = of_program.map(|(_, name, value)| (*name, (*value).to_owned()));
            process.variables.extend(settings);
            if process.name == SECOND_GATEWAY {
                process.variables.extend(tls.clone());
            }
        }
        rig.start()?;
        Ok(Self {
            private_key,
            held: Mutex::default(),
            unread: Mutex::default(),
            gateway: rig.client(),
            token: rig.sign_in_admin()?.token,
            rig,
            silent: Receiver::open(|_| Reply::Hang)?,
            gone: Receiver::open(|_| Reply::status("410 Gone"))?,
            other_version: Receiver::open(|_| {
                let head = "content-type: text/plain; version=0.0.4\r\n".to_owned();
                let body = "# TYPE build_info gauge\nbuild_info{version=\"0.0.1\"} 1\n";
                Reply::Send("200 OK", head, body)
            })?,
        })
    }

    /// Creates tasks with a webhook, and approves them.
    pub(super) fn decide(&self, count: usize, receiver: &Receiver) -> Result<()> {
        let (gateway, token) = (&self.gateway, &self.token);
        for _ in 0..count {
            let task = self.create_task()?;
            gateway.register_webhook(token, &task, &receiver.url("/"))?;
            gateway.approve(token, &task)?;
        }
        Ok(())
    }

    pub(super) fn create_task(&self) -> Result<String> {
        let gateway = &self.gateway;
        gateway.create_task(&self.token, "Alert", "alerts@example.com")
    }

    /// Sends requests on this many threads, at least one on each, until `is_over`, and ignores the responses. Each thread is
    /// a client of its own for the gateway. What fails is seen in the metrics.
    pub(super) fn load(
        &self,
        threads: usize,
        path: &str,
        body: Option<&Value>,
        is_over: impl Fn() -> bool + Sync,
    ) {
        let work = |number: usize| {
            let client = Client::with_timeout(&self.rig.gateway, Duration::from_secs(20));
            let call = match body {
                None => Call::new("GET", path).token(&self.token),
                Some(body) => Call::new("POST", path).body(body.clone()),
            };
            let call = call.header("x-forwarded-for", format!("10.1.0.{}", number % 250 + 1));
            loop {
                let response = client.once(&call);
                if is_over() {
                    return;
                }
                if !response.is_ok_and(|(status, ..)| (200..300).contains(&status)) {
                    thread::sleep(PAUSE_AFTER_FAILURE);
                }
            }
        };
        thread::scope(|scope| {
            for number in 0..threads {
                let work = &work;
                scope.spawn(move || work(number));
            }
        });
    }

    /// Kills a process, and starts it again with other settings than usual.
    pub(super) fn restart_with(
        &self,
        program: &str,
        settings: &[(&'static str, &str)],
    ) -> Result<()> {
        self.rig.process(program)?.kill()?;
        let started = self.rig.start_process(program, settings);
        started.map(drop)
    }

    /// Kills a process, and starts it again with a log that no one reads.
    pub(super) fn restart_unread(&self, program: &str) -> Result<()> {
        self.rig.process(program)?.kill()?;
        let log = self.rig.workspace.log(program);
        fs::rename(&log, log.with_extension("before"))?;
        unistd::mkfifo(&log, Mode::S_IRUSR | Mode::S_IWUSR).context("creating a pipe")?;
        // Opened for both, because opening a pipe waits for the other side.
        let pipe = fs::File::options().read(true).write(true).open(&log)?;
        lock(&self.unread).push(pipe);
        let restarted = self.rig.start_process(program, &[]);
        // The process keeps it open. Who looks for the log later must not wait for it.
        fs::remove_file(&log)?;
        restarted.map(drop)
    }
}

/// Creates a certificate and its key. Returns the settings of the second gateway.
fn tls_settings(private_key: &Path) -> Result<[(&'static str, String); 6]> {
    let certified =
        generate_simple_self_signed(["localhost".to_owned()]).context("creating a certificate")?;
    let pem = certified.signing_key.serialize_pem();
    private::write(private_key, pem.as_bytes())?;
    let certificate = private_key.with_file_name("certificate.pem");
    fs::write(&certificate, certified.cert.pem())?;
    Ok([
        ("TLS_CERTIFICATE_FILE", certificate.display().to_string()),
        ("TLS_PRIVATE_KEY_FILE", private_key.display().to_string()),
        ("TLS_RELOAD_INTERVAL", "500ms".to_owned()),
        ("HTTP_WORKERS", "1".to_owned()),
        ("HTTP_MAX_CONNECTIONS", MAX_CONNECTIONS.to_string()),
        // Connections of a trusted proxy are not limited.
        ("TRUSTED_PROXIES", String::new()),
    ])
}
