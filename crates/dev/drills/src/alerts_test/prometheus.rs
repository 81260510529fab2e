//! Prometheus with the project's alerts, changed so that they fire sooner, and what a step works with while it awaits some.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, Result, ensure};
use local_stack::{Detached, packages, ports, private, wait_until};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rig::instance::{self, MARKER};
use rig::{Call, Client, Workspace, outln};
use serde_json::Value;

use super::system::System;

const READY_LIMIT: Duration = Duration::from_secs(30);
/// A condition such as a long queue may take a while on a slow machine.
const STEP_LIMIT: Duration = Duration::from_secs(200);
pub(super) const RULES: &str = include_str!("../../../../../deploy/observability/alerts.yml");
/// Thresholds of a small system, in place of those of docker-compose.yml.
const THRESHOLDS: [(&str, &str); 5] = [
    ("0.85 * 512 * 1024 * 1024", "1024 * 1024"),
    ("0.9 * 200", "5"),
    (
        "user_changes_oldest_seconds) > 600",
        "user_changes_oldest_seconds) > 2",
    ),
    ("outcome=\"exchanged\"}[5m]", "outcome=\"exchanged\"}[20s]"),
    ("[6h] offset 10m", "[6h] offset 30s"),
];

pub(super) struct Prometheus {
    client: Client,
}

impl Prometheus {
    /// Starts Prometheus, which reads the metrics of all processes every second.
    pub(super) fn start(workspace: &Workspace, system: &System) -> Result<Self> {
        let program = packages::system_program("prometheus")
            .or_else(|_| packages::system_program("/usr/bin/prometheus"))
            .context("install Debian's package prometheus")?;
        let folder = workspace.local.join("prometheus");
        private::create_folder(&folder)?;
        fs::write(folder.join("alerts.yml"), rules()?)?;
        fs::write(folder.join("prometheus.yml"), configuration(system))?;
        let [port] = ports::free()?;
        let mut server = Detached::new(&program, &workspace.log("prometheus"));
        let command = server.command.current_dir(&folder);
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.env(MARKER, instance::mark(workspace)?);
        server.spawn()?;
        let prometheus = Self {
            client: Client::of_process(&format!("http://127.0.0.1:{port}")),
        };
        let ready = wait_until(READY_LIMIT, || prometheus.get("/api/v1/rules"));
        ready.context("Prometheus did not become ready")?;
        Ok(prometheus)
    }

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

    /// Prints what Prometheus says of an alert that does not fire: its query, its state and its errors.
    pub(super) fn explain(&self, alert: &str) {
        let response = self.get("/api/v1/rules").unwrap_or_default();
        let groups = response.pointer("/data/groups").and_then(Value::as_array);
        let groups = groups.into_iter().flatten();
        let rules = groups.filter_map(|group| group.get("rules")?.as_array());
        let is_it = |rule: &&Value| rule.get("name").is_some_and(|name| name == alert);
        for rule in rules.flatten().filter(is_it) {
            outln!("    {rule}");
        }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let (status, _, body) = self.client.once(&Call::new("GET", path)).ok()?;
        (status == 200).then_some(body)
    }
}

/// The names of all alerts.
pub(super) fn names(rules: &str) -> Vec<String> {
    let lines = rules.lines();
    let names = lines.filter_map(|line| line.trim().strip_prefix("- alert: "));
    names.map(str::to_owned).collect()
}

fn rules() -> Result<String> {
    let changed = RULES.lines().map(|line| match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: 2s\n"),
        _ => format!("{line}\n"),
    });
    let mut rules: String = changed.collect();
    for (from, to) in THRESHOLDS {
        ensure!(rules.contains(from), "alerts.yml no longer has {from}");
        rules = rules.replace(from, to);
    }
    Ok(rules)
}

fn configuration(system: &System) -> String {
    let ours = system.rig.processes.iter();
    let ours = ours.filter(|process| process.program != "demo-engine");
    let ours = ours.map(|process| (process.program, process.metrics.replace("http://", "")));
    let other = ("other", system.other_version.address().to_string());
    let target = |(program, address): (&str, String)| {
        format!("      - {{targets: ['{address}'], labels: {{job: {program}}}}}\n")
    };
    let targets: String = ours.chain([other]).map(target).collect();
    format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
         rule_files: [alerts.yml]\n\
         scrape_configs:\n  - job_name: all\n    static_configs:\n{targets}"
    )
}

/// A step under way. It keeps up its condition until [`Drill::is_over`], so that it depends on no machine's speed.
pub(super) struct Drill<'a> {
    pub(super) system: &'a System,
    pub(super) prometheus: &'a Prometheus,
    begin: Instant,
    is_finished: AtomicBool,
}

impl<'a> Drill<'a> {
    pub(super) fn begin(system: &'a System, prometheus: &'a Prometheus) -> Self {
        Self {
            system,
            prometheus,
            begin: Instant::now(),
            is_finished: AtomicBool::new(false),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    pub(super) fn left(&self) -> Duration {
        STEP_LIMIT.saturating_sub(self.elapsed())
    }

    /// All alerts of the step fire.
    pub(super) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Whether the condition is no longer needed.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished.load(Ordering::Acquire) || self.left().is_zero()
    }

    /// Sends requests on this many threads until the step is over.
    pub(super) fn load(&self, threads: usize, path: &str, body: Option<&Value>) -> Result<()> {
        self.system.load(threads, path, body, || self.is_over());
        Ok(())
    }

    /// Repeats an action every second until the step is over.
    pub(super) fn keep_up(&self, mut action: impl FnMut() -> Result<()>) -> Result<()> {
        while !self.is_over() {
            action()?;
            thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Waits until Prometheus has read another value of a metric than `before`.
    pub(super) fn wait_for_change(&self, query: &str, before: Option<f64>) -> Result<()> {
        let changed = || {
            self.prometheus
                .query(query)
                .filter(|value| Some(*value) != before)
        };
        let changed = wait_until(self.left(), changed);
        changed.with_context(|| format!("Prometheus has read no new value of {query}"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
