//! Prometheus with the project's alerts, changed so that they fire sooner.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, ensure};
use local_stack::{
    packages, ports, private,
    process::{Detached, wait_until},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::system::System;
use rig::{
    client::{Call, Client},
    environment::MARKER,
    instance, outln,
    workspace::Workspace,
};

const READY_LIMIT: Duration = Duration::from_secs(30);
const RULES: &str = include_str!("../../../../../deploy/observability/alerts.yml");
/// Thresholds of a small system, in place of those of docker-compose.yml.
const THRESHOLDS: [(&str, &str); 2] = [
    ("0.85 * 512 * 1024 * 1024", "1024 * 1024"),
    ("0.9 * 200", "5"),
];

/// A running Prometheus.
pub(super) struct Prometheus {
    client: Client,
    /// The names of all alerts.
    pub(super) alerts: Vec<String>,
    rules: String,
}

impl Prometheus {
    /// Starts Prometheus, which reads the metrics of all processes every second.
    pub(super) fn start(workspace: &Workspace, system: &System) -> anyhow::Result<Self> {
        let program = packages::system_program("prometheus")
            .or_else(|_| packages::system_program("/usr/bin/prometheus"))
            .context("install Debian's package prometheus")?;
        let folder = workspace.local().join("prometheus");
        private::create_folder(&folder)?;
        let rules = rules()?;
        fs::write(folder.join("alerts.yml"), &rules)?;
        fs::write(folder.join("prometheus.yml"), configuration(system))?;
        let [port] = ports::free()?;
        let mut server = Detached::new(&program, &workspace.log("prometheus"));
        server
            .command()
            .arg(file_option("config.file", &folder.join("prometheus.yml")))
            .arg(file_option("storage.tsdb.path", &folder.join("data")))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .env(MARKER, instance::mark(workspace)?);
        server.spawn()?;
        let prometheus = Self {
            client: Client::of_process(&format!("http://127.0.0.1:{port}")),
            alerts: names(RULES),
            rules,
        };
        let ready = wait_until(READY_LIMIT, || prometheus.get("/api/v1/rules"));
        ready.context("Prometheus did not become ready")?;
        Ok(prometheus)
    }

    /// The value of an alert that fires.
    pub(super) fn value_if_firing(&self, name: &str) -> Option<String> {
        let response = self.get("/api/v1/alerts")?;
        let alerts = response.pointer("/data/alerts")?.as_array()?;
        let firing = alerts.iter().find(|alert| {
            let is = |pointer, value| alert.pointer(pointer).is_some_and(|found| found == value);
            is("/labels/alertname", name) && is("/state", "firing")
        })?;
        let value: f64 = firing.get("value")?.as_str()?.parse().ok()?;
        Some(format!("{value:.2}"))
    }

    /// The first value of a query.
    pub(super) fn query(&self, query: &str) -> Option<f64> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let response = self.get(&format!("/api/v1/query?query={query}"))?;
        let value = response.pointer("/data/result/0/value/1")?.as_str()?;
        value.parse().ok()
    }

    /// Prints the present values of the parts of an alert's expression.
    pub(super) fn explain(&self, alert: &str) {
        for part in parts(&expression(&self.rules, alert)) {
            let value = self.query(&part);
            let value = value.map_or("no value".to_owned(), |value| format!("{value:.3}"));
            outln!("    {value:>10}  {part}");
        }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let (status, _, body) = self.client.once(&Call::new("GET", path)).ok()?;
        (status == 200).then_some(body)
    }
}

fn file_option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn names(rules: &str) -> Vec<String> {
    let lines = rules.lines();
    let names = lines.filter_map(|line| line.trim().strip_prefix("- alert: "));
    names.map(str::to_owned).collect()
}

/// The alerts with the changes.
fn rules() -> anyhow::Result<String> {
    let mut rules = String::new();
    for line in RULES.lines() {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("for: ") {
            rules.push_str(&" ".repeat(indent));
            rules.push_str("for: 2s\n");
        } else {
            rules.push_str(line);
            rules.push('\n');
        }
    }
    for (from, to) in THRESHOLDS {
        ensure!(rules.contains(from), "alerts.yml no longer has {from}");
        rules = rules.replace(from, to);
    }
    Ok(rules)
}

fn configuration(system: &System) -> String {
    let mut text = "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n\
                    rule_files: [alerts.yml]\nscrape_configs:\n"
        .to_owned();
    for (job, addresses) in system.metrics_addresses() {
        let targets = addresses.join("', '");
        text.push_str(&format!(
            "  - {{job_name: {job}, static_configs: [{{targets: ['{targets}']}}]}}\n"
        ));
    }
    text
}

/// The expression of an alert, in one line.
fn expression(rules: &str, alert: &str) -> String {
    let (_, rule) = rules
        .split_once(&format!("- alert: {alert}\n"))
        .unwrap_or_default();
    let (_, rule) = rule.split_once("expr: ").unwrap_or_default();
    let lines = rule.lines().map(str::trim);
    let lines =
        lines.take_while(|line| !line.starts_with("for: ") && !line.starts_with("labels: "));
    let words = lines.filter(|line| *line != "|");
    words.collect::<Vec<_>>().join(" ")
}

/// The operands of the operators of a query that are not in parentheses, and of those that are the whole of one.
fn parts(expression: &str) -> Vec<String> {
    const OPERATORS: [&str; 10] = [
        " and ", " or ", " unless ", " == ", " > ", " < ", " >= ", " / ", " - ", " * ",
    ];
    let mut parts = vec![String::new()];
    let (mut depth, mut rest) = (0_u32, expression);
    while let Some(next) = rest.chars().next() {
        let operator = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator));
        if let Some(operator) = operator.filter(|_| depth == 0) {
            parts.push(String::new());
            rest = rest.get(operator.len()..).unwrap_or_default();
            continue;
        }
        match next {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(next);
        }
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    let is_number = |part: &String| part.trim().parse::<f64>().is_ok();
    parts.retain(|part| !is_number(part));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_alert_is_explained_by_the_parts_of_its_expression() {
        let rules = rules().unwrap();
        assert_eq!(
            parts(&expression(&rules, "FileDescriptorsHigh")),
            ["process_open_fds", "process_max_fds"]
        );
        let slow = parts(&expression(&rules, "SlowRequests"));
        assert_eq!(slow.len(), 2, "{slow:?}");
        assert!(slow[0].starts_with("histogram_quantile(0.95, sum by (le) ("));
        assert!(slow[1].starts_with("sum(rate(http_request_duration_seconds_count{"));
        for alert in names(&rules) {
            assert!(!parts(&expression(&rules, &alert)).is_empty(), "{alert}");
        }
    }

    #[test]
    fn every_alert_fires_after_two_seconds() {
        let rules = rules().unwrap();
        assert_eq!(names(&rules), names(RULES));
        assert!(names(RULES).len() > 20);
        let waits = rules.lines().filter(|line| line.contains("for: "));
        assert!(waits.clone().count() > 20);
        for line in waits.filter(|line| line.trim().starts_with("for: ")) {
            assert_eq!(line.trim(), "for: 2s");
        }
    }
}
