//! Alerts, dashboards and the runbook use only metrics that exist, with the suffixes of their kinds, and every alert has an entry
//! in the runbook.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use telemetry::{METRICS, MetricKind};
use testkit::eventually;

use crate::harness::System;

const ADA: &str = "ada@example.com";
const APPROVER: &str = "approver@example.com";

/// Metrics that the processes' list does not have: Prometheus' own, and those of the operating system.
const STANDARD: [&str; 8] = [
    "ALERTS",
    "up",
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_threads",
];

/// Words of PromQL that are neither metrics nor functions.
const KEYWORDS: [&str; 5] = ["and", "offset", "or", "unless", "bool"];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy")
}

fn alerts() -> Value {
    let text = fs::read_to_string(deploy().join("observability/alerts.yml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn dashboards() -> Vec<Value> {
    let folder = deploy().join("observability/grafana/dashboards");
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .map(|text| serde_json::from_str(&text).unwrap())
        .collect()
}

/// Every value of the member `key` in a document.
fn members<'a>(document: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match document {
        Value::Object(object) => {
            found.extend(object.get(key).and_then(Value::as_str));
            object.values().for_each(|value| members(value, key, found));
        }
        Value::Array(values) => values.iter().for_each(|value| members(value, key, found)),
        _ => {}
    }
}

/// The names of the metrics of a PromQL expression.
fn metrics(expression: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (mut rest, mut after_grouping) = (expression, false);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '{' => rest.find('}').unwrap() + 1,
            '[' => rest.find(']').unwrap() + 1,
            '"' => rest[1..].find('"').unwrap() + 2,
            '(' if after_grouping => rest.find(')').unwrap() + 1,
            // Numbers and durations.
            '0'..='9' => word_length(rest),
            'a'..='z' | 'A'..='Z' | '_' => {
                let (word, following) = rest.split_at(word_length(rest));
                let following = following.trim_start();
                let is_call = ["(", "by ", "by(", "without "]
                    .iter()
                    .any(|next| following.starts_with(next));
                if !is_call && !KEYWORDS.contains(&word) {
                    names.insert(word.to_owned());
                }
                word.len()
            }
            other => other.len_utf8(),
        };
        let (word, following) = rest.split_at(length);
        if !word.trim().is_empty() {
            after_grouping = matches!(word, "by" | "without" | "on" | "ignoring");
        }
        rest = following;
    }
    names
}

fn word_length(text: &str) -> usize {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | ':');
    text.find(is_end).unwrap_or(text.len())
}

/// The names that a running system shows once each of its parts has worked.
async fn shown() -> BTreeSet<String> {
    let _ = telemetry::metrics_recorder();
    let system = System::start().await;
    let token = system.sign_up(ADA).await;
    let task = system.create_task(&token, ADA, APPROVER).await;
    system.register_webhook(&token, &task.id, "shown").await;
    let decision = format!(
        "/people-task/tasks/{}/approve?secret={}",
        task.id, task.approver_secret
    );
    let _ = system.http.put(&decision).send().await.expect(200);
    let _ = system.wait_for_webhook("shown").await;
    let email = json!({"email": ADA});
    let _ = system
        .post_anonymously("/user/forgot-password", &email)
        .await;
    let _ = system.wait_for_request("kind=forgot-password").await;
    let user = format!("/users/{}", system.user_id(ADA).await);
    let deletion = system
        .http
        .delete(&user)
        .bearer(&system.admin)
        .send()
        .await
        .expect(200);
    let status = format!("{user}/delete-status/{}", deletion.text_of("ticket"));
    eventually("the user to be deleted", || async {
        let response = system.get(&status, &system.admin).await;
        (response.json["status"] == "completed").then_some(())
    })
    .await;
    let metrics = system.metrics().await;
    system.stop().await;
    let samples = metrics
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    samples
        .map(|line| line.split(['{', ' ']).next().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_system_shows_every_metric_of_the_list() {
    let shown = shown().await;
    let of_list = METRICS.iter().map(|metric| match metric.kind {
        MetricKind::Histogram => format!("{}_bucket", metric.name),
        MetricKind::Counter | MetricKind::Gauge => metric.name.to_owned(),
    });
    let missing: Vec<_> = of_list.filter(|name| !shown.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let of_system = STANDARD.iter().filter(|name| name.starts_with("process_"));
    let missing: Vec<_> = of_system.filter(|name| !shown.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The names that `/metrics` has, and those that rules record.
fn exposed(rules: &Value) -> BTreeSet<String> {
    let listed = METRICS.iter().flat_map(|metric| match metric.kind {
        MetricKind::Histogram => ["_bucket", "_sum", "_count"]
            .map(|suffix| format!("{}{suffix}", metric.name))
            .to_vec(),
        MetricKind::Counter | MetricKind::Gauge => vec![metric.name.to_owned()],
    });
    let mut recorded = Vec::new();
    members(rules, "record", &mut recorded);
    let others = recorded.into_iter().chain(STANDARD).map(str::to_owned);
    listed.chain(others).collect()
}

/// The queries of the runbook, one in each line of a block.
fn runbook_queries(runbook: &str) -> Vec<&str> {
    let blocks = runbook.split("```promql\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).collect()
}

#[test]
fn alerts_dashboards_and_the_runbook_use_only_metrics_that_exist() {
    let (alerts, dashboards) = (alerts(), dashboards());
    let exposed = exposed(&alerts);
    let mut expressions = Vec::new();
    members(&alerts, "expr", &mut expressions);
    assert!(expressions.len() > 20, "{expressions:?}");
    for dashboard in &dashboards {
        members(dashboard, "expr", &mut expressions);
    }
    assert!(expressions.len() > 80, "{expressions:?}");
    let runbook = fs::read_to_string(deploy().join("RUNBOOK.md")).unwrap();
    let queries = runbook_queries(&runbook);
    assert!(queries.len() > 50, "{queries:?}");
    expressions.extend(queries);
    for expression in expressions {
        let used = metrics(expression);
        let unknown: Vec<_> = used.difference(&exposed).collect();
        assert!(!used.is_empty(), "{expression}");
        assert!(unknown.is_empty(), "{unknown:?} in {expression}");
    }
}

#[test]
fn every_alert_has_an_entry_in_the_runbook_and_a_test() {
    let runbook = fs::read_to_string(deploy().join("RUNBOOK.md")).unwrap();
    let tests = fs::read_to_string(deploy().join("observability/alerts.test.yml")).unwrap();
    let alerts = alerts();
    let mut names = Vec::new();
    members(&alerts, "alert", &mut names);
    for name in &names {
        assert!(runbook.contains(&format!("\n### {name}\n")), "{name}");
        assert!(tests.contains(name), "{name}");
    }
    let entries = runbook.matches("\n### ").count();
    assert_eq!(entries, names.len());
}

#[test]
fn the_metrics_of_an_expression_are_found() {
    let found = metrics(
        r#"histogram_quantile(0.95, sum by (job, le) (rate(a_bucket{route!="/x|y(z)"}[5m]))) > 1.5
           and on (job) (sum without (pod) (b_total offset 1h) or vector(0)) unless max(c) > 5e3"#,
    );
    let expected = ["a_bucket", "b_total", "c"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
}
