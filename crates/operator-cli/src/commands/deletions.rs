use clap::{Args, Subcommand};
use serde_json::Value;

use crate::api::Api;
use crate::commands::users;
use crate::confirmation::confirm;
use crate::failure::{Failure, Outcome};
use crate::global::Global;
use crate::json::member;
use crate::output::{Column, Output};

const EXAMPLES: &str = "\
Examples:
  countersign deletions list --filter status:failed
  countersign deletions retry
  countersign deletions status ada@example.com c1925b7e0b1f4f6e
  countersign deletions cancel ada@example.com c1925b7e0b1f4f6e";

const COLUMNS: [Column; 6] = [
    ("user", "/userId"),
    ("ticket", "/ticket"),
    ("status", "/status"),
    ("done", "/stepsDone"),
    ("of", "/stepsTotal"),
    ("created", "/created"),
];

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List deletions of users.
    List(List),
    /// Show the progress of a deletion.
    Status(Ticket),
    /// Repeat all deletions that failed.
    Retry,
    /// Cancel a deletion that has not deleted anything yet.
    Cancel(Ticket),
}

#[derive(Args)]
pub(crate) struct List {
    /// A condition such as `status:failed`; can be repeated.
    #[arg(long, value_name = "FIELD:VALUE")]
    filter: Vec<String>,
    /// How many deletions at most.
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

#[derive(Args)]
pub(crate) struct Ticket {
    /// The user's identifier, or the username or e-mail address while the user exists.
    user: String,
    /// The deletion's ticket.
    ticket: String,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global.credentials())?;
    match command {
        Command::List(arguments) => list(arguments, &api, output),
        Command::Status(ticket) => {
            let user = user_id(&ticket.user, |name| users::find(&api, name))?;
            let path = ["users", &user, "delete-status", &ticket.ticket];
            output.one(&api.get(&path, &[])?);
            Ok(())
        }
        Command::Retry => {
            let retried = api.post(&["users", "deletions", "retry"], None)?;
            let sentence = format!("{} deletions are repeated.", member(&retried, "retried"));
            output.done(&sentence, &retried);
            Ok(())
        }
        Command::Cancel(ticket) => {
            let user = user_id(&ticket.user, |name| {
                users::find_to_change(&api, name, global)
            })?;
            confirm("Cancel the deletion?", global.yes)?;
            let cancelled = api.delete(&["users", &user, "delete-status", &ticket.ticket])?;
            output.done("The deletion is cancelled.", &cancelled);
            Ok(())
        }
    }
}

fn list(arguments: &List, api: &Api, output: Output) -> Outcome {
    let limit = arguments.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(
        arguments
            .filter
            .iter()
            .map(|filter| ("filter", filter.as_str())),
    );
    let deletions = api.get(&["users", "deletions"], &query)?;
    output.list(&COLUMNS, deletions.as_array().map_or(&[], Vec::as_slice));
    Ok(())
}

/// The identifier of a user, who may not exist any more.
fn user_id(
    user: &str,
    find: impl FnOnce(&str) -> Result<Value, Failure>,
) -> Result<String, Failure> {
    if users::is_id(user) {
        return Ok(user.to_owned());
    }
    Ok(users::id(&find(user)?).to_owned())
}
