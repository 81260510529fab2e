//! `cargo xtask screenshots`: starts a system for the pictures, which a test takes with its browser, and removes it
//! afterwards.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;
use local_stack::{Need, packages};

use rig::{Options, Profile, Source, System, Workspace, interrupt, say, with_own_system};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder for the pictures.
    #[arg(long, value_name = "FOLDER", default_value = "target/screenshots")]
    out: PathBuf,
    /// Measure how fast pages load instead of taking pictures.
    #[arg(long)]
    measure: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let take = |workspace: &_| {
        packages::ensure(&[Need::CHROMIUM, Need::CHROME_DRIVER], &say)?;
        let (profile, test) = if arguments.measure {
            // A debug build reads and compresses the files at each request, and lets nothing be cached.
            (Profile::Release, "screenshots::loading_times")
        } else {
            (Profile::Dev, "screenshots::pictures_of_all_pages")
        };
        let options = Options::own(Source::Build(profile));
        // The test finds it by its file.
        System::plan(workspace, &options)?.start()?;
        run_test(workspace, &arguments.out, test)
    };
    with_own_system("screenshots", take, |()| true)?;
    Ok(ExitCode::SUCCESS)
}

fn run_test(workspace: &Workspace, out: &Path, test: &str) -> anyhow::Result<()> {
    let folder = env::current_dir()?.join(out);
    let mut command = workspace.cargo();
    command
        .args(["test", "--quiet", "--workspace", "--test", "it", "--"])
        .args(["--ignored", "--exact", "--nocapture", test])
        .env("SCREENSHOTS", folder);
    let status = interrupt::wait_for(command.spawn().context("running cargo")?)?;
    ensure!(status.success(), "the pictures are not complete: {status}");
    Ok(())
}
