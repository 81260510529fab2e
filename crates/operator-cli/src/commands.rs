pub(crate) mod config;
pub(crate) mod dead_letters;
pub(crate) mod deletions;
pub(crate) mod deliveries;
pub(crate) mod doctor;
pub(crate) mod first_decision;
pub(crate) mod keys;
pub(crate) mod migrate;
pub(crate) mod signing_keys;
pub(crate) mod status;
pub(crate) mod tokens;
pub(crate) mod users;

use std::path::PathBuf;

use anyhow::Context as _;
use app_config::{Reader, Settings};
use clap::Args;
use tokio::runtime::Runtime;

#[derive(Args)]
struct Secrets {
    /// The folder of secrets.
    #[arg(
        long,
        env = "SECRETS_FOLDER",
        default_value = "deploy/secrets",
        value_name = "FOLDER"
    )]
    folder: PathBuf,
}

/// Reads the settings of the process in whose environment a command runs.
fn settings<S: Settings>() -> Result<S, app_config::Error> {
    S::read(&mut Reader::from_process()?)
}

fn runtime() -> anyhow::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("the async runtime cannot start")
}
