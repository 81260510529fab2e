use anyhow::Context as _;
use clap::Subcommand;
use database::DatabaseSettings;
use serde_json::json;

use crate::Outcome;
use crate::api::{Api, Global};
use crate::commands::users;
use crate::output::Output;

const EXAMPLES: &str = "\
`revoke-all` writes to the user service's database, so run it in that service's environment.

Examples:
  countersign tokens revoke ada@example.com
  docker compose exec user-service countersign tokens revoke-all";

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Revoke the access tokens of a user, who can sign in again, and end the API keys, except for those of a service account.
    Revoke {
        /// The identifier, the username or the e-mail address.
        user: String,
    },
    /// Revoke the access tokens of all users: everyone has to sign in again, and API keys are off until `keys confirm`.
    RevokeAll,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    match command {
        Command::Revoke { user } => revoke(user, global, output),
        Command::RevokeAll => revoke_all(output),
    }
}

fn revoke(user: &str, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global)?;
    let user = users::find_to_change(&api, user, output)?;
    let revoked = api.post(&["users", users::id(&user), "revoke-tokens"], None)?;
    let sentence = format!(
        "The access tokens of {} are revoked, and the API keys have ended, unless it is a service account. \
         Every gateway and service refuses them within a second.",
        users::name(&revoked)
    );
    output.done(&sentence, &revoked)
}

fn revoke_all(output: Output) -> Outcome {
    let settings: DatabaseSettings = super::settings()?;
    output.confirm("Revoke the access tokens of all users, and turn off all API keys?")?;
    let revoked = super::runtime()?.block_on(user_service::revoke_all_tokens(&settings));
    revoked.context("the tokens could not be revoked")?;
    let sentence = "All access tokens are revoked. Every gateway and service refuses them within a second. \
                    API keys are off until they are confirmed: `countersign keys confirm --all`.";
    output.done(sentence, &json!({"revoked": "all"}))
}
