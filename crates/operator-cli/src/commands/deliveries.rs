use clap::{Args, Subcommand};
use serde_json::Value;
use url::Url;

use crate::api::Api;
use crate::failure::{Failure, Outcome};
use crate::global::Global;
use crate::json::text;
use crate::output::{Column, Output};

const EXAMPLES: &str = "\
Examples:
  countersign deliveries list --task 6b0211b15a326b85ddc6477a
  countersign deliveries retry 665f1c2ab3d4e5f60718293c
  countersign deliveries retry --task 6b0211b15a326b85ddc6477a --failed --host engine.example.com";

const COLUMNS: [Column; 5] = [
    ("id", "/id"),
    ("status", "/status"),
    ("decision", "/taskStatus"),
    ("url", "/url"),
    ("next attempt", "/nextAttempt"),
];
const PAGE: usize = 1_000;

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the deliveries of a task.
    List(Chosen),
    /// Send deliveries again now.
    Retry(Retry),
}

/// Deliveries of a task.
#[derive(Args)]
pub(crate) struct Chosen {
    /// The task.
    #[arg(long, value_name = "ID")]
    task: String,
    /// Only those that failed.
    #[arg(long)]
    failed: bool,
    /// Only those to this host.
    #[arg(long)]
    host: Option<String>,
}

#[derive(Args)]
pub(crate) struct Retry {
    /// The deliveries.
    #[arg(required_unless_present = "task", conflicts_with_all = ["task", "failed", "host"])]
    ids: Vec<String>,
    /// The deliveries of this task.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Of these, only those that failed.
    #[arg(long, requires = "task")]
    failed: bool,
    /// Of these, only those to this host.
    #[arg(long, requires = "task")]
    host: Option<String>,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global.credentials())?;
    match command {
        Command::List(chosen) => {
            output.list(&COLUMNS, &load(&api, chosen)?);
            Ok(())
        }
        Command::Retry(arguments) => retry(arguments, &api, output),
    }
}

/// The deliveries of a task that were chosen.
fn load(api: &Api, chosen: &Chosen) -> Result<Vec<Value>, Failure> {
    let (mut found, limit) = (Vec::new(), PAGE.to_string());
    loop {
        let path = ["people-task", "tasks", &chosen.task, "deliveries"];
        let offset = found.len().to_string();
        let page = api.get(&path, &[("limit", &limit), ("offset", &offset)])?;
        let page = page.as_array().cloned().unwrap_or_default();
        let is_last = page.is_empty();
        found.extend(page);
        if is_last {
            break;
        }
    }
    found.retain(|delivery| is_chosen(delivery, chosen));
    Ok(found)
}

fn is_chosen(delivery: &Value, chosen: &Chosen) -> bool {
    let url = Url::parse(text(delivery, "url")).ok();
    let host = url.as_ref().and_then(Url::host_str);
    (!chosen.failed || text(delivery, "status") == "fail")
        && (chosen.host.is_none() || chosen.host.as_deref() == host)
}

fn retry(arguments: &Retry, api: &Api, output: Output) -> Outcome {
    let ids = match &arguments.task {
        None => arguments.ids.clone(),
        Some(task) => {
            let chosen = Chosen {
                task: task.clone(),
                failed: arguments.failed,
                host: arguments.host.clone(),
            };
            let found = load(api, &chosen)?;
            let ids = found.iter().map(|delivery| text(delivery, "id"));
            ids.map(str::to_owned).collect()
        }
    };
    let sent: Result<Vec<Value>, Failure> = ids
        .iter()
        .map(|id| api.post(&["people-task", "deliveries", id, "redeliver"], None))
        .collect();
    let sent = sent?;
    output.done(
        &format!("{} deliveries are sent again.", sent.len()),
        &Value::from(sent),
    );
    Ok(())
}
