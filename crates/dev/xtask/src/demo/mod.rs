//! `cargo xtask demo`: the main job once, visibly.

pub mod client;
mod show;
mod steps;

use std::{env, process::ExitCode};

use anyhow::Context;
use clap::Args;

use crate::{
    interrupt::Interrupt,
    launch::{self, Wishes, say},
    stack_file::{Admin, Stack},
    workspace::Workspace,
};

/// Which system to show.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The gateway. Without it that of the running system, or of one that is started for the demo.
    #[arg(long)]
    url: Option<String>,
    /// The demo engine, as seen from here. Without it that of the running system.
    #[arg(long, value_name = "URL")]
    engine: Option<String>,
    /// The demo engine as the services see it, when that is another url.
    #[arg(long, value_name = "URL")]
    engine_inside: Option<String>,
}

/// The system that is shown.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) gateway: String,
    /// The demo engine as seen from here.
    pub(crate) engine: String,
    /// The demo engine as the services see it.
    pub(crate) engine_inside: String,
    pub(crate) admin: Admin,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match (Stack::read(&workspace)?, &arguments.url) {
        (None, None) => on_a_system_of_its_own(&workspace),
        (stack, _) => show(&target(arguments, stack)?),
    }
}

/// Shows the main job; an error at the first thing that is not as it should be.
pub(crate) fn show(target: &Target) -> anyhow::Result<ExitCode> {
    steps::all(target)?;
    outln!("\ndemo: ok");
    Ok(ExitCode::SUCCESS)
}

fn on_a_system_of_its_own(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    say("nothing is up; starting a system for the demo");
    let interrupt = Interrupt::watch()?;
    let starting = workspace.lock("up")?;
    let running = launch::start(workspace, &Wishes::default(), &interrupt)?;
    drop(starting);
    let target = Target {
        gateway: running.stack.gateway.clone(),
        engine: running.stack.demo_engine.clone(),
        engine_inside: running.stack.demo_engine.clone(),
        admin: running.stack.admin.clone(),
    };
    let shown = steps::all(&target);
    say("stopping");
    launch::stop(workspace)?;
    shown?;
    outln!("\ndemo: ok");
    Ok(ExitCode::SUCCESS)
}

fn target(arguments: &Arguments, stack: Option<Stack>) -> anyhow::Result<Target> {
    let without_slash = |url: &String| url.trim_end_matches('/').to_owned();
    let gateway = arguments.url.as_ref().map(without_slash);
    let engine = arguments.engine.as_ref().map(without_slash);
    let from_environment = || {
        Some(Admin {
            username: env::var("ADMIN_USERNAME").ok()?,
            password: env::var("ADMIN_PASSWORD").ok()?,
        })
    };
    let engine = engine
        .or_else(|| stack.as_ref().map(|stack| stack.demo_engine.clone()))
        .context("say where the demo engine is: --engine http://…")?;
    Ok(Target {
        gateway: gateway
            .or_else(|| stack.as_ref().map(|stack| stack.gateway.clone()))
            .context("say where the gateway is: --url http://…")?,
        engine_inside: arguments
            .engine_inside
            .as_ref()
            .map_or_else(|| engine.clone(), without_slash),
        engine,
        admin: from_environment()
            .or_else(|| stack.map(|stack| stack.admin))
            .context("say who the administrator is: ADMIN_USERNAME and ADMIN_PASSWORD")?,
    })
}
