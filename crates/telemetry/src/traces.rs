//! The export of traces by OTLP over HTTP, and the spans that only the export needs.
//!
//! The spans of requests, messages and attempts are made by [`crate::RequestContext`]. Without an export nothing here does
//! any work: a span of [`statement_span`] or `call_span` is then [`Span::none`].

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::trace::{SpanContext, Status, TraceContextExt as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use crate::{CertificateFault, Outage};

/// The target of spans that are exported and not logged.
pub(crate) const EXPORT_ONLY: &str = "trace";
/// How long an export, and the last one of a process, may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

static EXPORTING: AtomicBool = AtomicBool::new(false);

app_config::settings! {
    /// Where traces are exported to, and how many of them. The names and meanings are those of the OpenTelemetry
    /// specification, "Environment Variable Specification".
    pub struct TraceSettings {
        /// The OpenTelemetry collector that traces are sent to, by OTLP over HTTP. Without it nothing is traced.
        pub endpoint: Option<Url> = optional("OTEL_EXPORTER_OTLP_ENDPOINT"),
        /// Which traces are exported. The ones that begin with `parentbased_` do what the caller's `traceparent` says.
        pub sampler: TraceSampler = or_default("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
        /// The share of traces that a sampler by ratio exports.
        pub ratio: f64 = between("OTEL_TRACES_SAMPLER_ARG", "1.0", "0", "1"),
    }
}

values::names! {
    /// Which traces are exported.
    pub enum TraceSampler {
        /// All of them.
        AlwaysOn = "always_on",
        /// None.
        AlwaysOff = "always_off",
        /// A share of them.
        TraceIdRatio = "traceidratio",
        /// What the caller says in `traceparent`; of new traces, all.
        ParentBasedAlwaysOn = "parentbased_always_on",
        /// What the caller says; of new traces, none.
        ParentBasedAlwaysOff = "parentbased_always_off",
        /// What the caller says; of new traces, a share.
        ParentBasedTraceIdRatio = "parentbased_traceidratio",
    }
}

app_config::named_settings! {
    TraceSampler,
    "`always_on`, `always_off`, `traceidratio`, `parentbased_always_on`, `parentbased_always_off` or `parentbased_traceidratio`",
    "parentbased_always_on";
}

impl TraceSettings {
    fn sampler(&self) -> Sampler {
        let by_ratio = Sampler::TraceIdRatioBased(self.ratio);
        let by_parent = |of_new| Sampler::ParentBased(Box::new(of_new));
        match self.sampler {
            TraceSampler::AlwaysOn => Sampler::AlwaysOn,
            TraceSampler::AlwaysOff => Sampler::AlwaysOff,
            TraceSampler::TraceIdRatio => by_ratio,
            TraceSampler::ParentBasedAlwaysOn => by_parent(Sampler::AlwaysOn),
            TraceSampler::ParentBasedAlwaysOff => by_parent(Sampler::AlwaysOff),
            TraceSampler::ParentBasedTraceIdRatio => by_parent(by_ratio),
        }
    }
}

/// Exports the spans of a process in the background, and the last ones when it is dropped.
#[derive(Debug)]
#[must_use = "the export ends when this is dropped"]
pub struct TraceExport(SdkTracerProvider);

impl TraceExport {
    /// Starts the export if the settings have an endpoint. Call it outside of an async runtime, and add
    /// [`TraceExport::layer`] to the subscriber.
    ///
    /// # Errors
    /// The client or the exporter cannot be built.
    pub fn start(process: &'static str, settings: &TraceSettings) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };
        // rustls needs one process-wide provider. An error means that it is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::blocking::Client::builder()
            .no_proxy()
            .timeout(EXPORT_TIMEOUT)
            .build()
            .context("the HTTP client for traces cannot be built")?;
        let base = endpoint.as_str().trim_end_matches('/');
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient {
                client,
                outage: Outage::new("traces cannot be exported"),
            })
            .with_endpoint(format!("{base}/v1/traces"))
            .with_timeout(EXPORT_TIMEOUT)
            .build()
            .context("OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_HEADERS cannot be used")?;
        let resource = Resource::builder()
            .with_service_name(process)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(settings.sampler())
            .with_resource(resource)
            .build();
        EXPORTING.store(true, Ordering::Release);
        Ok(Some(Self(provider)))
    }

    /// The layer of the subscriber that exports spans. Events are in the log, which has the trace's identifier.
    pub fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("countersign"))
            .with_target(false)
            .with_level(false)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|data| {
                data.is_span() && *data.level() <= Level::INFO
            }))
    }
}

impl Drop for TraceExport {
    fn drop(&mut self) {
        EXPORTING.store(false, Ordering::Release);
        if let Err(error) = self.0.shutdown_with_timeout(EXPORT_TIMEOUT) {
            tracing::warn!(error = %error, "the last traces could not be exported");
        }
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

/// The client of the collector of traces. It logs when exports begin to fail and when they work again, which the exporter
/// does not.
#[derive(Debug)]
struct CollectorClient {
    client: reqwest::blocking::Client,
    outage: Outage,
}

impl HttpClient for CollectorClient {
    fn send_bytes<'this, 'sending>(&'this self, request: Request<Bytes>) -> Sending<'sending>
    where
        'this: 'sending,
        Self: 'sending,
    {
        Box::pin(async move {
            let sent = self.client.send_bytes(request).await;
            let fault = sent
                .as_ref()
                .err()
                .and_then(|error| CertificateFault::find(&**error));
            match (&sent, fault) {
                (_, Some(fault)) => self.outage.fail(&fault),
                // Its own text has the URL, which may have a secret.
                (Err(error), None) => self.outage.fail(&error.source()),
                (Ok(response), None) if response.status().is_success() => self.outage.end(),
                (Ok(response), None) => self.outage.fail(&response.status()),
            }
            sent
        })
    }
}

pub(crate) fn is_exporting() -> bool {
    EXPORTING.load(Ordering::Acquire)
}

/// The position of a span in its trace, which starts the span. `None` if nothing is exported.
pub(crate) fn position(span: &Span) -> Option<SpanContext> {
    if !is_exporting() {
        return None;
    }
    let position = span.context().span().span_context().clone();
    position.is_valid().then_some(position)
}

/// Makes a span of another process the parent of a span that has not started.
pub(crate) fn set_parent(span: &Span, parent: Option<SpanContext>) {
    let parent = parent.map_or_else(Context::new, |parent| {
        Context::new().with_remote_span_context(parent)
    });
    // It fails if the span is not exported, and then it has no parent.
    let _ = span.set_parent(parent);
}

/// Whether the current span is exported. Without an export this costs nothing.
fn is_in_exported_trace() -> bool {
    is_exporting() && is_sampled(&Span::current())
}

fn is_sampled(span: &Span) -> bool {
    position(span).is_some_and(|position| position.is_sampled())
}

/// A span for a call of another system, within the current span; [`Span::none`] outside of an exported trace.
pub(crate) fn call_span(name: &'static str) -> Span {
    if !is_in_exported_trace() {
        return Span::none();
    }
    tracing::info_span!(
        target: EXPORT_ONLY,
        "call",
        otel.name = name,
        otel.kind = "client",
    )
}

/// A span for an SQL statement, within the current span; [`Span::none`] outside of an exported trace. `text` is called
/// only for an exported span, and must not contain values.
pub fn statement_span(text: impl FnOnce() -> String) -> Span {
    if !is_in_exported_trace() {
        return Span::none();
    }
    let text = text();
    let operation = text.split_whitespace().next().unwrap_or("statement");
    let span = tracing::info_span!(
        target: EXPORT_ONLY,
        "statement",
        otel.name = operation,
        otel.kind = "client",
        db.system.name = "postgresql",
    );
    span.set_attribute("db.query.text", text);
    span
}

/// A span for work that several requests share. The first of them that is exported is its parent, and it has links to the
/// others; [`Span::none`] if none is exported.
pub fn shared_span<'a>(name: &'static str, causes: impl IntoIterator<Item = &'a Span>) -> Span {
    if !is_exporting() {
        return Span::none();
    }
    let mut exported = causes.into_iter().filter(|cause| is_sampled(cause));
    let Some(parent) = exported.next() else {
        return Span::none();
    };
    let span = tracing::info_span!(target: EXPORT_ONLY, parent: parent, "shared", otel.name = name);
    for other in exported {
        if let Some(position) = position(other) {
            span.add_link(position);
        }
    }
    span
}

/// The current span if traces are exported, to make it a cause of a [`shared_span`]; otherwise [`Span::none`].
pub fn current_span() -> Span {
    if is_exporting() {
        Span::current()
    } else {
        Span::none()
    }
}

/// Sets an attribute of an exported span.
pub fn set_attribute(span: &Span, name: &'static str, value: impl Into<Value>) {
    if !span.is_none() && is_exporting() {
        span.set_attribute(name, value);
    }
}

/// Marks an exported span as failed, with a reason that contains no values.
pub fn set_failed(span: &Span, reason: &'static str) {
    if !span.is_none() && is_exporting() {
        span.set_status(Status::error(reason));
    }
}

/// Names the current span, of a request that was served, after the method and the route, and sets the attributes of the
/// semantic conventions for HTTP servers.
pub fn describe_request(method: &'static str, route: &str, status: u16) {
    if !is_exporting() {
        return;
    }
    let context = Span::current().context();
    let span = context.span();
    if !span.is_recording() {
        return;
    }
    span.update_name(format!("{method} {route}"));
    span.set_attribute(KeyValue::new("http.request.method", method));
    span.set_attribute(KeyValue::new("http.route", route.to_owned()));
    span.set_attribute(KeyValue::new(
        "http.response.status_code",
        i64::from(status),
    ));
    if status >= 500 {
        span.set_status(Status::error(""));
    }
}
