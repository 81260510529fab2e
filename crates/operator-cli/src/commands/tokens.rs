use anyhow::Context as _;
use app_config::{Reader, Settings as _};
use clap::Subcommand;
use database::DatabaseSettings;
use serde_json::json;

use crate::api::Api;
use crate::commands::users;
use crate::confirmation::confirm;
use crate::failure::{Failure, Outcome};
use crate::global::Global;
use crate::output::Output;

const EXAMPLES: &str = "\
`revoke-all` writes to the user service's database, so run it in that service's environment.

Examples:
  countersign tokens revoke ada@example.com
  docker compose exec user-service countersign tokens revoke-all";

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Revoke the access tokens of a user, who can sign in again.
    Revoke {
        /// The identifier, the username or the e-mail address.
        user: String,
    },
    /// Revoke the access tokens of all users: everyone has to sign in again.
    RevokeAll,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    match command {
        Command::Revoke { user } => revoke(user, global, output),
        Command::RevokeAll => revoke_all(global, output),
    }
}

fn revoke(user: &str, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global.credentials())?;
    let user = users::find_to_change(&api, user, global)?;
    let revoked = api.post(&["users", users::id(&user), "revoke-tokens"], None)?;
    let sentence = format!(
        "The access tokens of {} are revoked. Every gateway and service refuses them within a second.",
        users::name(&revoked)
    );
    output.done(&sentence, &revoked);
    Ok(())
}

fn revoke_all(global: &Global, output: Output) -> Outcome {
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
