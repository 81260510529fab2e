//! Traces: a decision is one trace, from the gateway to the request that its receiver gets.

use app_config::SettingValue as _;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use telemetry::{LogFilter, LogFormat, LogSettings};
use tokio::runtime::Runtime;

use crate::harness::System;
use crate::trace_collector::{Collector, Span};

const REQUESTER: &str = "requester@example.com";
const APPROVER: &str = "approver@example.com";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Decides a task whose caller sends a `traceparent` with these flags. Returns the `traceparent` that the receiver of the
/// webhook got, and the spans that were exported.
fn decide(sampler: &str, flags: &str) -> (String, Vec<Span>) {
    let collector = Collector::start();
    let log = LogSettings {
        filter: LogFilter::parse("off").unwrap(),
        format: LogFormat::Json,
    };
    let telemetry = telemetry::init("countersign", &log, Some(&collector.settings(sampler)));
    let telemetry = telemetry.unwrap();
    let received = Runtime::new().unwrap().block_on(async {
        let system = System::start().await;
        let requester = system.sign_up(REQUESTER).await;
        let task = system.create_task(&requester, REQUESTER, APPROVER).await;
        system
            .register_webhook(&requester, &task.id, "traced")
            .await;
        let path = format!(
            "/people-task/tasks/{}/approve?secret={}",
            task.id, task.approver_secret
        );
        let traceparent = format!("00-{TRACE}-{CALLER}-{flags}");
        let request = system.http.put(&path).header("traceparent", &traceparent);
        let _ = request.send().await.expect(200);
        let call = system.wait_for_webhook("traced").await;
        system.stop().await;
        call["headers"]["traceparent"].as_str().unwrap().to_owned()
    });
    // The last spans are exported now.
    drop(telemetry);
    // Panics went to the log, which has ended.
    drop(std::panic::take_hook());
    (received, collector.spans())
}

/// The only span of the trace with this name and kind.
fn only<'a>(spans: &'a [Span], kind: SpanKind, name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|s| s.kind == kind && s.name == name);
    let span = found
        .next()
        .unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
    assert!(found.next().is_none(), "several {name} in {spans:#?}");
    span
}

/// The names of a span's ancestors, the nearest first, and the identifier of the last one's parent.
fn ancestors<'a>(spans: &'a [Span], span: &'a Span) -> (Vec<&'a str>, &'a str) {
    let (mut names, mut parent) = (Vec::new(), span.parent.as_str());
    while let Some(next) = spans.iter().find(|span| span.id == parent) {
        names.push(next.name.as_str());
        parent = &next.parent;
    }
    (names, parent)
}

#[test]
fn a_decision_is_one_trace_from_the_gateway_to_the_receiver() {
    let (received, mut spans) = decide("parentbased_always_on", "01");
    spans.retain(|span| span.trace == TRACE);
    let route = "PUT /people-task/tasks/{id}/approve";
    let by_gateway = spans.iter().find(|span| span.parent == CALLER).unwrap();
    assert_eq!(
        (by_gateway.name.as_str(), by_gateway.kind),
        (route, SpanKind::Server)
    );
    assert_eq!(
        by_gateway.attributes["http.route"],
        "/people-task/tasks/{id}/approve"
    );

    let upstream = only(&spans, SpanKind::Client, "people-task-service");
    assert_eq!(upstream.parent, by_gateway.id);
    let by_service = spans
        .iter()
        .find(|span| span.parent == upstream.id)
        .unwrap();
    assert_eq!(
        (by_service.name.as_str(), by_service.kind),
        (route, SpanKind::Server)
    );

    let is_statement = |span: &&Span| span.attributes.contains_key("db.query.text");
    let statements: Vec<_> = spans.iter().filter(is_statement).collect();
    let decision =
        |span: &&&Span| span.attributes["db.query.text"].contains("INSERT INTO deliveries");
    let decision = statements.iter().find(decision).unwrap();
    let (path, root) = ancestors(&spans, decision);
    assert_eq!(
        path,
        ["batch", "decide", route, "people-task-service", route]
    );
    assert_eq!(root, CALLER);

    let message = only(&spans, SpanKind::Producer, "webhook.due-deliveries");
    assert_eq!(ancestors(&spans, message).1, CALLER);
    let consumed = only(&spans, SpanKind::Consumer, "webhook.due-deliveries");
    assert_eq!(consumed.parent, message.id);

    let attempt = only(&spans, SpanKind::Client, "webhook.attempt");
    assert_eq!(ancestors(&spans, attempt).1, CALLER);
    assert_eq!(attempt.attributes["server.address"], "127.0.0.1");
    assert_eq!(received, format!("00-{TRACE}-{}-01", attempt.id));
}

#[test]
fn a_caller_decides_whether_its_trace_is_exported() {
    let (received, spans) = decide("parentbased_always_on", "00");
    assert!(received.starts_with(&format!("00-{TRACE}-")) && received.ends_with("-00"));
    assert!(!spans.is_empty(), "other traces are exported");
    assert!(spans.iter().all(|span| span.trace != TRACE), "{spans:#?}");
}

#[test]
fn a_sampler_decides_whether_new_traces_are_exported() {
    let (_, spans) = decide("parentbased_always_off", "01");
    assert!(!spans.is_empty(), "the caller's trace is exported");
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
}
