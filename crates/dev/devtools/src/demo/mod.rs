//! `cargo xtask demo`: runs the main use case once and prints every request.

mod deletion;
mod engine;
mod story;
mod target;

use std::process::ExitCode;

pub(crate) use self::target::{Arguments, Target};
use rig::{
    interrupt::Interrupt,
    launch::{self, LaunchOptions},
    outln,
    output::say,
    stack_file::Stack,
    workspace::Workspace,
};

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    match (Stack::read(&workspace)?, &arguments.url) {
        (None, None) => run_on_new_system(&workspace)?,
        (stack, _) => show(&Target::new(arguments, stack.as_ref())?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the demo. Fails at the first unexpected result.
pub(crate) fn show(target: &Target) -> anyhow::Result<()> {
    story::run(target)?;
    outln!("\ndemo: ok");
    Ok(())
}

fn run_on_new_system(workspace: &Workspace) -> anyhow::Result<()> {
    say("no system is running; starting one for the demo");
    let interrupt = Interrupt::watch()?;
    let lock = workspace.lock("up")?;
    let running = launch::start(workspace, &LaunchOptions::default(), &interrupt)?;
    drop(lock);
    let shown = story::run(&Target::from(&running.stack));
    say("stopping");
    launch::stop(workspace)?;
    shown?;
    outln!("\ndemo: ok");
    Ok(())
}
