//! `cargo xtask demo`: runs the main use case once and prints every request.

pub(crate) mod story;

use std::env;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use rig::output::{say, verdict};
use rig::programs::Source;
use rig::stack_file::{Admin, Stack};
use rig::system::{Options, System};
use rig::workspace::{Profile, Workspace};
use rig::{interrupt, process};

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match (Stack::read(&workspace)?, &arguments.url) {
        (None, None) => run_on_new_system(&workspace, arguments)?,
        (stack, _) => story::run(&Target::new(arguments, stack.as_ref())?)?,
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
    let shown = target.and_then(|target| story::run(&target));
    say("stopping");
    process::stop(workspace)?;
    shown
}

/// Which system to use.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The gateway's URL. Without it, the running system is used, or one that is started for the demo.
    #[arg(long)]
    url: Option<String>,
    /// The demo engine's URL. Without it, that of the running system is used.
    #[arg(long, value_name = "URL")]
    engine: Option<String>,
}

/// The URLs and credentials of a system.
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
