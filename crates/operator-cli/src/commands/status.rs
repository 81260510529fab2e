use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use reqwest::blocking::Client;
use serde_json::{Value, json};
use telemetry::CertificateFault;

use crate::api::client;
use crate::output::{Output, member, table, text};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  countersign status
  countersign status --json | jq '.[] | select(.ready | not)'
  countersign status --process gateway=http://127.0.0.1:9090

The exit code is 1 if a process cannot be reached or is not ready.";

const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A process and the address of its internal port; can be repeated.
    #[arg(
        long = "process",
        env = "COUNTERSIGN_PROCESSES",
        value_delimiter = ',',
        value_name = "NAME=URL",
        default_values = [
            "gateway=http://gateway:9090",
            "user-service=http://user-service:9090",
            "people-task-service=http://people-task-service:9090",
            "webhook-worker=http://webhook-worker:9090",
            "deletion-worker=http://deletion-worker:9090",
            "notification-worker=http://notification-worker:9090",
        ],
    )]
    processes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Outcome {
    let states = states(arguments)?;
    output.done(&report(&states), &Value::from(states.clone()))?;
    let is_ready = |state: &&Value| member(state, "ready") == true;
    let (ready, all) = (
        states.iter().filter(is_ready).count(),
        arguments.processes.len(),
    );
    if ready == all {
        return Ok(());
    }
    let failing = all - ready;
    Err(anyhow!("{failing} of {all} processes are not ready").into())
}

/// What each process says of itself.
pub(crate) fn states(arguments: &Arguments) -> Result<Vec<Value>, Failure> {
    let client = client(TIMEOUT)?;
    let processes = arguments.processes.iter().map(|process| {
        let wrong = || Failure::Usage(format!("{process:?} is not of the form NAME=URL"));
        process.split_once('=').ok_or_else(wrong)
    });
    let processes: Vec<_> = processes.collect::<Result<_, _>>()?;
    // All at once, so that several that do not respond take no longer than one.
    Ok(thread::scope(|scope| {
        let client = &client;
        let ask = |(name, url)| scope.spawn(move || state(client, name, url));
        let asked: Vec<_> = processes.iter().copied().map(ask).collect();
        let states = asked.into_iter().filter_map(|asked| asked.join().ok());
        states.collect()
    }))
}

fn state(client: &Client, name: &str, url: &str) -> Value {
    let base = url.trim_end_matches('/');
    let get = |path: &str| {
        let response = client.get(format!("{base}{path}")).send();
        response.and_then(reqwest::blocking::Response::text)
    };
    match (get("/readyz"), get("/metrics")) {
        (Ok(readiness), Ok(metrics)) => {
            let readiness: Value = serde_json::from_str(&readiness).unwrap_or(Value::Null);
            let samples: Vec<Sample<'_>> = metrics.lines().filter_map(Sample::parse).collect();
            let version = samples.iter().find(|sample| sample.name == "build_info");
            json!({
                "name": name,
                "version": version.and_then(|sample| sample.label("version")),
                "ready": text(&readiness, "status") == "ready",
                "checks": member(&readiness, "checks"),
                "metrics": shown(&samples),
            })
        }
        (Err(error), _) | (_, Err(error)) => json!({
            "name": name,
            "ready": false,
            "error": match CertificateFault::find(&error) {
                Some(fault) => format!("its certificate was refused: {fault}"),
                None => format!("{:#}", anyhow::Error::from(error.without_url())),
            },
        }),
    }
}

/// What a metric is called that is shown.
fn meaning(metric: &str) -> Option<&'static str> {
    let meaning = match metric {
        "webhook_deliveries_pending" => "deliveries that have not ended",
        "webhook_deliveries_due" => "deliveries that should be under way",
        "webhook_deliveries_oldest_due_seconds" => "age of the oldest of them, in seconds",
        "webhook_deliveries_parked" => "parked deliveries",
        "webhook_hosts_paused" => "paused hosts",
        "webhook_deliveries_paused" => "deliveries that wait for them",
        "webhook_circuits_open" => "failing hosts",
        "outbox_open" => "open jobs",
        "outbox_overdue_seconds" => "delay of the oldest due job, in seconds",
        "queue_messages" => "messages in the queue",
        "revocation_feed_age_seconds" => "age of the revocation feed, in seconds",
        "password_hash_queue" => "passwords that wait for bcrypt",
        "database_waiting" => "requests that wait for a connection",
        "database_connections" => "connections",
        _ => return None,
    };
    Some(meaning)
}

fn shown(samples: &[Sample<'_>]) -> Value {
    let shown = samples
        .iter()
        .filter(|sample| meaning(sample.name).is_some())
        .map(|sample| json!({"name": sample.name, "labels": sample.labels, "value": sample.value}));
    shown.collect()
}

/// A line of the text format of Prometheus.
struct Sample<'a> {
    name: &'a str,
    /// As they are written, without braces.
    labels: &'a str,
    value: f64,
}

impl<'a> Sample<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}')?),
            None => (series, ""),
        };
        let value = value.parse().ok()?;
        Some(Self {
            name,
            labels,
            value,
        })
    }

    fn label(&self, name: &str) -> Option<&'a str> {
        let (_, after) = self.labels.split_once(&format!("{name}=\""))?;
        after.split('"').next()
    }
}

fn report(states: &[Value]) -> String {
    let processes = states.iter().map(process_row);
    let processes = table(&["process", "version", "state", "failing"], processes);
    let values = states.iter().flat_map(|state| {
        let metrics = member(state, "metrics").as_array().into_iter().flatten();
        metrics.map(|metric| metric_row(text(state, "name"), metric))
    });
    let values = table(&["process", "what", "of", "value"], values);
    format!("{processes}\n\n{values}")
}

pub(crate) fn process_row(state: &Value) -> Vec<String> {
    let checks = member(state, "checks").as_object().into_iter().flatten();
    let failing = checks.filter(|(_, result)| *result != "ok");
    let failing: Vec<_> = failing.map(|(name, _)| name.as_str()).collect();
    let problem = match text(state, "error") {
        "" => failing.join(", "),
        error => error.to_owned(),
    };
    let is_ready = member(state, "ready") == true;
    let ready = if is_ready { "ready" } else { "NOT READY" };
    let cells = [text(state, "name"), text(state, "version"), ready, &problem];
    cells.map(str::to_owned).to_vec()
}

fn metric_row(process: &str, metric: &Value) -> Vec<String> {
    let meaning = meaning(text(metric, "name")).unwrap_or_default();
    let labels = text(metric, "labels").replace('"', "");
    let value = member(metric, "value").as_f64().unwrap_or_default();
    let cells = [process, meaning, &labels, &value.to_string()];
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn samples_are_read_from_the_text_format() {
        let sample = Sample::parse(r#"build_info{process="gateway",version="0.2.0"} 1"#).unwrap();
        assert_eq!((sample.name, sample.value), ("build_info", 1.0));
        assert_eq!(sample.label("version"), Some("0.2.0"));
        assert_eq!(sample.label("other"), None);
        assert_eq!(Sample::parse("ready 1").unwrap().labels, "");
        assert!(Sample::parse("# HELP ready It is.").is_none());
    }
}
