//! `cargo xtask screenshots`: pictures of every web page, with example data, in several looks.
//!
//! It needs a running system, which `xtask` starts, and uses the same browser as the tests. A picture is of the page
//! as a person sees it: the browser waits for a text of the page and not for a time.

mod data;
mod measure;
mod pictures;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use rig::stack_file::Stack;
use rig::workspace::Workspace;
use rig::{outln, own};

use crate::data::Example;

/// Takes pictures of the web pages.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask screenshots")]
struct Arguments {
    /// The folder for the pictures.
    #[arg(long, value_name = "FOLDER", default_value = "target/screenshots")]
    out: PathBuf,
    /// Measures how fast pages load instead of taking pictures.
    #[arg(long)]
    measure: bool,
}

fn main() -> ExitCode {
    own::run(|| run().map(|()| ExitCode::SUCCESS))
}

fn run() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let stack = Stack::read(&Workspace::find()?.aside("screenshots"))?;
    let stack = stack.context("no system runs: use cargo xtask screenshots")?;
    let example = Example::create(&stack)?;
    let runtime = tokio::runtime::Runtime::new()?;
    if arguments.measure {
        return runtime.block_on(measure::run(&example));
    }
    let count = runtime.block_on(pictures::take(&example, &arguments.out))?;
    outln!("\n{count} pictures in {}", arguments.out.display());
    Ok(())
}
