//! `cargo xtask demo`: runs the main use case once and prints every request: two people, a decision, a webhook, a forgotten
//! password, and a deleted account.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use local_stack::random;
use rig::{
    Admin, Call, Client, Options, Person, Profile, Response, Source, Stack, System, Workspace,
    interrupt, say, transcript, verdict,
};
use serde_json::{Value, json};

const ARRIVAL_LIMIT: Duration = Duration::from_secs(60);
const DELETION_LIMIT: Duration = Duration::from_secs(180);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match (Stack::read(&workspace)?, &arguments.url) {
        (None, None) => run_on_new_system(&workspace, arguments)?,
        (stack, _) => tell(&Target::new(arguments, stack.as_ref())?)?,
    }
    Ok(verdict("demo", true))
}

fn run_on_new_system(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<()> {
    say("no system is running; starting one for the demo");
    interrupt::watch()?;
    let lock = workspace.lock("up")?;
    let options = Options::usual(Source::Build(Profile::Dev));
    let system = System::up(workspace, &options)?;
    drop(lock);
    let target = Target::new(arguments, Some(&system.stack()));
    let shown = target.and_then(|target| tell(&target));
    say("stopping");
    rig::stop_system(workspace)?;
    shown
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// The gateway's URL. Without it, the running system is used, or one that is started for the demo.
    #[arg(long)]
    url: Option<String>,
    /// The demo engine's URL. Without it, that of the running system is used.
    #[arg(long, value_name = "URL")]
    engine: Option<String>,
}

pub(crate) struct Target {
    pub(crate) gateway: String,
    /// The demo engine's URL for this program.
    pub(crate) engine: String,
    /// The demo engine's URL for the services.
    pub(crate) engine_inside: String,
    pub(crate) admin: Admin,
}

impl Target {
    /// Takes what `arguments` and the environment do not name from the running system.
    fn new(arguments: &Arguments, running: Option<&Stack>) -> anyhow::Result<Self> {
        let without_slash = |url: &Option<String>| {
            let url = url.as_ref()?;
            Some(url.trim_end_matches('/').to_owned())
        };
        let engine = without_slash(&arguments.engine)
            .or_else(|| Some(running?.demo_engine.clone()))
            .context("the demo engine's URL is missing: --engine http://…")?;
        Ok(Self {
            gateway: without_slash(&arguments.url)
                .or_else(|| Some(running?.gateway.clone()))
                .context("the gateway's URL is missing: --url http://…")?,
            engine_inside: engine.clone(),
            engine,
            admin: admin_from_environment()
                .or_else(|| Some(running?.admin.clone()))
                .context("the administrator is missing: ADMIN_USERNAME and ADMIN_PASSWORD")?,
        })
    }
}

fn admin_from_environment() -> Option<Admin> {
    Some(Admin {
        username: env::var("ADMIN_USERNAME").ok()?,
        password: env::var("ADMIN_PASSWORD").ok()?,
    })
}

struct Story<'target> {
    target: &'target Target,
    gateway: Client,
    engine: Client,
    /// Unique to this run.
    run: String,
}

/// Runs the whole demo. Fails at the first unexpected response.
pub(crate) fn tell(target: &Target) -> anyhow::Result<()> {
    let story = Story {
        target,
        gateway: Client::printing(&target.gateway),
        engine: Client::new(&target.engine),
        run: random::tag(),
    };

    transcript::step(1, "Two people sign up");
    let mut ada = story.gateway.sign_up_new("ada")?;
    let grace = story.gateway.sign_up_new("grace")?;

    transcript::step(2, "Ada signs in");
    let session = story.gateway.sign_in(&ada.email, &ada.password)?;

    transcript::step(3, "Ada asks Grace for a decision and registers a webhook");
    let task = story.create_task(&session, &ada, &grace)?;
    let task_id = task.text("/id")?;
    story.register_webhook(&session, task_id)?;

    let title = "Grace approves with the secret of her link, without signing in";
    transcript::step(4, title);
    let decided = story.approve(task_id, task.text("/approverSecret")?)?;

    transcript::step(5, "The flow engine receives the webhook");
    story.show_webhook(task_id, decided)?;

    transcript::step(6, "Ada forgets her password and sets a new one");
    story.reset_password(&mut ada)?;
    let session = story.gateway.sign_in(&ada.email, &ada.password)?;

    transcript::step(7, "An administrator deletes Ada's account");
    story.delete(&session.id)?;
    story.check_deleted(&ada, &session)
}

impl Story<'_> {
    fn post(&self, path: &str, body: Value) -> anyhow::Result<Response> {
        self.gateway.call(&Call::new("POST", path).body(body))
    }

    fn create_task(
        &self,
        session: &Person,
        requester: &Person,
        approver: &Person,
    ) -> anyhow::Result<Response> {
        let body = json!({
            "title": "Buy a chair",
            "description": "The old one squeaks.",
            "requester": requester.email,
            "approver": approver.email,
            "decisionBy": "2030-01-31 12:00:00",
        });
        let path = "/people-task/tasks";
        self.gateway.post(path, &session.token, body)
    }

    fn register_webhook(&self, session: &Person, task_id: &str) -> anyhow::Result<()> {
        let (engine, run) = (&self.target.engine_inside, &self.run);
        let url = format!("{engine}/webhooks/flow?correlationId={run}&correlationInPort=in");
        self.gateway.register_webhook(&session.token, task_id, &url)
    }

    /// Returns the time of the decision.
    fn approve(&self, task_id: &str, secret: &str) -> anyhow::Result<DateTime<Utc>> {
        let path = format!("/people-task/tasks/{task_id}/approve?secret={secret}");
        let response = self.gateway.call(&Call::new("PUT", path))?.expect(200)?;
        let decided = Utc::now();
        let (status, body) = (response.text("/status")?, &response.body);
        ensure!(status == "approved", "the task is not approved: {body}");
        Ok(decided)
    }

    fn show_webhook(&self, task_id: &str, decided: DateTime<Utc>) -> anyhow::Result<()> {
        let query = format!("correlationId={}", self.run);
        let item = self.wait_received(&query)?;
        transcript::received(&item);
        let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
        for (pointer, expected) in [
            ("/body/id", task_id),
            ("/body/status", "approved"),
            ("/query/correlationInPort", "in"),
        ] {
            ensure!(
                text(pointer) == Some(expected),
                "{pointer} of the webhook is not {expected}: {item}"
            );
        }
        let received = DateTime::parse_from_rfc3339(text("/at").unwrap_or_default())
            .with_context(|| format!("the time of the webhook is invalid: {item}"))?;
        let delay = (received.to_utc() - decided).num_milliseconds().max(0);
        transcript::note(&format!("received {delay} ms after the decision"));
        Ok(())
    }

    fn reset_password(&self, person: &mut Person) -> anyhow::Result<()> {
        self.post("/user/forgot-password", json!({"email": person.email}))?
            .expect(200)?;
        let query = format!("kind=forgot-password&email={}", person.email);
        let item = self.wait_received(&query)?;
        let code = item.pointer("/body/code").context("there is no code")?;
        person.password = random::password();
        let body = json!({"code": code, "password": person.password});
        let reset = self.post("/user/forgot-password/reset", body)?;
        reset.expect(200).map(drop)
    }

    fn delete(&self, user_id: &str) -> anyhow::Result<()> {
        let admin = &self.target.admin;
        let admin = self.gateway.sign_in(&admin.username, &admin.password)?;
        let path = self.gateway.start_deletion(&admin.token, user_id)?;
        let quiet = Client::new(&self.target.gateway);
        let mut shown = String::new();
        quiet.wait_deleted(&path, &admin.token, DELETION_LIMIT, |status| {
            let number = |name: &str| status.get(name).cloned().unwrap_or_default();
            let (done, total) = (number("stepsDone"), number("stepsTotal"));
            let progress = format!("{done} of {total} steps");
            if shown != progress {
                transcript::note(&progress);
                shown = progress;
            }
        })
    }

    fn check_deleted(&self, person: &Person, session: &Person) -> anyhow::Result<()> {
        let sign_in = self.gateway.try_sign_in(&person.email, &person.password);
        sign_in?.expect(401)?;
        let call = Call::new("GET", "/user").token(&session.token);
        self.gateway.call(&call)?.expect(401)?;
        transcript::note("the password and the old token are refused");
        Ok(())
    }

    /// Waits until the demo engine has received an item that matches `query`. Returns the newest one.
    fn wait_received(&self, query: &str) -> anyhow::Result<Value> {
        let arrived = interrupt::wait_until(ARRIVAL_LIMIT, || match self.engine.received(query) {
            Ok(mut items) => items.pop().map(Ok),
            Err(error) => Some(Err(error)),
        })?;
        arrived.with_context(|| {
            let limit = ARRIVAL_LIMIT.as_secs();
            format!("the demo engine received nothing for {query} within {limit} s")
        })?
    }
}
