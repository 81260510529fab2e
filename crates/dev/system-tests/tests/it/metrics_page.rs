//! The list of metrics says what the code records, and `deploy/METRICS.md` is generated from it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use telemetry::{Label, METRICS, Metric, MetricKind};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

#[test]
fn the_metrics_page_matches_the_list() {
    let path = root().join("deploy/METRICS.md");
    let page = page();
    if std::env::var_os("UPDATE_METRICS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "deploy/METRICS.md is out of date: run the tests with UPDATE_METRICS=1"
    );
}

#[test]
fn the_list_has_every_metric_that_the_code_records_with_its_labels() {
    let mut recorded = Recorded::new();
    for folder in ["crates", "gateway", "services"] {
        for file in sources(&root().join(folder)) {
            add_recorded(&mut recorded, &fs::read_to_string(file).unwrap());
        }
    }
    assert!(recorded.len() > 40, "{recorded:#?}");
    let listed: Recorded = METRICS.iter().map(signature).collect();
    assert_eq!(recorded, listed);
}

/// The kind and the labels of each metric.
type Recorded = BTreeMap<String, (&'static str, BTreeSet<String>)>;

fn signature(metric: &Metric) -> (String, (&'static str, BTreeSet<String>)) {
    let labels = metric.labels.iter().map(|label| label.name.to_owned());
    (
        metric.name.to_owned(),
        (kind(metric.kind), labels.collect()),
    )
}

fn kind(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    }
}

/// The source files of processes, without those of development tools and tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["dev", "tests"].contains(&name) {
            files.extend(sources(&path));
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    files
}

fn add_recorded(recorded: &mut Recorded, source: &str) {
    // Tests record metrics of their own.
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    for kind in ["counter", "gauge", "histogram"] {
        let call = format!("metrics::{kind}!(");
        for arguments in source.split(&call).skip(1).map(arguments) {
            // The list itself passes names that are no literals.
            let Some(rest) = arguments.trim_start().strip_prefix('"') else {
                continue;
            };
            let (name, labels) = rest.split_once('"').unwrap();
            // Each `"label" => value` follows a comma.
            let labels = labels.split(',').filter_map(|pair| {
                let (label, _) = pair.split_once("=>")?;
                Some(label.trim().trim_matches('"').to_owned())
            });
            let known = recorded
                .entry(name.to_owned())
                .or_insert((kind, BTreeSet::new()));
            assert_eq!(known.0, kind, "{name}");
            known.1.extend(labels);
        }
    }
}

/// The text up to the parenthesis that closes the call.
fn arguments(text: &str) -> &str {
    let mut open = 1;
    let is_end = |character| {
        open += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        open == 0
    };
    &text[..text.find(is_end).unwrap()]
}

fn label(label: &Label) -> String {
    let values: Vec<_> = label.values.iter().map(|v| format!("`{v}`")).collect();
    if values.is_empty() {
        format!("`{}`", label.name)
    } else {
        format!("`{}`: {}", label.name, values.join(" or "))
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
        Every process serves its metrics at `/metrics` of `METRICS_ADDRESS`, in the text format of Prometheus. \
        Durations are in seconds. Beside these, every process has the standard metrics whose names begin with `process_`: \
        processor time, memory, threads, open files and the time of the start. \
        A counter with a label whose values are not listed here appears with its first increment.\n\n\
        | metric | kind | labels | processes | meaning |\n|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let labels: Vec<_> = metric.labels.iter().map(label).collect();
        let processes = match metric.processes {
            [] => "all".to_owned(),
            processes => processes.join(", "),
        };
        let (name, kind) = (metric.name, kind(metric.kind));
        let (labels, help) = (labels.join("; "), metric.help);
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {labels} | {processes} | {help} |"
        );
    }
    page
}
