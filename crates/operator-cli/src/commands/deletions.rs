use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::api::{Api, Global};
use crate::commands::users;
use crate::output::{Column, Output};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  countersign deletions list --filter status:failed
  countersign deletions retry
  countersign deletions status ada@example.com c1925b7e0b1f4f6e
  countersign deletions cancel ada@example.com c1925b7e0b1f4f6e";

const COLUMNS: [Column; 7] = [
    ("user", "/userId"),
    ("ticket", "/ticket"),
    ("status", "/status"),
    ("done", "/stepsDone"),
    ("of", "/stepsTotal"),
    ("created", "/created"),
    ("failure", "/failure/detail"),
];

/// Calls of one `retry`. Each repeats 1,000 deletions.
const MOST_CALLS: usize = 1_000;

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List deletions of users.
    List {
        /// A condition such as `status:failed`; can be repeated.
        #[arg(long, value_name = "FIELD:VALUE")]
        filter: Vec<String>,
        /// How many deletions at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show the progress of a deletion.
    Status(Ticket),
    /// Repeat all deletions that failed.
    Retry,
    /// Cancel a deletion that is in progress. What was deleted stays deleted, and the account stays deactivated.
    Cancel(Ticket),
}

#[derive(Args)]
pub(crate) struct Ticket {
    /// The user's identifier, or the username or e-mail address while the user exists.
    user: String,
    /// The deletion's ticket.
    ticket: String,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global)?;
    match command {
        Command::List { filter, limit } => {
            let filters = filter.iter().map(|filter| ("filter", filter.clone()));
            let filters: Vec<_> = filters.collect();
            let found = api.rows(&["users", "deletions"], &filters, 0, *limit)?;
            output.list(&COLUMNS, found)
        }
        Command::Status(ticket) => {
            let user = user_id(&ticket.user, |name| users::find(&api, name))?;
            let path = ["users", &user, "delete-status", &ticket.ticket];
            output.one(&api.get(&path, &[])?)
        }
        Command::Retry => retry(&api, output),
        Command::Cancel(ticket) => {
            let user = user_id(&ticket.user, |name| {
                users::find_to_change(&api, name, output)
            })?;
            output.confirm("Cancel the deletion? What was deleted stays deleted.")?;
            let cancelled = api.delete(&["users", &user, "delete-status", &ticket.ticket])?;
            let sentence = "The deletion is cancelled. What was deleted stays deleted.";
            output.done(sentence, &cancelled)
        }
    }
}

/// Repeats those that failed until there are no more, or only some that something else holds.
fn retry(api: &Api, output: Output) -> Outcome {
    let (mut total, mut more) = (0, true);
    for _ in 0..MOST_CALLS {
        let reply = api.post(&["users", "deletions", "retry"], None)?;
        let retried = reply.get("retried").and_then(Value::as_u64);
        let retried = retried.unwrap_or_default();
        total += retried;
        more = reply.get("more") == Some(&Value::Bool(true));
        if !more || retried == 0 {
            break;
        }
    }
    let mut sentence = format!("{total} deletions are repeated.");
    if more {
        sentence += " There are more: try again.";
    }
    output.done(&sentence, &json!({"retried": total, "more": more}))
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
