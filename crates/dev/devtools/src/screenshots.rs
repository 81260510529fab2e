//! `cargo xtask screenshots`: starts a system for the program of that name, and removes it afterwards.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};
use local_stack::packages::{self, Need};

use rig::cleanup::with_own_system;
use rig::interrupt::Interrupt;
use rig::launch::{self, LaunchOptions};
use rig::output::say;
use rig::stack_file::Stack;
use rig::workspace::{Profile, Workspace};

const PROGRAM: &str = "screenshots";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    let interrupt = Interrupt::watch()?;
    let _lock = base.lock("screenshots")?;
    packages::ensure(&[Need::Chromium, Need::ChromeDriver], &say)?;
    let workspace = base.aside("screenshots");
    let take = || {
        let [port] = local_stack::ports::free()?;
        let options = LaunchOptions {
            port: Some(port),
            ..LaunchOptions::default()
        };
        let running = launch::start(&workspace, &options, &interrupt)?;
        run_program(&base, &running.stack, arguments, &interrupt)
    };
    with_own_system(&workspace, &interrupt, take, |()| true)?;
    Ok(ExitCode::SUCCESS)
}

fn run_program(
    workspace: &Workspace,
    stack: &Stack,
    arguments: &[String],
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let built = workspace.build(&[PROGRAM], Profile::Dev)?;
    let program = built.get(PROGRAM).context("cargo did not build it")?;
    let child = Command::new(program)
        .args(arguments)
        .env("SCREENSHOTS_GATEWAY", &stack.gateway)
        .env("SCREENSHOTS_ENGINE", &stack.demo_engine)
        .env("ADMIN_USERNAME", &stack.admin.username)
        .env("ADMIN_PASSWORD", &stack.admin.password)
        .spawn()
        .context("running it")?;
    let status = interrupt.wait_for(child)?;
    ensure!(status.success(), "the pictures are not complete: {status}");
    Ok(())
}
