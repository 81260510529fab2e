use clap::{Args, Subcommand};
use serde_json::{Value, json};
use url::Url;

use crate::api::{Api, Global};
use crate::output::{Column, Output, member, set, text};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  countersign deliveries list --failed --host engine.example.com
  countersign deliveries list --task 6b0211b15a326b85ddc6477a
  countersign deliveries retry 665f1c2ab3d4e5f60718293c
  countersign deliveries retry --failed --host engine.example.com
  countersign deliveries cancel --host gone.example.com
  countersign deliveries pause engine.example.com
  countersign deliveries hosts --status paused";

const COLUMNS: [Column; 6] = [
    ("id", "/id"),
    ("status", "/status"),
    ("decision", "/taskStatus"),
    ("url", "/url"),
    ("next attempt", "/nextAttempt"),
    ("last result", "/lastResult"),
];
const HOST_COLUMNS: [Column; 6] = [
    ("host", "/host"),
    ("paused", "/paused"),
    ("pending", "/pending"),
    ("tried", "/retrying"),
    ("failed", "/failed"),
    ("next attempt", "/nextAttempt"),
];
const HOSTS_PAGE: usize = 200;
const DELIVERIES: [&str; 2] = ["people-task", "deliveries"];
const PENDING: &str = "pending";
const FAIL: &str = "fail";
/// The API counts what remains up to this number.
const MAX_COUNTED: u64 = 100_000;
/// A limit on the calls for a host, each of which changes up to 1,000 deliveries.
const MOST_CALLS: usize = 10_000;

/// What is done to deliveries.
struct Change {
    /// The end of the path.
    path: &'static str,
    /// The field that says how many of a host were changed.
    field: &'static str,
    /// What people are told.
    done: &'static str,
}

const REDELIVER: Change = Change {
    path: "redeliver",
    field: "redelivered",
    done: "sent again",
};
const CANCEL: Change = Change {
    path: "cancel",
    field: "cancelled",
    done: "cancelled",
};

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List deliveries, newest first; those of a task oldest first.
    List(List),
    /// Send deliveries again now.
    Retry(Retry),
    /// Cancel deliveries that are pending: they have failed, and are not tried again.
    Cancel(Chosen),
    /// List the hosts with deliveries that are pending or have failed, and those that are paused.
    Hosts {
        /// Only those with deliveries of this status, or that are paused.
        #[arg(long, value_parser = [PENDING, FAIL, "paused"])]
        status: Option<String>,
        /// How many hosts at most.
        #[arg(long, default_value_t = 1_000)]
        limit: usize,
    },
    /// Pause the deliveries to hosts. They wait until the hosts are resumed.
    Pause(Pause),
    /// Send the deliveries to paused hosts again.
    Resume(Pause),
}

#[derive(Args)]
pub(crate) struct List {
    /// Only those of this task.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only those with this status.
    #[arg(long, value_parser = [PENDING, "sent", FAIL])]
    status: Option<String>,
    /// The same as --status fail.
    #[arg(long, conflicts_with = "status")]
    failed: bool,
    /// Only those to this host. Without a status: those that are pending or have failed.
    #[arg(long)]
    host: Option<String>,
    /// How many deliveries at most.
    #[arg(long, default_value_t = 1_000)]
    limit: usize,
}

#[derive(Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    chosen: Chosen,
    /// Only those that failed. Without --task, these are the only ones that can be chosen by --host.
    #[arg(long, conflicts_with = "ids")]
    failed: bool,
}

#[derive(Args)]
pub(crate) struct Chosen {
    /// The deliveries.
    #[arg(required_unless_present_any = ["task", "host"], conflicts_with_all = ["task", "host"])]
    ids: Vec<String>,
    /// The deliveries of this task.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only those to this host.
    #[arg(long)]
    host: Option<String>,
}

#[derive(Args)]
pub(crate) struct Pause {
    /// The hosts of the webhooks' URLs, without scheme and port.
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
}

pub(crate) fn run(command: &Command, global: &Global, output: Output) -> Outcome {
    let api = Api::open(global)?;
    match command {
        Command::List(arguments) => list(arguments, &api, output),
        Command::Retry(arguments) => retry(arguments, &api, output),
        Command::Cancel(arguments) => cancel(arguments, &api, output),
        Command::Hosts { status, limit } => hosts(status.as_deref(), *limit, &api, output),
        Command::Pause(arguments) => pause(arguments, &api, output, "pause", "paused"),
        Command::Resume(arguments) => pause(arguments, &api, output, "resume", "resumed"),
    }
}

fn list(arguments: &List, api: &Api, output: Output) -> Outcome {
    let failed = arguments.failed.then_some(FAIL);
    let status = failed.or(arguments.status.as_deref());
    let (host, limit) = (arguments.host.as_deref(), arguments.limit);
    let mut found = match &arguments.task {
        Some(task) => of_task(api, task, status, host)?,
        None => of_all_tasks(api, status, host, limit)?,
    };
    found.truncate(limit);
    if !output.json {
        found.iter_mut().for_each(explain);
    }
    output.list(&COLUMNS, found)
}

/// Adds what came of the newest attempt. A delivery that waits for a right of its registrant has no next one.
fn explain(delivery: &mut Value) {
    let attempts = member(delivery, "attempts").as_array();
    let newest = attempts.and_then(|all| all.last());
    let result = newest.map(|newest| match member(newest, "error") {
        Value::Null => member(newest, "statusCode").clone(),
        error => error.clone(),
    });
    set(delivery, "lastResult", result.unwrap_or_default());
    if *member(delivery, "suspended") == true {
        set(delivery, "nextAttempt", json!("suspended"));
    }
}

fn of_all_tasks(
    api: &Api,
    status: Option<&str>,
    host: Option<&str>,
    limit: usize,
) -> Result<Vec<Value>, Failure> {
    let statuses = match (status, host) {
        // The API lists those of a host by status.
        (None, Some(_)) => vec![Some(PENDING), Some(FAIL)],
        _ => vec![status],
    };
    let host = host.map(|host| format!("host:{}", host.replace(',', "\\,")));
    let mut found = Vec::new();
    for status in statuses {
        let status = status.map(|status| format!("status:{status}"));
        let filters = status.into_iter().chain(host.clone());
        let filters: Vec<_> = filters.map(|filter| ("filter", filter)).collect();
        let left = limit - found.len();
        found.extend(api.rows(&DELIVERIES, &filters, 0, left)?);
    }
    Ok(found)
}

fn of_task(
    api: &Api,
    task: &str,
    status: Option<&str>,
    host: Option<&str>,
) -> Result<Vec<Value>, Failure> {
    let path = ["people-task", "tasks", task, "deliveries"];
    let mut found = api.rows(&path, &[], 0, usize::MAX)?;
    let host = host.map(|host| host_of(&format!("http://{host}/")));
    found.retain(|delivery| {
        status.is_none_or(|status| text(delivery, "status") == status)
            && host
                .as_ref()
                .is_none_or(|host| *host == host_of(text(delivery, "url")))
    });
    Ok(found)
}

/// The host of a URL, in the spelling of the API.
fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(url.host_str()?.trim_end_matches('.').to_owned())
}

fn after(hosts: &[Value]) -> (&'static str, String) {
    let last = hosts.last().map_or("", |host| text(host, "host"));
    ("after", last.to_owned())
}

fn retry(Retry { chosen, failed }: &Retry, api: &Api, output: Output) -> Outcome {
    match chosen.ids(api, failed.then_some(FAIL))? {
        Some(ids) => change_each(api, &REDELIVER, &ids, output),
        None => change_host(api, &REDELIVER, chosen.host(), output),
    }
}

fn cancel(chosen: &Chosen, api: &Api, output: Output) -> Outcome {
    let (ids, host) = (chosen.ids(api, Some(PENDING))?, chosen.host());
    output.confirm(&match ids.as_ref().map(Vec::len) {
        Some(number) => {
            format!("Cancel {number} deliveries? The receivers will not learn of these decisions.")
        }
        None => format!(
            "Cancel all pending deliveries to {host}? It will not learn of these decisions."
        ),
    })?;
    match ids {
        Some(ids) => change_each(api, &CANCEL, &ids, output),
        None => change_host(api, &CANCEL, host, output),
    }
}

impl Chosen {
    /// The deliveries, of which those of a task have this status; `None` if all of a host are chosen.
    fn ids(&self, api: &Api, status: Option<&str>) -> Result<Option<Vec<String>>, Failure> {
        let Some(task) = &self.task else {
            return Ok(self.host.is_none().then(|| self.ids.clone()));
        };
        let found = of_task(api, task, status, self.host.as_deref())?;
        let ids = found.iter().map(|delivery| text(delivery, "id"));
        Ok(Some(ids.map(str::to_owned).collect()))
    }

    fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }
}

fn hosts(status: Option<&str>, limit: usize, api: &Api, output: Output) -> Outcome {
    let path = [&DELIVERIES[..], &["hosts"]].concat();
    let status = [("status", status.unwrap_or_default().to_owned())];
    let found = api.pages(&path, &status, HOSTS_PAGE, limit, after)?;
    output.list(&HOST_COLUMNS, found)
}

fn pause(arguments: &Pause, api: &Api, output: Output, what: &str, done: &str) -> Outcome {
    let path = [&DELIVERIES[..], &[what]].concat();
    let change = |host: &String| api.post(&path, Some(&json!({ "host": host })));
    let changed = arguments.hosts.iter().map(change);
    let changed: Value = changed.collect::<Result<_, _>>()?;
    let hosts = arguments.hosts.join(", ");
    output.done(&format!("Deliveries to {hosts} are {done}."), &changed)
}

/// Changes one delivery after another, except those that are missing or cannot be changed, each of which it names. Says what
/// was changed, and fails as the last one that was not.
fn change_each(api: &Api, change: &Change, ids: &[String], output: Output) -> Outcome {
    let (mut changed, mut failure) = (Vec::new(), None);
    for id in ids {
        match api.post(&["people-task", "deliveries", id, change.path], None) {
            Ok(delivery) => changed.push(delivery),
            Err(failed) => {
                telemetry::print_error(format!("{id}: {failed}"));
                let goes_on = matches!(failed, Failure::NotFound(_) | Failure::Conflict(_));
                failure = Some(failed);
                if !goes_on {
                    break;
                }
            }
        }
    }
    let sentence = format!("{} deliveries are {}.", changed.len(), change.done);
    output.done(&sentence, &changed.into())?;
    failure.map_or(Ok(()), Err)
}

/// Changes the deliveries of a host, of which the API changes a limited number in one call. It ends when as many were
/// changed as there were when all were counted, because a delivery that is sent again may fail again. Says what was changed
/// also if a later call fails.
fn change_host(api: &Api, change: &Change, host: &str, output: Output) -> Outcome {
    let (path, body) = (
        ["people-task", "deliveries", change.path],
        json!({ "host": host }),
    );
    let (mut total, mut remaining, mut at_most) = (0, 0, u64::MAX);
    let mut ended = Ok(());
    for _ in 0..MOST_CALLS {
        let result = match api.post(&path, Some(&body)) {
            Ok(result) => result,
            Err(failure) if total == 0 => return Err(failure),
            Err(failure) => {
                ended = Err(failure);
                break;
            }
        };
        let number = |name| member(&result, name).as_u64().unwrap_or_default();
        let now = number(change.field);
        remaining = number("remaining");
        total += now;
        if remaining < MAX_COUNTED {
            at_most = at_most.min(total + remaining);
        }
        if now == 0 || total >= at_most {
            break;
        }
    }
    let mut sentence = format!("{total} deliveries are {}.", change.done);
    if remaining > 0 && total < at_most {
        sentence += &format!(" At least {remaining} are left: try again.");
    }
    let field = change.field;
    output.done(&sentence, &json!({field: total, "remaining": remaining}))?;
    ended
}
