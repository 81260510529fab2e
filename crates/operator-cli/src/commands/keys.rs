use clap::{Args, Subcommand};
use serde_json::json;

use super::{signing_keys, users};
use crate::api::{Api, Global};
use crate::output::{Column, Output, member, set, text};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  countersign users create flows@example.com --service
  countersign keys create flows@example.com --name \"Invoices in n8n\" --scope tasks:read --scope tasks:write
  countersign keys list flows@example.com
  countersign keys end flows@example.com 6b0211b15a326b85ddc6477a
  countersign keys list --unconfirmed
  countersign keys confirm --all";

const COLUMNS: [Column; 7] = [
    ("id", "/id"),
    ("name", "/name"),
    ("scopes", "/scopes"),
    ("created", "/created"),
    ("expires", "/expires"),
    ("last used", "/lastUsed"),
    ("confirmed", "/confirmed"),
];
const COLUMNS_OF_ALL: [Column; 7] = [
    ("id", "/id"),
    ("user", "/username"),
    ("name", "/name"),
    ("scopes", "/scopes"),
    ("expires", "/expires"),
    ("last used", "/lastUsed"),
    ("confirmed", "/confirmed"),
];

#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = hide_signing)]
pub(crate) enum Command {
    /// List the API keys of a user, or of all users.
    List(List),
    /// Make an API key for a user, and print it once.
    Create(Create),
    /// End an API key: it is refused within a second.
    End {
        /// The identifier, the username or the e-mail address.
        user: String,
        /// The key's identifier.
        key: String,
    },
    /// Turn API keys on again that are off since the database was restored.
    Confirm {
        /// The identifiers of the keys.
        #[arg(required_unless_present = "all")]
        keys: Vec<String>,
        /// Confirm the keys of all users. One that was ended after the backup is among them.
        #[arg(long, conflicts_with = "keys")]
        all: bool,
    },
    // What the commands of `signing-keys` were called before there were API keys.
    #[command(flatten)]
    Signing(signing_keys::Command),
}

fn hide_signing(command: clap::Command) -> clap::Command {
    let is_signing = signing_keys::Command::has_subcommand(command.get_name());
    command.hide(is_signing)
}

#[derive(Args)]
pub(crate) struct List {
    /// The identifier, the username or the e-mail address; all users without one.
    user: Option<String>,
    /// Only keys that are off since the database was restored.
    #[arg(long, conflicts_with = "user")]
    unconfirmed: bool,
    /// How many keys of all users at most.
    #[arg(long, default_value_t = 100, conflicts_with = "user")]
    limit: usize,
    /// How many keys of all users to leave out.
    #[arg(long, default_value_t = 0, conflicts_with = "user")]
    offset: usize,
}

#[derive(Args)]
pub(crate) struct Create {
    /// The identifier, the username or the e-mail address.
    user: String,
    /// What the key is called.
    #[arg(long)]
    name: String,
    /// What it may do, such as `tasks:read`; can be repeated. tasks:read and tasks:write by default.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// When it ends by itself, such as 2027-01-31T00:00:00Z; never by default.
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    match command {
        Command::List(arguments) => list(arguments, &Api::open(global)?, output),
        Command::Create(arguments) => create(arguments, &Api::open(global)?, output),
        Command::End { user, key } => end(user, key, &Api::open(global)?, output),
        Command::Confirm { keys, all } => confirm(keys, *all, &Api::open(global)?, output),
        Command::Signing(command) => signing_keys::run(command, output),
    }
}

fn list(arguments: &List, api: &Api, output: Output) -> Outcome {
    if let Some(user) = &arguments.user {
        let user = users::find(api, user)?;
        let keys = api.list(&["users", users::id(&user), "keys"], &[])?;
        return output.list(&COLUMNS, keys);
    }
    let unconfirmed = [("confirmed", "false".to_owned())];
    let filters = if arguments.unconfirmed {
        &unconfirmed[..]
    } else {
        &[]
    };
    let (offset, limit) = (arguments.offset, arguments.limit);
    let found = api.rows(&["users", "keys"], filters, offset, limit)?;
    output.list(&COLUMNS_OF_ALL, found)
}

fn create(arguments: &Create, api: &Api, output: Output) -> Outcome {
    let user = users::find_to_change(api, &arguments.user, output)?;
    let mut body = json!({"name": arguments.name});
    if !arguments.scope.is_empty() {
        set(&mut body, "scopes", json!(arguments.scope));
    }
    if let Some(expires) = &arguments.expires {
        set(&mut body, "expires", json!(expires));
    }
    let made = api.post(&["users", users::id(&user), "keys"], Some(&body))?;
    let sentence = format!(
        "The key {} of {} was made. Its text, which is not shown again: {}",
        text(&made, "id"),
        users::name(&user),
        text(&made, "key")
    );
    output.done(&sentence, &made)
}

fn end(user: &str, key: &str, api: &Api, output: Output) -> Outcome {
    let user = users::find(api, user)?;
    let ended = api.delete(&["users", users::id(&user), "keys", key])?;
    output.done("The key has ended. It is refused within a second.", &ended)
}

fn confirm(keys: &[String], all: bool, api: &Api, output: Output) -> Outcome {
    if all {
        output.confirm(
            "Turn on all keys that are off since the database was restored? Keys that were ended after the backup are among them.",
        )?;
        let confirmed = api.post(&["users", "keys", "confirm"], None)?;
        let number = member(&confirmed, "confirmed");
        let sentence = format!("Keys that are on again: {number}.");
        return output.done(&sentence, &confirmed);
    }
    let listed = api.rows(&["users", "keys"], &[], 0, usize::MAX)?;
    let find = |key: &String| {
        let found = listed.iter().find(|listed| text(listed, "id") == key);
        found.ok_or_else(|| Failure::NotFound(format!("There is no key {key:?}.")))
    };
    let found = keys.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    for key in found {
        let (user, id) = (text(key, "userId"), text(key, "id"));
        let _ = api.post(&["users", user, "keys", id, "confirm"], None)?;
    }
    let result = json!({"confirmed": keys.len()});
    output.done("The keys are on again.", &result)
}
