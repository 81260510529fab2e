//! `cargo xtask screenshots`: starts a system for the program of that name, and removes it afterwards.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use local_stack::packages::{self, Need};

use super::program::Arguments;
use crate::cleanup::with_own_system;
use crate::interrupt::Interrupt;
use crate::launch::{self, LaunchOptions};
use crate::output::say;
use crate::stack_file::Stack;
use crate::workspace::Workspace;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
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
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let child = workspace
        .cargo()
        .args(["run", "--quiet", "--package", "screenshots", "--"])
        .args(arguments.after_command())
        .env("SCREENSHOTS_GATEWAY", &stack.gateway)
        .env("SCREENSHOTS_ENGINE", &stack.demo_engine)
        .env("ADMIN_USERNAME", &stack.admin.username)
        .env("ADMIN_PASSWORD", &stack.admin.password)
        .spawn()
        .context("running cargo")?;
    let status = interrupt.wait_for(child)?;
    ensure!(status.success(), "the pictures are not complete: {status}");
    Ok(())
}
