use anyhow::Context as _;
use app_config::{Reader, Settings as _};
use clap::Subcommand;
use database::DatabaseSettings;
use serde_json::json;

use crate::confirmation::confirm;
use crate::failure::{Failure, Outcome};
use crate::global::Global;
use crate::output::Output;

const EXAMPLES: &str = "\
It writes to the user service's database, so run it in that service's environment. To revoke the tokens of one user, disable the
user or reset the password: `countersign users`.

Example:
  docker compose exec user-service countersign tokens revoke-all";

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Revoke the access tokens of all users: everyone has to sign in again.
    RevokeAll,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    let Command::RevokeAll = command;
    let read = || DatabaseSettings::read(&mut Reader::from_process()?);
    let settings = read().map_err(anyhow::Error::from)?;
    confirm("Revoke the access tokens of all users?", global.yes)?;
    let runtime = super::runtime()?;
    runtime
        .block_on(user_service::revoke_all_tokens(&settings))
        .context("the tokens could not be revoked")
        .map_err(Failure::from)?;
    let sentence =
        "All access tokens are revoked. Every gateway and service refuses them within a second.";
    output.done(sentence, &json!({"revoked": "all"}));
    Ok(())
}
