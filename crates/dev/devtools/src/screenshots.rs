//! `cargo xtask screenshots`: starts a system for the program of that name, and removes it afterwards.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};
use local_stack::packages::{self, Need};

use rig::interrupt::Interrupt;
use rig::output::say;
use rig::own::with_own_system;
use rig::system::{Options, Source, System};
use rig::workspace::{Profile, Workspace};

const PROGRAM: &str = "screenshots";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    let take = |workspace: &_, interrupt: &_| {
        packages::ensure(&[Need::Chromium, Need::ChromeDriver], &say)?;
        let options = Options::own(Source::Build(Profile::Dev));
        // The program finds it by its file.
        let _system = System::start(workspace, &options, interrupt, |_, _| Ok(()))?;
        run_program(&base, arguments, interrupt)
    };
    with_own_system(&base, PROGRAM, take, |()| true)?;
    Ok(ExitCode::SUCCESS)
}

fn run_program(
    workspace: &Workspace,
    arguments: &[String],
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let built = workspace.build(&[PROGRAM], Profile::Dev)?;
    let program = built.get(PROGRAM).context("cargo did not build it")?;
    let child = Command::new(program)
        .args(arguments)
        .spawn()
        .context("running it")?;
    let status = interrupt.wait_for(child)?;
    ensure!(status.success(), "the pictures are not complete: {status}");
    Ok(())
}
