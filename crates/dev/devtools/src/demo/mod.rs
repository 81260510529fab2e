//! `cargo xtask demo`: runs the main use case once and prints every request.

mod engine;
mod story;
mod target;

use std::process::ExitCode;

pub(crate) use self::target::{Arguments, Target};
use rig::{
    interrupt::Interrupt,
    outln,
    output::say,
    stack_file::Stack,
    system::{self, Options, Source, System},
    workspace::{Profile, Workspace},
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
    let options = Options::usual(Source::Build(Profile::Dev));
    let system = System::start(workspace, &options, &interrupt, |_, _| Ok(()))?;
    drop(lock);
    let shown = story::run(&Target::from(&system.stack()));
    say("stopping");
    system::stop(workspace)?;
    shown?;
    outln!("\ndemo: ok");
    Ok(())
}
